/* Several steps at once: Shift+click and Shift+arrows pick them, Ctrl+A picks all, Esc lets them go. What acts on a picked
   step acts on all that are picked. */
import { announce, card, cards, current, isTrigger, nameOf } from "hf/canvas/board";
import { isTyping } from "hf/keyboard";

const picked = new Set();
let anchor = "";

/* The steps that a key or a menu acts on, in the order of the page. */
export function chosen(step = current()) {
  const all = cards().map(one => one.dataset.step).filter(id => picked.has(id));
  const free = !step || document.activeElement === document.body;
  return picked.has(step) || (free && all.length) ? all : step && !isTrigger(step) ? [step] : [];
}

/* What an operation says of them. */
export const about = ids => (ids.length === 1 ? { step: ids[0] } : { steps: ids });
export const named = ids => (ids.length === 1 ? nameOf(ids[0]) : `${ids.length} steps`);
export const anyPicked = () => picked.size > 0;

export function pick(ids) {
  picked.clear();
  ids.forEach(id => picked.add(id));
  anchor = ids.at(-1) ?? "";
  show();
}

/* From where the picking began, when both stand in one lane; else this one too, or not any more. */
export function pickTo(id) {
  if (!card(id) || isTrigger(id)) return;
  if (!picked.size) begin(id);
  const from = document.getElementById(`node-${anchor}`);
  const to = document.getElementById(`node-${id}`);
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
  const nodes = [...from.parentElement.children];
  const ends = [nodes.indexOf(from), nodes.indexOf(to)].sort((a, b) => a - b);
  return nodes.slice(ends[0], ends[1] + 1).filter(node => node.id.startsWith("node-")).map(node => node.id.slice(5)).filter(id => card(id));
}

const words = () => `${picked.size} step${picked.size === 1 ? "" : "s"} picked`;

/* Cards are swapped by edits, and steps go: what is picked is painted anew each time. */
function show() {
  for (const id of [...picked]) if (!card(id)) picked.delete(id);
  for (const one of cards()) {
    const on = picked.has(one.dataset.step);
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
    pick(cards().map(one => one.dataset.step).filter(id => !isTrigger(id) && outermost(id)));
    announce(words());
  } else return;
  event.preventDefault();
});

const outermost = id => document.getElementById(`node-${id}`).parentElement.id === "flow";

document.addEventListener("draft:saved", ({ detail }) => {
  if (detail.picked?.length > 1) pick(detail.picked);
  else if (picked.size) show();
});
document.addEventListener("draft:caught_up", () => picked.size && show());
