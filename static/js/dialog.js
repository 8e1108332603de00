/* Native dialogs: [data-dialog="id"] opens one, <dialog data-open> opens itself when it arrives, [data-close-dialog] and a
   click beside it close it. That button is none of its form's: Enter in a field presses the first of these. */

document.addEventListener("click", event => {
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog)?.showModal();
  event.target.closest("[data-close-dialog]")?.closest("dialog").close();
  if (event.target.matches("dialog.dialog[open]") && isBeside(event.target, event)) event.target.close();
});

document.addEventListener("htmx:load", event => openWithin(event.detail.elt));
openWithin(document);

function openWithin(root) {
  const waiting = root.matches?.("dialog[data-open]") ? [root] : root.querySelectorAll("dialog[data-open]");
  for (const dialog of waiting) {
    dialog.removeAttribute("data-open");
    if (!dialog.open) dialog.showModal();
  }
}

/* The backdrop belongs to the dialog: only the place tells them apart. A click by keyboard has no place (0, 0). */
function isBeside(dialog, { clientX, clientY }) {
  if (!clientX && !clientY) return false;
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}
