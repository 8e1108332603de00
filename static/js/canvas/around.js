/* New markup in the place of old, around what has the focus: an element that is never taken out keeps its caret, its selection,
   its open list and the keys that were typed ahead. */

/* What of the panel stays while `fresh` comes in its place: {old, fresh}, or nothing where nobody types or chooses. */
export function staying(panel, fresh, unsaved) {
  const control = document.activeElement;
  if (!panel.contains(control) || !control.matches(WRITTEN)) return null;
  const field = control.closest("[data-field]");
  if (!field) return pair(control, control.id && fresh.querySelector(`#${CSS.escape(control.id)}`), panel, fresh);
  const again = fresh.querySelector(`[data-field="${CSS.escape(field.dataset.field)}"]`);
  if (!again || !unsaved(field, again)) return null;
  const { localName } = widgetOf(control, field);
  const at = [...field.querySelectorAll(localName)].indexOf(widgetOf(control, field));
  return pair(control, again.querySelectorAll(localName)[at], field, again);
}

/* False when the way down to what stays is another in the new markup: then nothing has been touched. */
export function swapAround(stays, panel, fresh) {
  const here = wayTo(stays.old, panel);
  const there = wayTo(stays.fresh, fresh);
  if (here.map(one => one.localName).join() !== there.map(one => one.localName).join()) return false;
  for (let depth = 0; depth < here.length - 1; depth++) {
    dress(here[depth], there[depth]);
    refill(here[depth], here[depth + 1], there[depth], there[depth + 1]);
  }
  htmx.process(panel);
  return true;
}

const WRITTEN = "input:not([type=checkbox], [type=radio]), select, textarea, .expr";

function pair(control, again, within, freshWithin) {
  if (!again) return null;
  const [old, fresh] = [widgetOf(control, within), widgetOf(again, freshWithin)];
  return old.localName === fresh.localName ? { old, fresh } : null;
}

/* The outermost element with a script of its own: it knows its parts, and is not taken apart. */
function widgetOf(control, within) {
  let widget = control;
  for (let up = control; up && up !== within; up = up.parentElement) if (up.localName.includes("-")) widget = up;
  return widget;
}

function wayTo(element, top) {
  const way = [];
  for (let up = element; up !== top; up = up.parentElement) way.unshift(up);
  return [top, ...way];
}

/* What somebody has unfolded stays so. */
function dress(old, fresh) {
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== "open" && name !== "style") old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
}

function refill(old, kept, fresh, place) {
  const result = kept.nextElementSibling?.matches(".result") ? kept.nextElementSibling : null;
  for (const child of [...old.childNodes]) if (child !== kept && child !== result) child.remove();
  const children = [...fresh.childNodes];
  const at = children.indexOf(place);
  kept.before(...children.slice(0, at));
  (result ?? kept).after(...children.slice(at + 1));
}
