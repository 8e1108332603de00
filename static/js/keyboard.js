/* Keys that work on every page: "?" opens the help, "/" goes to the search.
   Pages add their own keys and describe them in the block `keys`. */

const FIELDS =
  "input:not([type=checkbox], [type=radio], [type=button]), textarea, select, [contenteditable], [role=textbox]";

export const isTyping = element => element?.closest(FIELDS) != null;

const openHelp = () => {
  const dialog = document.getElementById("keys");
  if (dialog && !dialog.open) dialog.showModal();
};

document.addEventListener("keydown", event => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "?") openHelp();
  else if (event.key === "/" && focusSearch()) event.preventDefault();
});

document.addEventListener("click", event => {
  if (!event.target.closest("[data-help]")) return;
  event.target.closest("[popover]")?.hidePopover();
  openHelp();
});

/* The last one on the page is the most specific: a list's own filter before the search of the whole product. */
function focusSearch() {
  const field = [...document.querySelectorAll("[data-slash]")].filter(input => input.offsetParent).at(-1);
  field?.focus();
  field?.select();
  return Boolean(field);
}
