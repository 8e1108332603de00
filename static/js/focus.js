/* Swaps must not throw away where somebody was: focus and caret return to the element of the same id, or to the one that is called
   the same in the same field or part; [data-keep-scroll] elements keep their scroll, and [data-keep-open] details stay open. Works for out-of-band swaps too. */

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
    place = active.id ? { id: active.id, start: active.selectionStart, end: active.selectionEnd } : wayTo(active);
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
  const element = place && (place.id ? document.getElementById(place.id) : atTheEndOf(place));
  if (!element) return;
  element.focus({ preventScroll: true });
  if (place.start != null) element.setSelectionRange?.(place.start, place.end);
  place = null;
}

/* To what has no id: its field, else the nearest part with an id; what it is called, and how many of that name are before it. */
function wayTo(element) {
  const field = element.closest("[data-field]");
  const part = element.closest("[id]");
  const holder = field ? `[data-field="${CSS.escape(field.dataset.field)}"]` : part && `#${CSS.escape(part.id)}`;
  if (!holder) return null;
  const way = { holder, tag: element.localName, name: nameOf(element) };
  return { ...way, nth: called(way, field ?? part).indexOf(element) };
}

function atTheEndOf(way) {
  const found = called(way, document.querySelector(way.holder));
  return found[way.nth] ?? found.at(-1);
}

const called = ({ tag, name }, holder) => [...(holder?.querySelectorAll(tag) ?? [])].filter(one => nameOf(one) === name);
const nameOf = element => element.getAttribute("aria-label") || element.textContent.trim();
