/* <hf-seg>: buttons that set one hidden value. <hf-modes>: two ways to edit the same value, and which one counts. */
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

/* Showing the other way changes nothing; only typing there does. It is rendered anew, so that it shows what is saved. */
class Modes extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", this.#click);
  }

  #click = async event => {
    const button = event.target.closest(".modes__seg button");
    if (!button || button.disabled) return;
    const place = await renew(this.closest("[data-field]"));
    place?.querySelector("hf-modes").show(button.value);
  };

  show(mode) {
    this.querySelector("input[name=mode]").value = mode;
    for (const part of this.querySelectorAll(":scope > [data-mode]")) part.hidden = part.dataset.mode !== mode;
    for (const button of this.querySelectorAll(".modes__seg button")) button.setAttribute("aria-pressed", button.value === mode);
  }
}

customElements.define("hf-seg", Seg);
customElements.define("hf-modes", Modes);
