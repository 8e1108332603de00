/* Dragging a step: it lifts, its place stays as a ghost, and the nearest legal + becomes a drop target. A finger that moves
   at once pans the canvas; one that rests on a card lifts it, and opens its menu when it is let go where it was. */
import { announce, card, readonly } from "hf/canvas/board";
import { edit } from "hf/canvas/edits";
import { openMenu } from "hf/canvas/menu";
import { legal, placeOf } from "hf/canvas/places";
import { about, chosen, named } from "hf/canvas/selection";
import { view } from "hf/canvas/view";

const THRESHOLD = 8;
const RESTS = 350;
const NEAR = 80;
const EDGE = 48;

let held = null;

document.addEventListener("pointerdown", event => {
  if (held) return held.ghost || drop(); // a second finger: not a step is meant, but the canvas
  const box = event.target.closest("#stage .step[data-step]:not([data-trigger])");
  if (!box || event.button !== 0 || readonly() || event.target.closest("[data-menu], [data-fold]")) return;
  const at = [event.clientX, event.clientY];
  held = { box, steps: chosen(box.dataset.step), pointer: event.pointerId, touch: event.pointerType === "touch", from: at, at };
  if (held.touch) held.rests = setTimeout(lift, RESTS);
});

document.addEventListener("pointermove", event => {
  if (event.pointerId !== held?.pointer) return;
  held.at = [event.clientX, event.clientY];
  if (!held.ghost) {
    if (!isMoved()) return;
    if (held.touch) return drop();
    lift();
  }
  event.preventDefault();
  carry();
});

document.addEventListener("pointerup", event => {
  if (event.pointerId !== held?.pointer) return;
  const { box, ghost, steps, target, touch, moved } = held;
  drop();
  if (!ghost) return;
  if (touch && !moved) setTimeout(openMenu, 0, box.dataset.step); // after the release, which would close it
  addEventListener("click", swallow, { capture: true, once: true });
  setTimeout(() => removeEventListener("click", swallow, { capture: true }));
  if (target && moved) edit({ op: "move", ...about(steps), place: placeOf(target) });
});

document.addEventListener("keydown", event => {
  if (event.key !== "Escape" || !held?.ghost) return;
  event.stopPropagation();
  drop();
}, { capture: true });

document.addEventListener("pointercancel", event => event.pointerId === held?.pointer && drop());
document.addEventListener("contextmenu", event => held?.touch && swallow(event), { capture: true });
document.addEventListener("dragstart", event => event.target.closest?.("#stage") && event.preventDefault());

/* Steps were swapped meanwhile: a + that is gone is no place any more. */
document.addEventListener("canvas:swapped", () => {
  if (!held?.ghost) return;
  clearTarget();
  held.target = null;
  held.places = legal(held.steps.filter(card));
});

const isMoved = () => Math.hypot(held.at[0] - held.from[0], held.at[1] - held.from[1]) >= THRESHOLD;

function lift() {
  const { box, steps } = held;
  const frame = box.getBoundingClientRect();
  const ghost = box.cloneNode(true);
  for (const one of [ghost, ...ghost.querySelectorAll("[id]")]) one.removeAttribute("id");
  ghost.classList.add("is-lifted");
  ghost.setAttribute("aria-hidden", "true");
  ghost.style.scale = view().scale;
  held.grip = [held.from[0] - frame.left, held.from[1] - frame.top];
  held.ghost = ghost;
  held.places = legal(steps);
  if (steps.length > 1) ghost.append(countOf(steps));
  document.body.append(ghost);
  for (const step of steps) card(step).classList.add("is-dragging");
  document.documentElement.classList.add("is-dragging-step");
  announce(`Moving ${named(steps)}`);
  carry();
  requestAnimationFrame(scrollAtEdge);
}

function carry() {
  held.moved ||= isMoved();
  held.ghost.style.translate = `${held.at[0] - held.grip[0]}px ${held.at[1] - held.grip[1]}px`;
  aim(nearest());
}

function countOf(steps) {
  const mark = document.createElement("span");
  mark.className = "step__mark";
  mark.textContent = `${steps.length} steps`;
  return mark;
}

function nearest() {
  const [atX, atY] = held.at;
  let best = null;
  let least = NEAR;
  for (const add of held.places) {
    const { left, top, width, height } = (held.target === add && add.parentElement.querySelector(".drop") || add).getBoundingClientRect();
    const x = Math.max(left, Math.min(atX, left + width));
    const y = Math.max(top, Math.min(atY, top + height));
    const distance = Math.hypot(atX - x, atY - y);
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
  clearTimeout(held.rests);
  clearTarget();
  held.ghost?.remove();
  for (const step of held.steps) card(step)?.classList.remove("is-dragging");
  document.documentElement.classList.remove("is-dragging-step");
  held = null;
}

/* As long as it is held there. */
function scrollAtEdge() {
  if (!held?.ghost) return;
  const frame = view().getBoundingClientRect();
  const push = (at, low, high) => (at < low + EDGE ? 8 : at > high - EDGE ? -8 : 0);
  const dx = push(held.at[0], frame.left, frame.right);
  const dy = push(held.at[1], frame.top, frame.bottom);
  if (dx || dy) {
    view().pan(dx, dy);
    aim(nearest());
  }
  requestAnimationFrame(scrollAtEdge);
}

const swallow = event => {
  event.preventDefault();
  event.stopPropagation();
};
