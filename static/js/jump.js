/* Ctrl K: go to any flow, run or page. Arrows walk what was found, Enter opens it; without a choice Enter searches. */
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
  const address = `${dialog().dataset.address}?${new URLSearchParams({ q: value })}`;
  const response = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!response?.ok || input().value !== value) return;
  list().innerHTML = await response.text();
  list().hidden = false;
  input().setAttribute("aria-expanded", true);
  select(hits()[0]);
}

function select(hit) {
  for (const one of hits()) one.setAttribute("aria-selected", one === hit);
  if (!hit) return input().removeAttribute("aria-activedescendant");
  input().setAttribute("aria-activedescendant", hit.id);
  hit.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", event => {
  const { key, ctrlKey, metaKey, shiftKey, altKey } = event;
  if ((ctrlKey || metaKey) && !shiftKey && !altKey && key.toLowerCase() === "k" && dialog()) {
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) open();
  } else if (event.target.id === "jump-input") walk(event);
});

function walk(event) {
  const all = hits();
  const at = all.findIndex(hit => hit.getAttribute("aria-selected") === "true");
  if (event.key === "ArrowDown") select(all[(at + 1) % all.length]);
  else if (event.key === "ArrowUp") select(all.at(at - 1));
  else if (event.key === "Enter" && all[at]) location.assign(all[at].dataset.url);
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
