/* <hf-data>: the tree of what may be used here. A click, Enter or a drag puts it where the caret was last. It folds away, in the Test tab
   and on a phone from the start: there the room is for something else. */
import { braced } from "hf/canvas/template";

let field = null;
let range = null;
const folds = new Map(); // what a person folded or unfolded, by path: panels are renewed, and show the same tree

/* The field that was typed in last: an <hf-expr>, a text area that takes code, or an input that takes templates too. */
document.addEventListener("focusin", event => {
  const found = event.target.closest?.("#panel hf-expr, #panel textarea, #panel input[data-template]");
  if (found) field = found;
});
document.addEventListener("selectionchange", () => {
  const selection = getSelection();
  if (selection.rangeCount && selection.anchorNode?.parentElement?.closest?.("#panel .expr")) range = selection.getRangeAt(0).cloneRange();
});

export function insert(path) {
  const target = field?.isConnected ? field : document.querySelector("#panel hf-expr");
  if (!target) return;
  if (target.matches("textarea, input")) return insertCode(target, path);
  if (range && target.contains(range.startContainer)) {
    target.editor.focus();
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  }
  target.insert(path);
}

function insertCode(area, path) {
  area.setRangeText(area.name === "expression" ? path : braced(path), area.selectionStart, area.selectionEnd, "end");
  area.focus();
  area.dispatchEvent(new Event("change", { bubbles: true }));
}

/* Where a row that is dragged may be let go. Browsers would move it there, which no row allows: they are told that it is copied. */
const PLACES = "#panel .expr[contenteditable=true], #panel textarea:not([readonly]), #panel input[data-template]:not([readonly])";
const KIND = "text/x-holdfast-path";
const placeOf = event => (event.dataTransfer?.types.includes(KIND) && event.target.closest?.(PLACES)) || null;
let over = null;

function hold(place) {
  over?.classList.remove("is-over");
  over = place;
  over?.classList.add("is-over");
}

document.addEventListener("dragover", event => {
  const place = placeOf(event);
  if (place !== over) hold(place);
  if (!place) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = "copy";
});
document.addEventListener("dragend", () => hold(null));
document.addEventListener("drop", event => {
  const place = placeOf(event);
  hold(null);
  if (!place) return;
  event.preventDefault();
  const path = event.dataTransfer.getData(KIND);
  if (place.matches(".expr")) place.closest("hf-expr").drop(path, event);
  else insertCode(place, path);
});

class Data extends HTMLElement {
  connectedCallback() {
    this.addEventListener("focusout", this.#leave);
    this.addEventListener("click", this.#click);
    this.addEventListener("keydown", this.#key);
    this.addEventListener("dragstart", this.#drag);
    const first = this.querySelector(".tree__row");
    if (first) first.tabIndex = 0;
    for (const node of this.querySelectorAll(".tree__node[aria-expanded]")) {
      const open = folds.get(pathOf(node));
      if (open) node.setAttribute("aria-expanded", open);
    }
    const data = this.closest(".data");
    foldAway(data, this.closest("#panel").dataset.tab);
    data.querySelector("[data-data-find]").addEventListener("click", () => this.#toggleSearch(data));
    data.querySelector("[data-data-search]").addEventListener("input", event => this.#filter(event.target.value.trim().toLowerCase()));
  }

  /* Pressed, a row takes the focus, else it could not be dragged. The field is left when the focus goes on to somewhere else. */
  #leave = ({ relatedTarget }) => {
    if (!this.contains(relatedTarget) && !field?.contains(relatedTarget)) field?.leave?.();
  };

  #click = event => {
    const row = event.target.closest(".tree__row");
    if (!row) return;
    const node = row.parentElement;
    const folds = node.hasAttribute("aria-expanded") && !event.target.closest(".ins");
    if (folds) fold(node);
    else insert(row.dataset.path);
  };

  #key = event => {
    const row = event.target.closest(".tree__row");
    if (!row) return;
    const node = row.parentElement;
    const open = node.getAttribute("aria-expanded") === "true";
    const rows = [...this.querySelectorAll(".tree__row")].filter(one => one.offsetParent);
    const at = rows.indexOf(row);
    if (event.key === "ArrowDown") walk(rows[at + 1]);
    else if (event.key === "ArrowUp") walk(rows[at - 1]);
    else if (event.key === "ArrowRight" && node.hasAttribute("aria-expanded")) open ? walk(rows[at + 1]) : fold(node);
    else if (event.key === "ArrowLeft") open ? fold(node) : walk(node.parentElement.closest(".tree__node")?.querySelector(".tree__row"));
    else if (event.key === "Enter") insert(row.dataset.path);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  #drag = event => {
    const { path } = event.target.closest(".tree__row").dataset;
    event.dataTransfer.setData(KIND, path);
    event.dataTransfer.setData("text/plain", braced(path));
    event.dataTransfer.effectAllowed = "copy";
  };

  #toggleSearch(data) {
    const search = data.querySelector("[data-data-search]");
    search.hidden = !search.hidden;
    if (search.hidden) {
      search.value = "";
      this.#filter("");
    } else search.focus();
  }

  #filter(word) {
    for (const node of [...this.querySelectorAll(".tree__node")].reverse()) {
      const own = node.querySelector(".tree__row").textContent.toLowerCase().includes(word);
      const inner = node.querySelector("[role=group] .tree__node:not([hidden])");
      node.hidden = Boolean(word) && !own && !inner;
      if (word && inner) node.setAttribute("aria-expanded", "true");
    }
  }
}

/* By tab, as the person left it last. */
const FOLDED = "data folded";
const away = JSON.parse(localStorage.getItem(FOLDED) ?? "{}");
const isAway = tab => away[tab] ?? (tab === "test" || innerWidth <= 720);

function foldAway(data, tab) {
  data.classList.toggle("is-folded", isAway(tab));
  data.querySelector("[data-data-fold]").setAttribute("aria-expanded", !isAway(tab));
}

document.addEventListener("click", ({ target }) => {
  const data = target.closest("[data-data-fold]")?.closest(".data");
  if (!data) return;
  const { tab } = data.closest("#panel").dataset;
  away[tab] = !isAway(tab);
  localStorage.setItem(FOLDED, JSON.stringify(away));
  foldAway(data, tab);
});
document.addEventListener("tab:selected", ({ target }) => {
  const data = target.closest("#panel")?.querySelector(".data");
  if (data) foldAway(data, target.id.replace("tab-", ""));
});

function fold(node) {
  const open = String(node.getAttribute("aria-expanded") !== "true");
  node.setAttribute("aria-expanded", open);
  folds.set(pathOf(node), open);
}

const pathOf = node => node.querySelector(".tree__row").dataset.path;

function walk(row) {
  if (!row) return;
  row.closest("hf-data").querySelectorAll(".tree__row[tabindex='0']").forEach(one => (one.tabIndex = -1));
  row.tabIndex = 0;
  row.focus();
}

customElements.define("hf-data", Data);
