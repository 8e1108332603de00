/* Ctrl K: go to any flow, run or page. Arrows walk what was found, Enter opens it; without a choice Enter searches. */
import { fragment } from "hf/fragment";
import { mark, marked, neighbour } from "hf/listbox";

const TYPED = 120;
let timer = null;

const dialog = () => document.getElementById("jump");
const input = () => document.getElementById("jump-input");
const list = () => document.getElementById("jump-list");
const hits = () => [...list().querySelectorAll("[data-url]")];

function open() {
  dialog().showModal();
  input().select();
  look();
}

async function look() {
  const { value } = input();
  const html = await fragment(`${dialog().dataset.address}?${new URLSearchParams({ q: value })}`).catch(() => null);
  if (html === null || input().value !== value) return;
  list().innerHTML = html;
  list().hidden = false;
  input().setAttribute("aria-expanded", true);
  mark(input(), hits(), hits()[0]);
}

document.addEventListener("keydown", event => {
  const { key, ctrlKey, metaKey, shiftKey, altKey } = event;
  if ((ctrlKey || metaKey) && !shiftKey && !altKey && key.toLowerCase() === "k" && dialog()) {
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) open();
  } else if (event.target.id === "jump-input") walk(event);
});

function walk(event) {
  const hit = marked(hits());
  if (event.key === "ArrowDown" || event.key === "ArrowUp") mark(input(), hits(), neighbour(hits(), event.key));
  else if (event.key === "Enter" && hit) location.assign(hit.dataset.url);
  else return;
  event.preventDefault();
}

document.addEventListener("input", event => {
  if (event.target.id !== "jump-input") return;
  clearTimeout(timer);
  list().innerHTML = ""; // Enter means what is typed, and not what was found for less of it
  timer = setTimeout(look, TYPED);
});

document.addEventListener("click", event => {
  const hit = event.target.closest("#jump-list [data-url]");
  if (hit) location.assign(hit.dataset.url);
});
