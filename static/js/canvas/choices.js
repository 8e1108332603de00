/* <hf-seg>: buttons that set one hidden value. <hf-modes>: two ways to edit the same value, and which one counts.
   <hf-calendar>: a country, and the parts that this country has. */
import { renew } from "hf/canvas/renew";

class Seg extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", this.#click);
  }

  #click = event => {
    const button = event.target.closest("button");
    if (button && !button.disabled) this.choose(button);
  };

  choose(button) {
    for (const other of this.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
    const value = this.querySelector("input[type=hidden]");
    value.value = button.value;
    value.dispatchEvent(new Event("change", { bubbles: true }));
  }
}

/* Showing the other way changes nothing; only typing there does. It is rendered anew, so that it shows what is saved. Which way was
   chosen holds for the field however often its panel comes anew. */
const chosen = new Map(); // "step/field" -> mode

class Modes extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", this.#click);
    const mode = chosen.get(keyOf(this));
    if (mode && this.querySelector(`.modes__seg button[value="${mode}"]:not([disabled])`)) this.show(mode);
  }

  #click = async event => {
    const button = event.target.closest(".modes__seg button");
    if (!button || button.disabled) return;
    chosen.set(keyOf(this), button.value);
    const place = await renew(this.closest("[data-field]"));
    place?.querySelector("hf-modes").show(button.value);
  };

  show(mode) {
    this.querySelector("input[name=mode]").value = mode;
    for (const part of this.querySelectorAll(":scope > [data-mode]")) part.hidden = part.dataset.mode !== mode;
    for (const button of this.querySelectorAll(".modes__seg button")) button.setAttribute("aria-pressed", button.value === mode);
  }
}

class Calendar extends HTMLElement {
  connectedCallback() {
    this.addEventListener("change", event => event.target.name === "country" && setTimeout(() => this.#parts()));
  }

  /* Saved first, by whoever hears the change of a field. */
  async #parts() {
    const fresh = await renew(this.closest("[data-field]"));
    fresh?.querySelector("[name=country]").focus();
  }
}

const keyOf = modes => `${modes.closest("#panel")?.dataset.owner}/${modes.closest("[data-field]")?.dataset.field}`;

customElements.define("hf-seg", Seg);
customElements.define("hf-modes", Modes);
customElements.define("hf-calendar", Calendar);
