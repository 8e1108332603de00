/* Completion while an expression is typed: the data that is there at this place, and the functions. `/` at the start of a word
   opens the data alone. The popup belongs to the field that has the caret; focus stays there. */
import { announce, fragment } from "hf/canvas/board";
import { caretIn, selectBack } from "hf/canvas/caret";
import { rank, wanted } from "hf/canvas/suggestions";

const MOST = 40;

let functions = null;
let looks = 0;
let field = null;
let now = null; // {caret, from, kind, word}
let shown = [];
let picked = 0;

const popup = () => document.getElementById("complete");
export const isOpen = () => Boolean(popup()?.matches(":popover-open"));

document.addEventListener("focusin", event => {
  if (!functions && fieldOf(event.target)) functions = loadFunctions();
});
document.addEventListener("input", event => {
  const found = fieldOf(event.target);
  if (found) look(found);
});
document.addEventListener("focusout", event => fieldOf(event.target) === field && close());
document.addEventListener("selectionchange", () => isOpen() && caretMoved() && close());
document.addEventListener("scroll", event => isOpen() && !popup().contains(event.target) && place(), { capture: true, passive: true });

const fieldOf = target => target.closest?.("#panel .expr, #panel textarea[name=expression], #panel textarea[name=text], #panel input[data-template]") ?? null;

async function loadFunctions() {
  const answer = await fragment(document.getElementById("complete").dataset.url).catch(() => "");
  if (!answer) functions = null; // asked for again the next time
  return answer ? JSON.parse(answer).functions : [];
}

async function look(target, asked = false) {
  const mine = ++looks;
  const caret = caretIn(target);
  const found = caret && wanted(caret, languageOf(target), asked);
  if (!found) return close();
  const known = await (functions ??= loadFunctions());
  if (mine !== looks || document.activeElement !== target) return; // more was typed meanwhile
  [field, now] = [target, { ...found, caret }];
  shown = rank(found, rows(), known).slice(0, MOST);
  picked = 0;
  if (shown.length === 0) return close();
  draw();
}

/* What a field takes: an expression from end to end, or text with {{ }} in it. */
const languageOf = target => (target.name === "expression" || target.closest("hf-expr[data-expression]") ? "expression" : "template");

function rows() {
  return [...document.querySelectorAll("#panel .tree__row[data-path]")].map(row => ({
    path: row.dataset.path,
    value: row.querySelector(".v")?.textContent ?? "",
    type: row.querySelector(".t")?.textContent ?? "",
    root: row.classList.contains("tree__row--step") ? row.dataset.name : "",
    leaf: !row.parentElement.hasAttribute("aria-expanded"),
  }));
}

function draw() {
  const list = popup();
  list.replaceChildren(...shown.map(option));
  if (!isOpen()) list.showPopover();
  place();
  mark();
  field.setAttribute("aria-controls", "complete");
}

function option(one, index) {
  const item = document.createElement("div");
  item.id = `complete-${index}`;
  item.className = `complete__item complete__item--${one.kind}`;
  item.setAttribute("role", "option");
  const name = document.createElement("b");
  name.textContent = one.label;
  const about = document.createElement("span");
  about.textContent = one.about;
  item.append(name, about);
  return item;
}

function mark() {
  for (const item of popup().children) item.setAttribute("aria-selected", item.id === `complete-${picked}`);
  const item = popup().children[picked];
  item.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", item.id);
  announce([shown[picked].label, shown[picked].about].filter(Boolean).join(", "));
}

function place() {
  const list = popup();
  const at = now.caret.rect();
  const below = at.bottom + 4 + list.offsetHeight <= innerHeight;
  list.style.left = `${Math.max(8, Math.min(at.left, innerWidth - list.offsetWidth - 8))}px`;
  list.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - 4 - list.offsetHeight)}px`;
}

export function close() {
  if (isOpen()) popup().hidePopover();
  field?.removeAttribute("aria-activedescendant");
  field?.removeAttribute("aria-controls");
  [field, now, shown] = [null, null, []];
}

/* Typing moves the caret too, and is looked at by itself. */
function caretMoved() {
  const caret = field && caretIn(field);
  return !caret || caret.at < now.from || caret.text.length === now.caret.text.length && caret.at !== now.caret.at;
}

document.addEventListener("keydown", event => {
  const target = fieldOf(event.target);
  if (!target) return;
  if (event.key === " " && event.ctrlKey) look(target, true);
  else if (!isOpen() || event.altKey || event.metaKey) return;
  else if (event.key === "ArrowDown") step(1);
  else if (event.key === "ArrowUp") step(-1);
  else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) take(shown[picked]);
  else if (event.key === "Escape") close();
  else return;
  event.preventDefault();
  event.stopPropagation();
}, { capture: true });

document.addEventListener("mousedown", event => {
  const item = event.target.closest("#complete [role=option]");
  if (!item) return;
  event.preventDefault();
  take(shown[Number(item.id.split("-")[1])]);
});

function step(by) {
  picked = (picked + by + shown.length) % shown.length;
  mark();
}

function take(one) {
  const { caret, from, kind, hole } = now;
  const target = field;
  const host = target.closest("hf-expr");
  close();
  if (host && one.kind === "data" && kind === "slash") return putPill(host, caret, from, one.path);
  if (host && one.kind === "data" && one.leaf && hole != null && hole.alone) return putPill(host, caret, hole.start, one.path);
  if (host && one.kind === "data" && one.leaf && languageOf(target) === "expression" && target.textContent.trim() === typed(caret, from)) {
    target.replaceChildren();
    target.closest("hf-expr").control.value = "";
    return host.insert(one.path);
  }
  selectBack(caret, from);
  write(target, kind === "slash" && languageOf(target) === "template" ? `{{ ${one.insert} }}` : one.insert);
  if (one.back) moveBack(target, one.back);
}

const typed = (caret, from) => caret.text.slice(from, caret.at).trim();

function putPill(host, caret, from, path) {
  selectBack(caret, from);
  host.insert(path);
}

/* As if typed, so that the browser's own undo knows it. */
function write(target, text) {
  target.focus();
  if (!document.execCommand("insertText", false, text) && target.matches("textarea, input")) target.setRangeText(text, target.selectionStart, target.selectionEnd, "end");
}

/* Into the brackets of a function. */
function moveBack(target, by) {
  if (target.matches("textarea, input")) target.setSelectionRange(target.selectionStart - by, target.selectionStart - by);
  else for (let n = 0; n < by; n++) getSelection().modify("move", "backward", "character");
}
