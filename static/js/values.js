/* <hf-values>: data as JSON or as a table. Which of the two somebody reads is remembered for all data, in this browser. */

const KEY = "holdfast:values";

class Values extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", this.#click);
    if (recall() === "table") this.show("table");
  }

  #click = event => {
    const button = event.target.closest(".seg button");
    if (!button) return;
    remember(button.value);
    for (const values of document.querySelectorAll("hf-values")) values.show(button.value);
  };

  /* What has no table stays JSON. */
  show(as) {
    const table = this.querySelector(":scope > template");
    if (as === "table" && table) table.replaceWith(table.content);
    if (!this.querySelector(`:scope > [data-as="${as}"]`)) return;
    for (const part of this.querySelectorAll(":scope > [data-as]")) part.hidden = part.dataset.as !== as;
    for (const button of this.querySelectorAll(".json__bar .seg button")) button.setAttribute("aria-pressed", button.value === as);
  }
}

let kept = null; // for browsers that let nothing be stored

function recall() {
  try { return localStorage.getItem(KEY) ?? kept; } catch { return kept; }
}

function remember(as) {
  kept = as;
  try { localStorage.setItem(KEY, as); } catch { /* it holds for this page */ }
}

customElements.define("hf-values", Values);
