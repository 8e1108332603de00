/* The problems drawer: F8 walks it, "Go to field" opens the place, a fix rewrites the reference. */
import { board } from "hf/canvas/board";
import { edit } from "hf/canvas/edits";
import { goTo, open } from "hf/canvas/panel";

let at = -1;

const list = () => [...document.querySelectorAll("#problems-list .problem")];

export function next() {
  const all = list();
  if (!all.length) return;
  show();
  at = (at + 1) % all.length;
  go(all[at]);
}

function go(problem) {
  for (const one of list()) one.classList.toggle("is-active", one === problem);
  problem.scrollIntoView({ block: "nearest" });
  const { step, field } = problem.dataset;
  open(step, { tab: ["retry", "timeout", "on_error", "on_interrupted"].includes(field.split(".")[0]) ? "safety" : "setup", field });
}

function show() {
  const part = document.getElementById("problems-list");
  if (part.hidden) toggle();
}

function toggle() {
  const part = document.getElementById("problems-list");
  part.hidden = !part.hidden;
  board().toggleAttribute("data-problems-folded", part.hidden);
  document.getElementById("problems-toggle").setAttribute("aria-expanded", !part.hidden);
}

document.addEventListener("click", event => {
  const { target } = event;
  const problem = target.closest("#problems-list .problem");
  const fix = target.closest("[data-fix]");
  if (fix) return edit(JSON.parse(fix.dataset.fix)); // the operation that puts it right, as the server knows it
  const field = target.closest("[data-to-field]")?.dataset.toField;
  if (field) return goTo(field);
  if (target.closest("[data-problems-toggle]")) return toggle();
  if (target.closest("[data-show-problems]")) return next();
  if (problem) {
    at = list().indexOf(problem);
    go(problem);
  }
});

document.addEventListener("keydown", event => {
  if (event.key !== "F8") return;
  event.preventDefault();
  next();
});

/* The drawer is swapped after every edit: what was folded stays folded. */
document.addEventListener("htmx:oobAfterSwap", event => {
  if (event.detail.target?.id !== "problems" || !("problemsFolded" in board().dataset)) return;
  const part = document.getElementById("problems-list");
  if (part) part.hidden = true;
  document.getElementById("problems-toggle")?.setAttribute("aria-expanded", "false");
});
