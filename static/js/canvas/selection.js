/* Several steps at once: Shift+click and Shift+arrows pick them, Ctrl+A picks those of a lane and then all, Esc lets them go.
   What acts on a picked step, or on one inside it, acts on all that are picked. */
import { announce, card, cards, current, isTrigger, nameOf } from "hf/canvas/board";
import { isTyping } from "hf/keyboard";

const picked = new Set();
let anchor = "";

/* The steps that a key or a menu acts on, in the order of the page. */
export function chosen(step = current()) {
  const all = cards().map(one => one.dataset.step).filter(id => picked.has(id));
  const free = !step || document.activeElement === document.body;
  return isPicked(step) || (free && all.length) ? all : step && !isTrigger(step) ? [step] : [];
}

/* By itself, or with a step that it stands in. */
function isPicked(step) {
  for (let node = nodeOf(step); node; node = node.parentElement.closest(".node")) if (picked.has(node.id.slice(5))) return true;
  return false;
}

const nodeOf = id => document.getElementById(`node-${id}`);

/* What an operation says of them. */
export const about = ids => (ids.length === 1 ? { step: ids[0] } : { steps: ids });
export const named = ids => (ids.length === 1 ? nameOf(ids[0]) : `${ids.length} steps`);

export function pick(ids) {
  picked.clear();
  ids.forEach(id => picked.add(id));
  anchor = ids.at(-1) ?? "";
  show();
}

/* From where the picking began, when both stand in one lane; else this one too, or not any more. */
function pickTo(id) {
  if (!card(id) || isTrigger(id)) return;
  if (!picked.size) begin(id);
  const from = nodeOf(anchor);
  const to = nodeOf(id);
  if (from && from !== to && from.parentElement === to.parentElement && !picked.has(id)) between(from, to).forEach(one => picked.add(one));
  else if (picked.has(id) && picked.size > 1) picked.delete(id);
  else picked.add(id);
  anchor = id;
  show();
  announce(words());
}

/* One step further by keyboard: back over what is picked lets it go again. */
export function walkTo(from, id) {
  if (!card(id) || isTrigger(id)) return;
  if (picked.has(id)) picked.delete(from);
  else if (card(from) && !isTrigger(from)) picked.add(from);
  picked.add(id);
  anchor = id;
  show();
  announce(words());
}

function begin(id) {
  const open = current();
  anchor = open && open !== id && card(open) && !isTrigger(open) ? open : id;
  if (anchor !== id) picked.add(anchor);
}

function between(from, to) {
  const ids = idsIn(from.parentElement);
  const ends = [ids.indexOf(from.id.slice(5)), ids.indexOf(to.id.slice(5))].sort((a, b) => a - b);
  return ids.slice(ends[0], ends[1] + 1);
}

/* The steps of one lane, in its order. */
const idsIn = lane => [...lane.children].map(node => node.id.replace(/^node-/, "")).filter(id => card(id) && !isTrigger(id));

/* Of the lane where one stands; once more, and it is the whole flow. */
function pickAll() {
  const lane = nodeOf(current())?.parentElement;
  const own = lane ? idsIn(lane) : [];
  const done = own.length === picked.size && own.every(id => picked.has(id));
  pick(own.length && !done ? own : idsIn(document.getElementById("flow")));
  announce(words());
}

const words = () => `${picked.size} step${picked.size === 1 ? "" : "s"} picked`;

/* Cards are swapped by edits, and steps go: what is picked is painted anew each time. */
function show() {
  for (const id of [...picked]) if (!card(id)) picked.delete(id);
  for (const one of cards()) {
    const on = isPicked(one.dataset.step);
    one.classList.toggle("is-picked", on);
    const name = one.querySelector(".step__name");
    if (on) name.setAttribute("aria-description", "picked");
    else name.removeAttribute("aria-description");
  }
  const bar = document.getElementById("selection");
  if (!bar) return;
  bar.hidden = picked.size < 2;
  bar.querySelector("output").textContent = words();
  bar.querySelector("[data-menu]").dataset.menu = [...picked][0] ?? "";
}

document.addEventListener("mousedown", event => event.shiftKey && event.target.closest("#stage .step[data-step]") && event.preventDefault());

document.addEventListener("click", event => {
  const box = event.target.closest("#stage .step[data-step]");
  if (box && event.shiftKey && !event.target.closest("[data-menu]")) {
    event.preventDefault();
    pickTo(box.dataset.step);
    box.querySelector(".step__name").focus({ preventScroll: true });
  } else if (event.target.closest("[data-let-go]")) letGo();
  else if (picked.size && (event.target.closest("#stage .step__name") || event.target.matches("hf-canvas, .canvas__stage"))) letGo();
});

function letGo() {
  const was = anchor;
  pick([]);
  announce("Nothing is picked");
  if (document.activeElement === document.body) card(was)?.querySelector(".step__name").focus({ preventScroll: true });
}

document.addEventListener("keydown", event => {
  if (event.defaultPrevented || isTyping(event.target) || document.querySelector("dialog[open], :popover-open")) return;
  if (event.key === "Escape" && picked.size && !document.getElementById("picker")) letGo();
  else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "a") {
    pickAll();
  } else return;
  event.preventDefault();
});

/* A step that came, or another one that was changed, is what one works on now. */
document.addEventListener("draft:saved", ({ detail }) => {
  if (detail.picked?.length > 1) pick(detail.picked);
  else if (card(detail.focus) && !isPicked(detail.focus)) pick([]);
});
document.addEventListener("canvas:swapped", () => picked.size && show());
