/* Dragging a step: it lifts, its place stays as a ghost, and the nearest legal + becomes a drop target. */
import { announce, card, readonly } from "hf/canvas/board";
import { edit } from "hf/canvas/edits";
import { placeOf } from "hf/canvas/picker";
import { legal } from "hf/canvas/places";
import { about, chosen, named } from "hf/canvas/selection";
import { view } from "hf/canvas/view";

const THRESHOLD = 6;
const NEAR = 80;
const EDGE = 48;

let held = null;

document.addEventListener("pointerdown", event => {
  const box = event.target.closest("#stage .step[data-step]:not([data-trigger])");
  if (!box || event.button !== 0 || event.pointerType === "touch" || readonly() || event.target.closest("[data-menu]")) return;
  held = { box, steps: chosen(box.dataset.step), from: [event.clientX, event.clientY] };
});

document.addEventListener("pointermove", event => {
  if (!held) return;
  if (!held.ghost) {
    if (Math.hypot(event.clientX - held.from[0], event.clientY - held.from[1]) < THRESHOLD) return;
    lift(event);
  }
  event.preventDefault();
  held.ghost.style.translate = `${event.clientX - held.grip[0]}px ${event.clientY - held.grip[1]}px`;
  scrollAtEdge(event);
  aim(nearest(event));
});

document.addEventListener("pointerup", () => {
  if (!held) return;
  const { ghost, steps, target } = held;
  drop();
  if (!ghost) return;
  addEventListener("click", swallow, { capture: true, once: true });
  setTimeout(() => removeEventListener("click", swallow, { capture: true }));
  if (target) edit({ op: "move", ...about(steps), place: placeOf(target) });
});

document.addEventListener("keydown", event => {
  if (event.key !== "Escape" || !held?.ghost) return;
  event.stopPropagation();
  drop();
}, { capture: true });

document.addEventListener("pointercancel", drop);
document.addEventListener("dragstart", event => event.target.closest?.("#stage") && event.preventDefault());

function lift(event) {
  const { box, steps } = held;
  const frame = box.getBoundingClientRect();
  const ghost = box.cloneNode(true);
  for (const one of [ghost, ...ghost.querySelectorAll("[id]")]) one.removeAttribute("id");
  ghost.classList.add("is-lifted");
  ghost.setAttribute("aria-hidden", "true");
  ghost.style.scale = view().scale;
  held.grip = [event.clientX - frame.left, event.clientY - frame.top];
  held.ghost = ghost;
  held.places = legal(steps);
  if (steps.length > 1) ghost.append(countOf(steps));
  document.body.append(ghost);
  for (const step of steps) card(step).classList.add("is-dragging");
  document.documentElement.classList.add("is-dragging-step");
  announce(`Moving ${named(steps)}`);
}

function countOf(steps) {
  const mark = document.createElement("span");
  mark.className = "step__mark";
  mark.textContent = `${steps.length} steps`;
  return mark;
}

function nearest(event) {
  let best = null;
  let least = NEAR;
  for (const add of held.places) {
    const { left, top, width, height } = (held.target === add && add.parentElement.querySelector(".drop") || add).getBoundingClientRect();
    const x = Math.max(left, Math.min(event.clientX, left + width));
    const y = Math.max(top, Math.min(event.clientY, top + height));
    const distance = Math.hypot(event.clientX - x, event.clientY - y);
    if (distance < least) [best, least] = [add, distance];
  }
  return best;
}

/* The + gives way to a frame as wide as a step. */
function aim(add) {
  if (held.target === add) return;
  clearTarget();
  held.target = add;
  if (!add) return;
  const target = document.createElement("div");
  target.className = "drop";
  target.textContent = `Drop to move ${named(held.steps)} here`;
  add.hidden = true;
  add.parentElement.classList.add("is-drop");
  add.parentElement.append(target);
}

function clearTarget() {
  const link = held?.target?.parentElement;
  if (!link) return;
  link.classList.remove("is-drop");
  link.querySelector(".drop")?.remove();
  held.target.hidden = false;
}

function drop() {
  if (!held) return;
  clearTarget();
  held.ghost?.remove();
  for (const step of held.steps) card(step)?.classList.remove("is-dragging");
  document.documentElement.classList.remove("is-dragging-step");
  held = null;
}

function scrollAtEdge(event) {
  const frame = view().getBoundingClientRect();
  const push = (at, low, high) => (at < low + EDGE ? 8 : at > high - EDGE ? -8 : 0);
  const dx = push(event.clientX, frame.left, frame.right);
  const dy = push(event.clientY, frame.top, frame.bottom);
  if (dx || dy) view().pan(dx, dy);
}

const swallow = event => {
  event.preventDefault();
  event.stopPropagation();
};
