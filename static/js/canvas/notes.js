/* Free notes: text on the canvas beside a step, or at the top. Written in place, moved by dragging or from their menu. */
import { announce, card, cards, focusCard, isTrigger, nameOf, readonly } from "hf/canvas/board";
import { edit } from "hf/canvas/edits";
import { view } from "hf/canvas/view";
import { isTyping } from "hf/keyboard";

const THRESHOLD = 8;

let writing = null; // {id, beside, area}; a new one has no id
let held = null; // {paper, from, over}

const paperOf = target => target.closest?.("#stage .paper") ?? null;
const paper = id => document.querySelector(`#stage .paper[data-note="${CSS.escape(id)}"]`);
const textOf = one => one.querySelector(".paper__text").textContent;

/* Beside a step, or at the top. It is written before it is saved: what is typed at once must not be keys of the canvas. */
export function addNote(beside = "") {
  if (!readonly()) write(blank(card(beside) ? beside : ""));
}

/* Paper that is nobody's yet, where the saved one will be. */
function blank(beside) {
  const node = beside && document.getElementById(`node-${beside}`);
  let papers = node ? node.querySelector(":scope > .papers") : document.getElementById("notes-top");
  if (!papers) {
    papers = document.createElement("div");
    papers.className = "papers";
    node.prepend(papers);
    node.classList.add("node--noted");
  }
  papers.hidden = false;
  const one = document.createElement("div");
  one.className = "paper is-new";
  one.dataset.beside = beside;
  one.setAttribute("aria-label", beside ? `Note beside ${nameOf(beside)}` : "Note at the top");
  one.innerHTML = '<p class="paper__text"></p>';
  papers.append(one);
  return one;
}

function takeAway(one) {
  const papers = one.parentElement;
  one.remove();
  if (papers.children.length) return;
  if (papers.id) papers.hidden = true;
  else {
    papers.parentElement.classList.remove("node--noted");
    papers.remove();
  }
}

const ACTS = { write, move: askWhere, remove: one => edit({ op: "remove_note", note: one.dataset.note }) };

/* A text area in the place of the text. Leaving it saves, Escape does not; a note without text is none. */
function write(one, { value = textOf(one), start = value.length, end = start } = {}) {
  if (readonly() || !one) return;
  const area = document.createElement("textarea");
  area.className = "paper__area";
  area.value = value;
  area.maxLength = 4000;
  area.setAttribute("aria-label", one.getAttribute("aria-label"));
  one.append(area);
  one.classList.add("is-written");
  writing = { id: one.dataset.note, beside: one.dataset.beside, area };
  fit(area);
  area.addEventListener("input", () => fit(area));
  area.addEventListener("blur", () => leave({ keep: true }));
  area.addEventListener("keydown", event => {
    if (event.key !== "Escape" && !(event.key === "Enter" && (event.ctrlKey || event.metaKey))) return;
    event.preventDefault();
    leave({ keep: event.key === "Enter" });
    if (one.isConnected) one.focus();
    else focusCard(one.dataset.beside);
  });
  area.focus();
  area.setSelectionRange(start, end);
}

const fit = area => {
  area.style.height = "0";
  area.style.height = `${area.scrollHeight + 2}px`;
};

function leave({ keep }) {
  if (!writing) return;
  const { id, beside, area } = writing;
  const one = area.closest(".paper");
  writing = null;
  const [before, after] = [textOf(one), area.value.trim()];
  area.remove();
  one.classList.remove("is-written");
  if (!id && keep && after) {
    one.querySelector(".paper__text").textContent = after;
    edit({ op: "add_note", beside, text: after });
  } else if (!id) takeAway(one);
  else if (keep && !after) ACTS.remove(one);
  else if (keep && after !== before) edit({ op: "change_note", note: id, text: after });
}

function askWhere(one) {
  const dialog = document.getElementById("paper-move");
  const choices = [["", "At the top"], ...cards().map(({ dataset }) => dataset.step).filter(step => !isTrigger(step)).map(step => [step, nameOf(step)])];
  const select = document.getElementById("paper-beside");
  select.replaceChildren(...choices.map(([value, text]) => new Option(text, value)));
  select.value = one.dataset.beside;
  dialog.returnValue = "";
  dialog.showModal();
  dialog.addEventListener("close", () => dialog.returnValue === "yes" && moveTo(one, select.value), { once: true });
}

function moveTo(one, beside) {
  if (beside !== one.dataset.beside) edit({ op: "move_note", note: one.dataset.note, beside });
}

document.addEventListener("click", event => {
  const { target } = event;
  const item = target.closest("[data-paper]");
  if (item) ACTS[item.dataset.paper](paperOf(item));
  else if (target.closest("[data-add-note]")) addNote();
  else if (target.closest("[data-fit]")) view().fitWhole();
  target.closest("#canvas-menu")?.hidePopover();
});

document.addEventListener("dblclick", event => {
  const one = paperOf(event.target);
  if (one?.dataset.note && !isTyping(event.target) && !event.target.closest("hf-menu")) write(one);
});

/* Before the keys of the canvas, which are about steps. */
document.addEventListener("keydown", event => {
  const one = event.target;
  if (!one.matches?.("#stage .paper") || event.ctrlKey || event.metaKey || event.altKey || readonly()) return;
  const act = { Enter: "write", F2: "write", Delete: "remove", Backspace: "remove", m: "move" }[event.key];
  if (act) ACTS[act](one);
  else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) one.querySelector("[popovertarget]").click();
  else if (event.key.toLowerCase() === "n") addNote(one.dataset.beside);
  else if (!/^[acdert]$/i.test(event.key)) return;
  event.preventDefault();
}, { capture: true });

document.addEventListener("contextmenu", event => {
  const one = paperOf(event.target);
  const menu = document.getElementById("canvas-menu");
  if (isTyping(event.target) || !(one || (menu && event.target.matches("hf-canvas, .canvas__stage, .flow, .node")))) return;
  event.preventDefault();
  if (one) return one.querySelector("[popovertarget]")?.click();
  menu.showPopover();
  menu.style.left = `${Math.min(event.clientX, innerWidth - menu.offsetWidth - 8)}px`;
  menu.style.top = `${Math.min(event.clientY, innerHeight - menu.offsetHeight - 8)}px`;
  menu.querySelector("button").focus();
});

document.addEventListener("draft:saved", ({ detail: { op, picked = [] } }) => {
  if (!["add_note", "change_note", "move_note"].includes(op) || document.activeElement !== document.body) return;
  paper(picked[0])?.focus({ preventScroll: true });
});

/* Parts of the canvas are swapped while somebody writes: the writing goes on in what took the place. */
let interrupted = null;
document.addEventListener("canvas:swapping", () => {
  if (!writing) return;
  const { area } = writing;
  interrupted = { ...writing, value: area.value, start: area.selectionStart, end: area.selectionEnd };
  writing = null; // taking it out of the page is no leaving
});
document.addEventListener("canvas:swapped", () => {
  if (!interrupted) return;
  const { id, beside, area, ...was } = interrupted;
  interrupted = null;
  if (area.isConnected) writing = { id, beside, area };
  else if (!id) write(blank(card(beside) ? beside : ""), was);
  else if (paper(id)) write(paper(id), was);
  else announce("The note that you wrote was removed by somebody else");
});

/* Dragging onto a step; onto a trigger it goes to the top. A finger pans the canvas instead: the menu is there for it. */
document.addEventListener("pointerdown", event => {
  const one = paperOf(event.target);
  if (!one?.dataset.note || event.button !== 0 || event.pointerType === "touch" || readonly() || event.target.closest("textarea, hf-menu")) return;
  held = { paper: one, pointer: event.pointerId, from: [event.clientX, event.clientY], over: null };
});
document.addEventListener("pointermove", event => {
  if (event.pointerId !== held?.pointer) return;
  const [dx, dy] = [event.clientX - held.from[0], event.clientY - held.from[1]];
  if (!held.paper.classList.contains("is-carried") && Math.hypot(dx, dy) < THRESHOLD) return;
  held.paper.classList.add("is-carried");
  held.paper.style.translate = `${dx / view().scale}px ${dy / view().scale}px`;
  aim(document.elementFromPoint(event.clientX, event.clientY)?.closest("#stage .step[data-step]") ?? null);
  event.preventDefault();
});
document.addEventListener("pointerup", event => {
  if (event.pointerId !== held?.pointer) return;
  const { paper: one, over } = held;
  drop();
  if (over) moveTo(one, isTrigger(over.dataset.step) ? "" : over.dataset.step);
});
document.addEventListener("pointercancel", event => event.pointerId === held?.pointer && drop());
document.addEventListener("keydown", event => {
  if (event.key !== "Escape" || !held) return;
  event.stopPropagation();
  drop();
}, { capture: true });

function aim(over) {
  held.over?.classList.remove("is-noted");
  held.over = over;
  over?.classList.add("is-noted");
}

function drop() {
  aim(null);
  held.paper.classList.remove("is-carried");
  held.paper.style.translate = "";
  held = null;
}
