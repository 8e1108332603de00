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
  for (const line of button.closest("ol").querySelectorAll(`li[data-fold="${button.dataset.unfold}"]`)) line.hidden = !open;
}

function unfoldText(button) {
  button.nextElementSibling.hidden = false;
  button.remove();
}
