/* Edits, one after the other. Each names the draft's revision; what could not be sent stays in the queue and is tried again,
   so that a lost connection loses nothing. An edit that was sent carries a key: sent twice, it counts once. */
import { panelNow, takeAnswer } from "hf/canvas/answers";
import { announce, board, revision, swapParts, url } from "hf/canvas/board";
import { catchUp, dismiss } from "hf/canvas/catchup";
import { keep, kept } from "hf/canvas/unsent";
import { toast } from "hf/toast";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30000;

const queue = kept().map(({ made = revision(), since = made, own = [], ...item }) => ({ ...item, made, since, own }));
let sending = false;
let asking = false;
let leaving = false;
let owed = false; // a panel that was not shown, because edits were waiting
let pause = FIRST_PAUSE;
let timer = null;

/* operation: {op, ...}. */
export const edit = operation => enqueue("edit/", { operation: JSON.stringify(operation) });

/* What was typed into one field; a newer value of the same field replaces one that was never sent. */
export function editField(owner, field, values) {
  const waiting = queue.findIndex(item => item.field === `${owner}/${field}` && item.at === undefined);
  const [older] = waiting >= 0 ? queue.splice(waiting, 1) : [];
  enqueue("edit/", { owner, field }, { ...older, field: `${owner}/${field}`, more: values });
}

export const undo = () => enqueue("undo/", {});
export const redo = () => enqueue("redo/", {});
export const pending = () => queue.length > 0;

/* When everything that was typed has been saved. */
export async function settled() {
  while (pending()) await new Promise(done => document.addEventListener("draft:answered", done, { once: true }));
}

/* since: the revision that was on the page when the edit was made. made: the same, or the newest of our own after it, for what
   waits was made with those in view. own: our own after `since`, where others' lie between. */
function enqueue(part, values, { field = "", more = [], made = revision(), since = made, own = [] } = {}) {
  queue.push({ part, values, field, more, made, since, own, key: crypto.randomUUID?.() ?? String(Math.random()) });
  show();
  send();
}

/* For styles, for whoever has to know that nothing is under way, and for the page after this one. */
function show() {
  board().toggleAttribute("data-saving", pending());
  keep(queue);
}

async function send() {
  clearTimeout(timer);
  if (sending || asking || queue.length === 0) return;
  sending = true;
  const item = queue[0];
  item.at = revision();
  tell("Saving…");
  const answer = await post(item);
  if (!answer || answer.response.status >= 500) {
    sending = false;
    return retryLater();
  }
  pause = FIRST_PAUSE;
  settle(answer, item);
  sending = leaving; // not before: what the answer swaps may send the field that had the focus, and that comes after it
  show();
  document.dispatchEvent(new CustomEvent("draft:answered"));
  if (owed && !pending()) {
    owed = false; // the last edit was refused, and brought no panel
    catchUp();
  }
  send();
}

/* {response, html}, or nothing without a connection. */
async function post(item) {
  try {
    const response = await fetch(url(item.part), { method: "POST", body: body(item), headers: headers(), credentials: "same-origin" });
    return { response, html: await response.text() };
  } catch {
    return null;
  }
}

function settle({ response, html }, item) {
  if (response.status === 409) return ask(item, html);
  const elsewhere = response.headers.get("HX-Redirect");
  if (elsewhere || response.status === 401 || response.redirected) return signIn(elsewhere);
  if (response.status === 403 && !item.reloaded) return signIn("", item);
  queue.shift();
  if (!response.ok && response.status !== 422) {
    tell("Not saved");
    toast({ message: refusal(response.status), kind: "failed" });
    return;
  }
  const events = response.headers.get("HX-Trigger");
  const saved = JSON.parse(events ?? "{}")["draft:saved"];
  if (saved && item.at !== revision()) {
    if (saved.was) follow(saved.was, saved.focus);
    catchUp(); // the page was brought further meanwhile, and the answer is about less
  } else takeAnswer(html, events);
  for (const one of saved?.wrote ? queue : []) madeAfter(one, saved.wrote); // also what the answer made the panel send
}

/* Where nobody else came between, there is no more to tell of the two than the newer one. */
function madeAfter(one, wrote) {
  if (wrote <= one.since) return;
  one.own.push(wrote);
  while (one.own.includes(Number(one.since) + 1)) one.since = String(Number(one.since) + 1);
  one.own = one.own.filter(number => number > one.since);
  if (wrote > one.made) one.made = String(wrote);
}

/* The sign-in has ended, or the page's token has: what is not saved waits for the page that comes back. */
function signIn(elsewhere, item = {}) {
  item.reloaded = true;
  leaving = true;
  keep(queue);
  if (elsewhere) location.assign(elsewhere);
  else location.reload();
}

function body(item) {
  const again = item.on || owed ? { shape: "" } : {};
  const about = { ...panelNow(), ...again, revision: item.made, since: item.since, own: item.own, shown: item.at, edit_key: item.key, ...(item.over && { over: item.over }) };
  const fields = [...Object.entries(item.values), ...item.more, ...Object.entries(about)];
  return new URLSearchParams(fields);
}

/* A panel from before the edits that wait would take back what was typed: the last of them brings it. None opens one that
   was closed meanwhile. */
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
  if (detail.target.id !== "panel") return;
  owed = pending();
  detail.shouldSwap = !owed && !detail.target.hidden;
});

const headers = () => ({ "HX-Request": "true", "HX-Current-URL": location.href, ...JSON.parse(document.body.getAttribute("hx-headers")) });

function retryLater() {
  tell(queue.length > 1 ? `${queue.length} edits not saved, retrying` : "Not saved, retrying", true);
  timer = setTimeout(send, pause);
  pause = Math.min(LONGEST_PAUSE, pause * 2);
}

/* Somebody else's edit came first. Ours waits at the head of the queue for a word: apply it to theirs, put it in the place of
   theirs, or take theirs. */
function ask(item, html) {
  tell("Not saved", true);
  asking = true;
  swapParts(html);
  const dialog = document.getElementById("stale");
  const { revision: on, madeOn } = dialog.dataset;
  const answer = (selector, act) =>
    dialog.querySelector(selector)?.addEventListener("click", async () => {
      asking = false;
      dialog.close();
      act();
      show();
      await catchUp().catch(() => {}); // the next answer brings what is missing
      send();
    });
  dialog.addEventListener("close", () => {
    if (!asking) return;
    asking = false;
    send(); // closed without a word: asked again
  });
  const chosen = over => {
    Object.assign(item, { on, over });
    for (const one of queue) Object.assign(one, { made: on, since: on, own: [] }); // what waits behind it is not asked about again
  };
  answer("[data-reapply]", () => chosen(""));
  answer("[data-overwrite]", () => chosen(madeOn));
  answer("[data-take-theirs]", () => queue.shift());
}

document.addEventListener("draft:saved", ({ detail }) => {
  board().dataset.revision = detail.revision;
  dismiss(); // what others did is in the answer
  if (detail.was) follow(detail.was, detail.focus);
  announce(detail.announce);
});

/* A step has another id: what waits for it, and what is open, goes by that one. */
function follow(was, now) {
  const panel = document.getElementById("panel");
  if (panel.dataset.owner === was) panel.dataset.owner = now;
  for (const item of queue.filter(item => item.values.owner === was)) {
    item.values.owner = now;
    item.field = `${now}/${item.values.field}`;
  }
  for (const { values } of queue) if (values.operation) values.operation = JSON.stringify(JSON.parse(values.operation), (key, value) => named(key, value, was, now));
}

const NAMES = ["step", "steps", "trigger", "after", "parent", "beside"];

function named(key, value, was, now) {
  if (!NAMES.includes(key)) return value;
  return Array.isArray(value) ? value.map(one => (one === was ? now : one)) : value === was ? now : value;
}

document.addEventListener("draft:refused", ({ detail }) => {
  tell("Not saved");
  if (!detail.field) toast({ message: detail.message, kind: "failed" });
});

function tell(text, worry = false) {
  const place = document.getElementById("saved");
  if (!place) return;
  place.textContent = text;
  place.classList.toggle("is-unsaved", worry);
  place.classList.toggle("hide-md", !worry); // what is not saved is told on any screen
}

const refusal = status => (status === 403 ? "Your role does not allow that. Nothing was changed." : "That did not work. Nothing was changed.");

addEventListener("online", send);
addEventListener("beforeunload", event => {
  if (pending() && !leaving) event.preventDefault();
});

if (queue.length) {
  show();
  send();
}
