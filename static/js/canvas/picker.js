/* The picker: opens beside a +, is searched and walked by keyboard, and adds what is chosen at that place. */
import { announce, asked, card, nameOf, url } from "hf/canvas/board";
import { pasteAt } from "hf/canvas/clipboard";
import { edit } from "hf/canvas/edits";
import { addNote } from "hf/canvas/notes";
import { placeOf } from "hf/canvas/places";

const RECENT = "holdfast/recent-steps";
const KEPT = 5;
const WIDE = 504;
const GAP = 20;
const EDGE = 12;

let opener = null;
let place = null;
let came = null; // from where it was opened: the +, or the card on which a key was pressed

export async function openAfter(step) {
  const button = document.querySelector(`#stage .add[data-after="${CSS.escape(step)}"]`);
  if (button) open(button);
}

/* Another type for a step, chosen beside its card. */
export function openInstead(step) {
  open(card(step).querySelector("[data-menu]"), new URLSearchParams({ replace: step }).toString());
}

async function open(button, query = placeQuery(button)) {
  close();
  opener = button;
  came = document.activeElement;
  place = button.matches(".add") ? placeOf(button) : null;
  button.setAttribute("aria-expanded", "true");
  const html = await asked(`${url("picker/")}?${query}`);
  if (opener !== button) return;
  if (!html) return close();
  htmx.swap("#picker-slot", html, { swapStyle: "innerHTML" });
  const picker = document.getElementById("picker");
  if (place?.after) picker.setAttribute("aria-label", `Add a step after ${nameOf(place.after)}`);
  position(picker, button);
  picker.querySelector("input").focus();
}

const placeQuery = button => ("addTrigger" in button.dataset ? "triggers" : new URLSearchParams(placeOf(button)).toString());

export function close({ focus = false } = {}) {
  document.getElementById("picker")?.remove();
  opener?.removeAttribute("aria-expanded");
  if (focus) (came?.isConnected && came !== document.body ? came : opener)?.focus({ preventScroll: true });
  opener = null;
}

function position(picker, button) {
  const from = button.getBoundingClientRect();
  const { offsetHeight: height } = picker;
  const width = Math.min(WIDE, picker.offsetWidth);
  const right = from.right + GAP + width + EDGE <= innerWidth;
  const left = right ? from.right + GAP : from.left - GAP - width;
  const beside = left >= EDGE;
  const roof = document.querySelector("hf-canvas").getBoundingClientRect().top + EDGE; // what can be done with the flow stays in view
  const top = Math.max(EDGE, Math.min(Math.max(roof, from.top - 130), innerHeight - height - EDGE));
  picker.classList.toggle("picker--left", !right && beside);
  picker.classList.toggle("picker--alone", !beside);
  picker.style.setProperty("--left", beside ? left : Math.max(EDGE, (innerWidth - width) / 2));
  picker.style.setProperty("--at", top);
  picker.style.setProperty("--arrow", from.top + from.height / 2 - top - 6);
}

class Picker extends HTMLElement {
  connectedCallback() {
    this.recent = JSON.parse(localStorage.getItem(RECENT) ?? "[]").filter(type => this.querySelector(`.pick[data-type="${CSS.escape(type)}"]`));
    const button = this.querySelector('[data-category="recent"]');
    if (button) button.hidden = !this.recent.length;
    this.addEventListener("input", () => this.#filter());
    this.addEventListener("keydown", this.#key);
    this.addEventListener("click", this.#click);
    this.addEventListener("mousemove", event => this.#select(event.target.closest(".pick"), false));
    this.#filter();
  }

  get input() { return this.querySelector("input"); }
  get shown() { return [...this.querySelectorAll(".pick")].filter(pick => !pick.hidden); }

  /* Nothing typed: what is often added, and all. A word searches everything; a category narrows. */
  #filter() {
    const word = this.input.value.trim().toLowerCase();
    const category = this.querySelector("[data-category][aria-current]")?.dataset.category ?? "";
    const often = [...this.querySelectorAll('.pick[data-category=""]')].map(pick => pick.dataset.type);
    for (const pick of this.querySelectorAll(".pick")) {
      const suggested = pick.dataset.category === "";
      if (word) pick.hidden = suggested || !word.split(/\s+/).every(part => pick.dataset.words.includes(part));
      else if (category === "recent") pick.hidden = suggested || !this.recent.includes(pick.dataset.type);
      else if (category) pick.hidden = pick.dataset.category !== category;
      else pick.hidden = !suggested && often.includes(pick.dataset.type);
    }
    this.#rank(word, category);
    for (const heading of this.querySelectorAll("[data-heading]")) heading.hidden = Boolean(word || category);
    this.querySelector("[data-nothing]").hidden = this.shown.length > 0;
    this.#select(this.shown[0]);
  }

  /* What is called so comes before what only mentions it: "ai" finds AI first, and Delay ("wait") last. */
  #rank(word, category) {
    this.order ??= [...this.querySelectorAll('.pick:not([data-category=""])')];
    const score = pick => {
      if (category === "recent" && !word) return this.recent.indexOf(pick.dataset.type);
      const label = pick.querySelector("b").textContent.toLowerCase();
      if (!word || label.startsWith(word)) return 0;
      return pick.dataset.words.split(" ").some(one => one.startsWith(word)) ? 1 : 2;
    };
    const sorted = this.order.map((pick, index) => [score(pick), index, pick]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    this.querySelector("[data-nothing]").before(...sorted.map(([, , pick]) => pick));
  }

  #select(pick, scroll = true) {
    if (!pick) return;
    for (const other of this.querySelectorAll(".pick")) other.setAttribute("aria-selected", other === pick);
    this.input.setAttribute("aria-activedescendant", pick.id);
    if (scroll) pick.scrollIntoView({ block: "nearest" });
  }

  #key = event => {
    const { shown } = this;
    const at = shown.findIndex(pick => pick.getAttribute("aria-selected") === "true");
    if (event.key === "Escape") close({ focus: true });
    else if (event.key === "Tab") return this.#trap(event);
    else if (event.key === "ArrowDown") this.#select(shown[(at + 1) % shown.length]);
    else if (event.key === "ArrowUp") this.#select(shown.at(at - 1));
    else if (event.key === "Enter" && event.target === this.input) this.#take(shown[at]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  #trap(event) {
    const stops = [...this.querySelectorAll("input, button")].filter(one => one.offsetParent);
    const next = stops[(stops.indexOf(document.activeElement) + (event.shiftKey ? -1 : 1) + stops.length) % stops.length];
    event.preventDefault();
    next.focus();
  }

  #click = event => {
    const category = event.target.closest("[data-category]");
    const pick = event.target.closest(".pick");
    if (pick) this.#take(pick);
    else if (event.target.closest("[data-paste]")) {
      pasteAt(place);
      close();
    } else if (event.target.closest("[data-note-here]")) {
      addNote(place.after ?? place.parent);
      close();
    } else if (category) {
      for (const other of this.querySelectorAll(".picker__cats button")) other.removeAttribute("aria-current");
      category.setAttribute("aria-current", "true");
      this.input.value = "";
      this.#filter();
      this.input.focus();
    }
  };

  #take(pick) {
    if (!pick) return;
    const { type } = pick.dataset;
    const { replace } = this.dataset;
    const triggers = this.hasAttribute("data-triggers");
    if (!triggers) remember(type, this.recent);
    edit(replace ? { op: "replace_type", step: replace, type } : triggers ? { op: "add_trigger", type } : { op: "insert", type, place });
    announce(`${replace ? "Changing to" : "Adding"} ${pick.querySelector("b").textContent}`);
    close();
  }
}

const remember = (type, before) => localStorage.setItem(RECENT, JSON.stringify([type, ...before.filter(one => one !== type)].slice(0, KEPT)));

customElements.define("hf-picker", Picker);

document.addEventListener("click", event => {
  const button = event.target.closest(".add, [data-add-trigger]");
  if (button && !("moving" in document.getElementById("board").dataset)) {
    if (button === opener) close();
    else open(button);
  } else if (opener && !event.target.closest("#picker")) close();
});

addEventListener("resize", () => close());
document.addEventListener("wheel", event => !event.target.closest("#picker") && opener && close(), { passive: true });
