/* "Move to…": every legal + becomes a target; a click or Enter takes the step there, Esc leaves it where it was. */
import { announce, board, card, focusCard } from "hf/canvas/board";
import { edit } from "hf/canvas/edits";
import { legal, placeOf } from "hf/canvas/places";
import { about, named } from "hf/canvas/selection";

let steps = [];

export function begin(ids) {
  const places = ids.length ? legal(ids) : [];
  if (!places.length) return announce(`There is no other place for ${named(ids)}`);
  steps = ids;
  board().dataset.moving = ids.join(" ");
  for (const id of ids) card(id).classList.add("is-dragging");
  for (const add of places) {
    add.dataset.label = add.getAttribute("aria-label");
    add.setAttribute("aria-label", add.dataset.label.replace(/^Add a .*?step/, `Move ${named(ids)} to`));
    add.classList.add("is-target");
  }
  places[0].focus();
  announce(`Choose where to move ${named(ids)}: Tab walks the places, Enter takes it there, Escape leaves it.`);
}

export function end() {
  if (!steps.length) return;
  for (const id of steps) card(id)?.classList.remove("is-dragging");
  for (const add of document.querySelectorAll("#stage .add.is-target")) {
    add.setAttribute("aria-label", add.dataset.label);
    add.classList.remove("is-target");
  }
  delete board().dataset.moving;
  steps = [];
}

document.addEventListener("click", event => {
  if (!steps.length) return;
  const add = event.target.closest("#stage .add.is-target");
  if (add) edit({ op: "move", ...about(steps), place: placeOf(add) });
  if (add || !event.target.closest("[data-act]")) end();
});

document.addEventListener("keydown", event => {
  if (!steps.length) return;
  if (event.key === "Escape") {
    const [was] = steps;
    end();
    focusCard(was);
  } else if (event.key === "Tab" || event.key.startsWith("Arrow")) {
    const places = [...document.querySelectorAll("#stage .add.is-target")];
    const back = event.shiftKey || event.key === "ArrowUp" || event.key === "ArrowLeft";
    places[(places.indexOf(document.activeElement) + (back ? -1 : 1) + places.length) % places.length].focus();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}, { capture: true });
