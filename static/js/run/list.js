/* The run list: choosing runs, and acting on the chosen ones. Without script the boxes and buttons of the form still work. */

import { isTyping } from "hf/keyboard";

const boxes = form => [...form.querySelectorAll('input[name="run"]')];

class Picks extends HTMLElement {
  #all = false;

  connectedCallback() {
    this.form = this.closest("form");
    this.form.addEventListener("change", this.#changed);
    this.form.addEventListener("submit", this.#settle);
    this.addEventListener("click", this.#clicked);
    document.addEventListener("keydown", this.#key);
    this.#show();
  }

  disconnectedCallback() {
    document.removeEventListener("keydown", this.#key);
  }

  #changed = event => {
    if (event.target.matches("[data-pick-page]")) boxes(this.form).forEach(box => { box.checked = event.target.checked; });
    this.#all = false;
    this.#show();
  };

  #clicked = event => {
    if (event.target.closest("[data-pick-none]")) this.#clear();
    if (event.target.closest("[data-pick-all]")) {
      boxes(this.form).forEach(box => { box.checked = true; });
      this.#all = true;
      this.#show();
    }
  };

  #key = event => {
    if (event.key === "Escape" && !this.hidden && !isTyping(event.target) && !document.querySelector("dialog[open]")) this.#clear();
  };

  #settle = () => { this.form.querySelector("[data-all]").value = this.#all ? "1" : ""; };

  #clear() {
    boxes(this.form).forEach(box => { box.checked = false; });
    this.#all = false;
    this.#show();
  }

  #show() {
    const all = boxes(this.form), picked = all.filter(box => box.checked);
    const number = this.#all ? this.querySelector("[data-pick-all]").dataset.count : String(picked.length);
    this.#settle();
    this.hidden = !picked.length;
    all.forEach(box => box.closest("tr").classList.toggle("is-picked", box.checked));
    const page = this.querySelector("[data-pick-page]");
    page.checked = picked.length === all.length;
    page.classList.toggle("is-mixed", picked.length > 0 && picked.length < all.length);
    this.querySelector("[data-picked]").textContent = `${number} selected`;
    for (const label of this.querySelectorAll("[data-number]")) label.textContent = `${label.dataset.number} ${number}`;
  }
}

customElements.define("hf-picks", Picks);

/* A choice in the toolbar is a search. */
document.addEventListener("change", event => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});
