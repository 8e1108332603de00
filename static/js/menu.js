/* <hf-menu> around a button with popovertarget and its <div popover class="menu">: puts the menu beside the button,
   lets arrow keys walk it and closes it after a choice. Opening, Esc and light dismissal are the browser's. */

const GAP = 4;
const EDGE = 8;

class Menu extends HTMLElement {
  connectedCallback() {
    this.addEventListener("toggle", this.#toggled, { capture: true });
    this.addEventListener("keydown", this.#walk);
    this.addEventListener("click", this.#choose);
  }

  get button() { return this.querySelector("[popovertarget]"); }
  get menu() { return this.querySelector("[popover]"); }
  get items() { return [...this.menu.querySelectorAll(".menu__item")].filter(item => item.offsetParent); }

  #toggled = event => {
    if (event.target !== this.menu) return;
    const open = event.newState === "open";
    this.button.setAttribute("aria-expanded", open);
    if (!open) return;
    this.#place();
    this.items[0]?.focus();
  };

  #place() {
    const from = this.button.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.menu;
    const beside = this.getAttribute("side") === "right" && innerWidth > 720;
    const left = beside ? from.right + EDGE : from.right - width;
    const below = from.bottom + GAP;
    const top = beside ? from.bottom - height : below + height > innerHeight - EDGE ? from.top - GAP - height : below;
    this.menu.style.left = `${clamp(left, EDGE, innerWidth - width - EDGE)}px`;
    this.menu.style.top = `${clamp(top, EDGE, innerHeight - height - EDGE)}px`;
  }

  #walk = event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !this.menu.matches(":popover-open")) return;
    event.preventDefault();
    const { items } = this;
    items[(items.indexOf(document.activeElement) + step + items.length) % items.length]?.focus();
  };

  #choose = event => {
    if (event.target.closest(".menu__item")) this.menu.hidePopover();
  };
}

const clamp = (value, least, most) => Math.max(least, Math.min(value, most));

customElements.define("hf-menu", Menu);
