/* Swaps must not throw away where somebody was: focus and caret return to the element of the same id,
   [data-keep-scroll] elements keep their scroll, and [data-keep-open] details stay open. Works for out-of-band swaps too. */

let place = null;
let scrolls = new Map();
let opened = [];

document.addEventListener("htmx:beforeSwap", remember);
document.addEventListener("htmx:oobBeforeSwap", remember);
document.addEventListener("htmx:afterSettle", restore);
document.addEventListener("htmx:oobAfterSwap", restore);

export function remember() {
  const active = document.activeElement;
  if (active && active !== document.body)
    place = active.id ? { id: active.id, start: active.selectionStart, end: active.selectionEnd } : null;
  for (const element of document.querySelectorAll("[data-keep-scroll][id]"))
    scrolls.set(element.id, [element.scrollLeft, element.scrollTop]);
  opened = [...document.querySelectorAll("details[data-keep-open][id][open]")].map(element => element.id);
}

export function restore() {
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  for (const [id, [left, top]] of scrolls) {
    const element = document.getElementById(id);
    if (element) Object.assign(element, { scrollLeft: left, scrollTop: top });
  }
  scrolls = new Map();
  const isLost = !document.activeElement || document.activeElement === document.body;
  if (!isLost) place = null; // whoever leaves it later means to
  const element = place && document.getElementById(place.id);
  if (!element) return;
  element.focus({ preventScroll: true });
  if (place.start != null) element.setSelectionRange?.(place.start, place.end);
  place = null;
}
