/* Edits, one after the other. Each names the draft's revision; what could not be sent stays in the queue and is tried again,
   so that a lost connection loses nothing. An edit that was sent carries a key: sent twice, it counts once. */
import { announce, board, revision, swapParts, url } from "hf/canvas/board";
import { toast } from "hf/toast";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30000;

const queue = [];
let sending = false;
let pause = FIRST_PAUSE;
let timer = null;

/* operation: {op, ...}. */
export const edit = operation => enqueue("edit/", { operation: JSON.stringify(operation) });

/* What was typed into one field; a newer value of the same field replaces one that still waits. */
export function editField(owner, field, values) {
  const waiting = queue.findIndex((item, index) => item.field === `${owner}/${field}` && !(index === 0 && sending));
  if (waiting >= 0) queue.splice(waiting, 1);
  enqueue("edit/", { owner, field }, { field: `${owner}/${field}`, more: values });
}

export const undo = () => enqueue("undo/", {});
export const redo = () => enqueue("redo/", {});
export const pending = () => queue.length > 0;

/* When everything that was typed has been saved. */
export async function settled() {
  while (pending()) await new Promise(done => document.addEventListener("draft:answered", done, { once: true }));
}

function enqueue(part, values, { field = "", more = [] } = {}) {
  queue.push({ part, values, field, more, key: crypto.randomUUID?.() ?? String(Math.random()) });
  show();
  send();
}

/* For styles, and for whoever has to know that nothing is under way. */
const show = () => board().toggleAttribute("data-saving", pending());

async function send() {
  clearTimeout(timer);
  if (sending || queue.length === 0) return;
  sending = true;
  const item = queue[0];
  tell("Saving…");
  let response = null;
  try {
    response = await fetch(url(item.part), { method: "POST", body: body(item), headers: headers(), credentials: "same-origin" });
  } catch { /* no connection */ }
  sending = false;
  if (!response || response.status >= 500) return retryLater();
  pause = FIRST_PAUSE;
  await settle(response, item);
  show();
  document.dispatchEvent(new CustomEvent("draft:answered"));
  send();
}

async function settle(response, item) {
  const html = await response.text();
  if (response.status === 409) return stopAt(item, html);
  queue.shift();
  if (response.status === 401 || response.redirected) return location.reload();
  if (!response.ok && response.status !== 422) {
    tell("Not saved");
    toast({ message: refusal(response.status), kind: "failed" });
    return;
  }
  swapParts(html);
  dispatchEvents(response.headers.get("HX-Trigger"));
}

function body(item) {
  const data = new URLSearchParams();
  for (const [name, value] of Object.entries(item.values)) data.append(name, value);
  for (const [name, value] of item.more) data.append(name, value);
  data.append("revision", revision());
  data.append("key", item.key);
  const panel = document.getElementById("panel");
  if (panel && !panel.hidden) {
    data.append("open", panel.dataset.owner);
    data.append("tab", panel.dataset.tab);
    data.append("shape", panel.dataset.shape);
  }
  return data;
}

const headers = () => ({ "HX-Request": "true", ...JSON.parse(document.body.getAttribute("hx-headers")) });

function retryLater() {
  tell("Not saved, retrying");
  timer = setTimeout(send, pause);
  pause = Math.min(LONGEST_PAUSE, pause * 2);
}

/* Somebody else's edit came first. Ours waits at the head of the queue for a word: apply it to theirs, or take theirs. */
function stopAt(item, html) {
  tell("Not saved");
  swapParts(html);
  document.querySelector("[data-reapply]")?.addEventListener("click", event => {
    board().dataset.revision = event.currentTarget.dataset.reapply;
    event.currentTarget.closest("dialog").close();
    board().dataset.behind = "";
    send();
  });
  document.getElementById("stale")?.addEventListener("cancel", event => event.preventDefault());
}

function dispatchEvents(header) {
  if (!header) return;
  for (const [name, detail] of Object.entries(JSON.parse(header)))
    document.dispatchEvent(new CustomEvent(name, { detail }));
}

document.addEventListener("draft:saved", ({ detail }) => {
  const stage = board();
  if ("behind" in stage.dataset) return location.reload();
  stage.dataset.revision = detail.revision;
  announce(detail.announce);
});

document.addEventListener("draft:refused", ({ detail }) => {
  tell("Not saved");
  if (!detail.field) toast({ message: detail.message, kind: "failed" });
});

function tell(text) {
  const place = document.getElementById("saved");
  if (place) place.textContent = text;
}

const refusal = status => (status === 403 ? "Your role does not allow that. Nothing was changed." : "That did not work. Nothing was changed.");

addEventListener("online", send);
addEventListener("beforeunload", event => {
  if (pending() && !document.getElementById("stale")?.open) event.preventDefault();
});
