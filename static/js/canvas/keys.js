/* The keyboard on the canvas: arrows walk the steps by where they stand, A adds, Del removes, Esc closes the top layer. */
import { announce, card, cards, current, focusCard, isTrigger, nameOf, readonly } from "hf/canvas/board";
import { toggleFold } from "hf/canvas/folding";
import { act, openMenu } from "hf/canvas/menu";
import { addNote } from "hf/canvas/notes";
import { close as closePanel, isOpen, open } from "hf/canvas/panel";
import { close as closePicker, openAfter } from "hf/canvas/picker";
import { chosen, walkTo } from "hf/canvas/selection";
import { view } from "hf/canvas/view";
import { isTyping } from "hf/keyboard";

const WAYS = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

document.addEventListener("keydown", event => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return escape(event);
  if (event.key === "F6") return nextPart(event);
  if (isTyping(event.target) || document.querySelector("dialog[open], :popover-open")) return;
  const onCanvas = event.target === document.body || event.target.closest("hf-canvas");
  if (!onCanvas) return;
  if (WAYS[event.key]) walk(event);
  else if (event.key === "+" || event.key === "=") view().zoom(0.1);
  else if (event.key === "-") view().zoom(-0.1);
  else if (event.key === "0") view().fitWhole();
  else if (event.key.toLowerCase() === "c" && current()) toggleFold(current());
  else if (!readonly()) editKey(event);
});

const EDITS = { Delete: "remove", Backspace: "remove", d: "duplicate", m: "move", t: "toggle", n: "note", r: "replace" };

function editKey(event) {
  const step = current() || chosen()[0];
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key === "n" && (event.shiftKey || !card(step))) {
    event.preventDefault();
    addNote(card(step) && !isTrigger(step) ? step : "");
  }
  if (event.defaultPrevented) return;
  const add = key === "a" && event.target.closest(".add");
  if (add) {
    event.preventDefault();
    return add.click();
  }
  if (!card(step)) return (key === "a" || EDITS[key]) && chooseFirst(event);
  if (key === "a" && isTrigger(step)) document.querySelector("#node-triggers .add")?.click();
  else if (key === "a") openAfter(step);
  else if (key === "e") open(step);
  else if (key === "ContextMenu" || (key === "F10" && event.shiftKey)) openMenu(step);
  else if (EDITS[key]) act(EDITS[key], step);
  else return;
  event.preventDefault();
}

/* A key that is about a step, and none is chosen. */
function chooseFirst(event) {
  event.preventDefault();
  enter();
  const first = current();
  announce(first ? `${nameOf(first)}. Press the key again for this step, or walk to another one by the arrows.` : "There is no step yet. Press Enter to choose what starts the flow.");
}

/* The step where one stands, else the first; on a flow without any, the place of its trigger. */
function enter() {
  const first = card(current()) ?? cards()[0];
  if (first) focusCard(first.dataset.step);
  else document.querySelector("#stage .step--missing")?.focus();
}

/* Canvas, panel, problems, and round again: nobody has to pass every step to reach the panel. */
function nextPart(event) {
  if (document.querySelector("dialog[open]")) return;
  event.preventDefault();
  const stops = [
    enter,
    () => visible("#panel input, #panel button, #panel [tabindex='0']")?.focus(),
    () => visible("#problems button")?.focus(),
  ];
  const parts = ["hf-canvas", "#panel", "#problems"].map(part => document.querySelector(part));
  const at = parts.findIndex(part => part.contains(document.activeElement));
  for (let next = at + 1; next <= at + parts.length; next++) {
    const part = parts[next % parts.length];
    if (part.hidden) continue;
    stops[next % parts.length]();
    return announce(part.getAttribute("aria-label"));
  }
}

/* A step that goes takes its card's focus with it: that goes to the nearest one before it that is still there, so that a person
   goes on where they were. */
let stood = [];
document.addEventListener("canvas:swapping", () => {
  const all = cards().map(one => one.dataset.step);
  stood = document.activeElement === document.body ? [] : all.slice(0, all.indexOf(current()) + 1).reverse();
});
for (const event of ["draft:saved", "draft:caught_up"]) {
  document.addEventListener(event, () => {
    const left = stood.find(card);
    if (left && left !== stood[0] && document.activeElement === document.body) focusCard(left);
    stood = [];
  });
}

const visible = selector => [...document.querySelectorAll(selector)].find(one => one.offsetParent && !one.disabled);

function escape(event) {
  if (document.querySelector("dialog[open], :popover-open")) return;
  if (document.getElementById("picker")) closePicker({ focus: true });
  else if (isOpen()) closePanel();
  else return;
  event.preventDefault();
}

function walk(event) {
  event.preventDefault();
  const from = document.activeElement.closest(LONE) ?? card(current());
  if (!from) return enter();
  const next = nearest(from, ...WAYS[event.key]);
  if (!next) return;
  if (next.matches(LONE)) return next.focus();
  if (event.shiftKey && from.dataset.step) walkTo(from.dataset.step, next.dataset.step);
  focusCard(next.dataset.step);
  view().show(next);
}

/* The + of a lane, body or flow that holds no step: where there is no card to walk to, the way leads there. */
const LONE = "#stage .link--open > .add[data-parent], #stage .node--triggers:nth-last-child(2) > .link > .add";

/* The nearest of them on that side. Sideways, what lies straight ahead counts as much nearer: the same row of the next lane.
   Downwards a step aside is no farther than one down, so that the way leads into a condition's lanes and not past them. */
function nearest(from, dx, dy) {
  const here = middle(from);
  let best = null;
  let least = Infinity;
  for (const one of [...cards(), ...document.querySelectorAll(LONE)].filter(one => one.offsetParent)) {
    const [x, y] = middle(one);
    const ahead = dx ? (x - here[0]) * dx : (y - here[1]) * dy;
    const aside = dx ? Math.abs(y - here[1]) : Math.abs(x - here[0]);
    if (ahead < 8) continue;
    const cost = ahead + aside * (dx ? 3 : 1);
    if (cost < least) [best, least] = [one, cost];
  }
  return best;
}

function middle(one) {
  const { left, top, width, height } = one.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
}
