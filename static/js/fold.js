/* Unfolds the long parts of a JSON view. */

document.addEventListener("click", event => {
  const button = event.target.closest("button.fold");
  if (!button) return;
  if (button.dataset.unfold) unfoldLines(button);
  else unfoldText(button);
});

function unfoldLines(button) {
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", open);
  const lines = button.closest("ol").querySelectorAll(`li[data-fold="${button.dataset.unfold}"]`);
  for (const line of lines) line.hidden = !open;
}

function unfoldText(button) {
  button.nextElementSibling.hidden = false;
  button.remove();
}
