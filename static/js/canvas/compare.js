/* Two canvases: a change that is chosen, or a step on one of them, is shown on both. */
import { announce } from "hf/canvas/board";
import "hf/canvas/view";

function show(step) {
  const found = [];
  for (const canvas of document.querySelectorAll("hf-canvas")) {
    for (const one of canvas.querySelectorAll(".step.is-selected")) one.classList.remove("is-selected");
    const card = canvas.querySelector(`.step[data-step="${CSS.escape(step)}"]`);
    if (!card) continue;
    card.classList.add("is-selected");
    canvas.show(card);
    found.push(canvas.closest("section").getAttribute("aria-label"));
  }
  const rows = [...document.querySelectorAll("[data-show-step]")];
  for (const row of rows) row.closest(".change").classList.toggle("is-active", row.dataset.showStep === step);
  rows.find(row => row.dataset.showStep === step)?.scrollIntoView({ block: "nearest" });
  announce(`Shown in ${found.join(" and ")}`);
}

document.addEventListener("click", event => {
  const row = event.target.closest("[data-show-step]");
  const card = event.target.closest("hf-canvas .step[data-step]");
  if (card && !event.ctrlKey && !event.metaKey) event.preventDefault();
  if (row || card) show(row ? row.dataset.showStep : card.dataset.step);
});
