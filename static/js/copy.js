/* <hf-copy text="48213"> or <hf-copy from="closest .json"> around a button: copies, and says so by a toast. */

import { toast } from "hf/toast";

class Copy extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", this.#copy);
  }

  #copy = async () => {
    try {
      await navigator.clipboard.writeText(this.getAttribute("text") ?? textOf(this.#source()));
      toast({ message: "Copied" });
    } catch {
      toast({ message: "The browser did not allow copying. Select the text and press Ctrl C.", kind: "attention" });
    }
  };

  #source() {
    const from = this.getAttribute("from");
    return from.startsWith("closest ") ? this.closest(from.slice("closest ".length)) : document.querySelector(from);
  }
}

/* A JSON view is copied with its folded parts and without the buttons that fold them. */
function textOf(source) {
  const lines = [...source.querySelectorAll("ol > li > span")];
  if (!lines.length) return source.textContent;
  return lines.map(line => {
    const copy = line.cloneNode(true);
    copy.querySelectorAll("button").forEach(button => button.remove());
    return copy.textContent;
  }).join("\n");
}

customElements.define("hf-copy", Copy);
