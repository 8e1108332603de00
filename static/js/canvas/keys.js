/* The keyboard on the canvas: arrows walk the steps by where they stand, A adds, Del removes, Esc closes the top layer. */
import { card, cards, current, focusCard, isTrigger, readonly } from "hf/canvas/board";
import { remove } from "hf/canvas/menu";
import { close as closePanel, isOpen, open } from "hf/canvas/panel";
import { close as closePicker, openAfter } from "hf/canvas/picker";
import { view } from "hf/canvas/view";
import { isTyping } from "hf/keyboard";

const WAYS = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

document.addEventListener("keydown", event => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return escape(event);
  if (isTyping(event.target) || document.querySelector("dialog[open], :popover-open")) return;
  const onCanvas = event.target === document.body || event.target.closest("hf-canvas");
  if (!onCanvas) return;
  if (WAYS[event.key]) walk(event);
  else if (event.key === "+" || event.key === "=") view().zoom(0.1);
  else if (event.key === "-") view().zoom(-0.1);
  else if (event.key === "0") view().fit();
  else if (!readonly()) editKey(event);
});

function editKey(event) {
  const step = current();
  if (!card(step)) return;
  if (event.key.toLowerCase() === "a") {
    event.preventDefault();
    if (isTrigger(step)) document.querySelector('#node-triggers .add')?.click();
    else openAfter(step);
  } else if (event.key === "Delete" || event.key === "Backspace") {
    event.preventDefault();
    remove(step);
  } else if (event.key.toLowerCase() === "e") open(step);
}

function escape(event) {
  if (document.querySelector("dialog[open], :popover-open")) return;
  if (document.getElementById("picker")) closePicker({ focus: true });
  else if (isOpen()) closePanel();
  else return;
  event.preventDefault();
}

function walk(event) {
  event.preventDefault();
  const from = card(current());
  if (!from) return focusCard(cards()[0]?.dataset.step);
  const next = nearest(from, ...WAYS[event.key]);
  if (next) focusCard(next.dataset.step);
  if (next) view().show(next);
}

/* The nearest card on that side. Sideways, what lies straight ahead counts as much nearer: the same row of the next lane.
   Downwards a step aside is no farther than one down, so that the way leads into a condition's lanes and not past them. */
function nearest(from, dx, dy) {
  const here = middle(from);
  let best = null;
  let least = Infinity;
  for (const one of cards()) {
    const [x, y] = middle(one);
    const ahead = dx ? (x - here[0]) * dx : (y - here[1]) * dy;
    const aside = dx ? Math.abs(y - here[1]) : Math.abs(x - here[0]);
    if (ahead < 8) continue;
    const cost = ahead + aside * (dx ? 3 : 1);
    if (cost < least) [best, least] = [one, cost];
  }
  return best;
}

function middle(one) {
  const { left, top, width, height } = one.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
}
