/* <hf-seg>: buttons that set one hidden value. <hf-modes>: two ways to edit the same value, and which one counts. */

class Seg extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", event => {
      const button = event.target.closest("button");
      if (button && !button.disabled) this.choose(button);
    });
  }

  choose(button) {
    for (const other of this.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
    const value = this.querySelector("input[type=hidden]");
    value.value = button.value;
    value.dispatchEvent(new Event("change", { bubbles: true }));
  }
}

class Modes extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", event => {
      const button = event.target.closest(".modes__seg button");
      if (button && !button.disabled) this.#show(button.value);
    });
  }

  /* Showing the other way changes nothing; only typing there does. What it shows comes from the server, with the last save. */
  #show(mode) {
    this.querySelector("input[name=mode]").value = mode;
    for (const part of this.querySelectorAll(":scope > [data-mode]")) part.hidden = part.dataset.mode !== mode;
    for (const button of this.querySelectorAll(".modes__seg button")) button.setAttribute("aria-pressed", button.value === mode);
    this.dispatchEvent(new CustomEvent("mode:shown", { bubbles: true, detail: mode }));
  }
}

customElements.define("hf-seg", Seg);
customElements.define("hf-modes", Modes);
