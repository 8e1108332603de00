/* Ctrl+F: a step by its name, id, type, note, or by what stands in its settings; all of them until something is typed. Arrows walk
   what was found, Enter opens it. */
import { announce, asked, card, current, focusCard, url } from "hf/canvas/board";
import { reveal } from "hf/canvas/folding";
import { open as openPanel } from "hf/canvas/panel";
import { view } from "hf/canvas/view";
import { mark, marked, neighbour } from "hf/listbox";

const TYPED = 120;
let before = null;
let stood = ""; // the step at which one was
let timer = null;

let looking = null;

const box = () => document.getElementById("find");
const input = () => document.getElementById("find-input");
const list = () => document.getElementById("find-list");
const hits = () => [...list().querySelectorAll("[data-step]")];

function open() {
  if (box().hidden) [before, stood] = [document.activeElement, current()];
  box().hidden = false;
  input().focus();
  input().select();
  lookNow(); // steps may have come or gone since
}

function close({ back = true } = {}) {
  box().hidden = true;
  if (back) before?.focus?.({ preventScroll: true });
}

async function look() {
  const { value } = input();
  const html = await asked(`${url("find/")}?${new URLSearchParams({ q: value })}`);
  if (input().value !== value) return;
  list().innerHTML = html;
  list().hidden = !html.trim();
  input().setAttribute("aria-expanded", !list().hidden);
  if (!value.trim()) return mark(input(), hits(), hits().find(hit => hit.dataset.step === stood));
  announce(`${hits().length} step${hits().length === 1 ? "" : "s"} found`);
  select(hits()[0]);
}

/* What is chosen is shown on the canvas at once. */
function select(hit) {
  mark(input(), hits(), hit);
  if (!hit) return;
  reveal(hit.dataset.step);
  if (card(hit.dataset.step)) view().centre(card(hit.dataset.step));
}

/* Enter may be pressed before what was typed has been looked for. */
async function takeMarked() {
  if (timer) await lookNow();
  await looking;
  take(marked(hits()));
}

function lookNow() {
  clearTimeout(timer);
  timer = null;
  return (looking = look());
}

async function take(hit) {
  if (!hit) return;
  const { step, to } = hit.dataset;
  close({ back: false });
  reveal(step);
  focusCard(step);
  if (await openPanel(step, to ? { tab: "setup", field: to } : {})) requestAnimationFrame(() => card(step) && view().centre(card(step))); // the panel took room
}

document.addEventListener("keydown", event => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f" && !event.shiftKey && !event.altKey) {
    if (document.querySelector("dialog[open]") || document.activeElement === input()) return; // the browser's own, twice pressed
    event.preventDefault();
    open();
  } else if (event.target === input()) walk(event);
});

function walk(event) {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") select(neighbour(hits(), event.key));
  else if (event.key === "Enter") takeMarked();
  else if (event.key === "Escape") close();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

document.addEventListener("input", event => {
  if (event.target !== input()) return;
  clearTimeout(timer);
  timer = setTimeout(lookNow, TYPED);
});

document.addEventListener("click", event => {
  const hit = event.target.closest("#find-list [data-step]");
  if (event.target.closest("[data-find]")) open();
  else if (hit) take(hit);
  else if (!box().hidden && !event.target.closest("#find")) close({ back: false });
});
