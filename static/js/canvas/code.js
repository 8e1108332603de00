/* <hf-code data-lang> around a text area: its text painted in colours underneath. The text area itself stays what is typed
   in and what is sent; the painted copy lies letter for letter behind it. */
import { paint } from "hf/canvas/highlight";

const FEWEST = 3;
const MOST = 24;

class Code extends HTMLElement {
  connectedCallback() {
    this.area = this.querySelector("textarea");
    if (!this.area || this.querySelector("pre")) return;
    this.under = document.createElement("pre");
    this.under.className = `${this.area.className} code__paint`;
    this.under.setAttribute("aria-hidden", "true");
    this.prepend(this.under);
    this.classList.add("is-painted");
    this.area.addEventListener("input", () => this.paint());
    this.area.addEventListener("scroll", () => this.#follow());
    this.area.addEventListener("keydown", this.#key);
    this.paint();
  }

  /* Another text in the place of what stands there, as if it had been typed. */
  write(text) {
    this.area.value = text;
    this.area.dispatchEvent(new Event("input", { bubbles: true }));
    this.area.dispatchEvent(new Event("change", { bubbles: true }));
    this.area.focus();
  }

  paint() {
    const lines = this.area.value.split("\n").length;
    this.area.rows = Math.min(MOST, Math.max(FEWEST, lines, Number(this.dataset.rows ?? 0)));
    this.under.replaceChildren(...paint(this.area.value, this.dataset.lang), "\n");
    this.#follow();
  }

  #follow() {
    this.under.scrollTop = this.area.scrollTop;
    this.under.scrollLeft = this.area.scrollLeft;
  }

  /* A new line begins as deep as the one before it. Tab leaves the field, as everywhere. */
  #key = event => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    const before = this.area.value.slice(0, this.area.selectionStart);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    const deeper = /[[{(]\s*$/.test(line) ? "  " : "";
    event.preventDefault();
    document.execCommand("insertText", false, `\n${/^\s*/.exec(line)[0]}${deeper}`);
  };
}

customElements.define("hf-code", Code);
