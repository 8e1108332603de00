/* <hf-canvas>: pan and zoom as one transform of the stage. Fit is the default and holds until somebody moves the view. */
import { card } from "hf/canvas/board";

const LEAST = 0.4;
const MOST = 1.5;
const STEP = 0.1;
const MARGIN = 8;

class Canvas extends HTMLElement {
  #x = 0;
  #y = 0;
  #z = 1;
  #fitted = true;
  #pointers = new Map();
  #pinch = 0;

  connectedCallback() {
    this.addEventListener("wheel", this.#wheel, { passive: false });
    this.addEventListener("pointerdown", this.#down);
    this.addEventListener("pointermove", this.#drag);
    this.addEventListener("pointerup", this.#up);
    this.addEventListener("pointercancel", this.#up);
    this.addEventListener("click", this.#button);
    this.addEventListener("scroll", this.#scrolled);
    this.addEventListener("focusin", event => this.show(event.target));
    this.#begin();
    for (const moved of ["draft:saved", "draft:caught_up", "canvas:resized"]) document.addEventListener(moved, () => this.#fitted && this.fit());
  }

  get stage() { return this.querySelector(".canvas__stage"); }
  get scale() { return this.#z; }

  fit() {
    const { offsetWidth: width, offsetHeight: height } = this.stage;
    const scale = Math.min(1, this.clientWidth / width, this.clientHeight / height);
    this.#z = clamp(scale);
    this.#x = Math.max(0, (this.clientWidth - width * this.#z) / 2);
    if (width * this.#z > this.clientWidth) this.#x = this.#beginning(width);
    this.#y = 0;
    this.#fitted = true;
    this.#apply();
  }

  /* A press that began before this was loaded keeps its card under the pointer, or its click would be none. */
  #begin() {
    if (this.stage.querySelector(".step:active")) {
      addEventListener("pointerup", () => setTimeout(() => this.#begin()), { once: true });
      return;
    }
    new ResizeObserver(() => this.#fitted && this.fit()).observe(this);
    this.fit();
  }

  /* Too wide even at the least scale: begin where the first card is in the middle. */
  #beginning(width) {
    return Math.min(MARGIN, (this.clientWidth - width * this.#z) / 2);
  }

  zoom(by, at = null) {
    const { clientWidth, clientHeight } = this;
    const [px, py] = at ?? [clientWidth / 2, clientHeight / 3];
    const next = clamp(Math.round((this.#z + by) * 100) / 100);
    this.#x = px - ((px - this.#x) * next) / this.#z;
    this.#y = py - ((py - this.#y) * next) / this.#z;
    this.#z = next;
    this.#fitted = false;
    this.#apply();
  }

  pan(dx, dy) {
    this.#x += dx;
    this.#y += dy;
    this.#fitted = false;
    this.#apply();
  }

  /* Bring an element of the stage into view, moving no more than needed. */
  show(element) {
    if (!this.stage.contains(element)) return;
    const box = (element.closest(".step") ?? element).getBoundingClientRect();
    const frame = this.getBoundingClientRect();
    const dx = short(box.left, box.right, frame.left + MARGIN, frame.right - MARGIN);
    const dy = short(box.top, box.bottom, frame.top + MARGIN, frame.bottom - MARGIN);
    if (dx || dy) this.pan(dx, dy);
  }

  #apply() {
    const { style } = this.stage;
    style.setProperty("--x", `${Math.round(this.#x)}px`);
    style.setProperty("--y", `${Math.round(this.#y)}px`);
    style.setProperty("--z", this.#z);
    this.stage.classList.add("is-placed");
    const level = this.querySelector(".zoom output");
    if (level) level.textContent = `${Math.round(this.#z * 100)}%`;
  }

  /* Focus scrolls even what hides its overflow; the place it meant is reached by panning. */
  #scrolled = () => {
    const { scrollLeft, scrollTop } = this;
    if (!scrollLeft && !scrollTop) return;
    this.scrollTo(0, 0);
    this.pan(-scrollLeft, -scrollTop);
  };

  #wheel = event => {
    if (event.target.closest(".zoom")) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey) this.zoom(-event.deltaY * unit * 0.0025, this.#point(event));
    else this.pan(-event.deltaX * unit, -event.deltaY * unit);
  };

  #down = event => {
    if (event.button > 1 || event.target.closest("button, a, .step, .zoom, .drop") && event.pointerType === "mouse" && event.button === 0) return;
    this.#pointers.set(event.pointerId, this.#point(event));
  };

  #drag = event => {
    const from = this.#pointers.get(event.pointerId);
    if (!from) return;
    const to = this.#point(event);
    const moved = Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (!this.hasPointerCapture(event.pointerId)) {
      if (moved < 4) return;
      this.setPointerCapture(event.pointerId);
      this.classList.add("is-panning");
    }
    this.#pointers.set(event.pointerId, to);
    if (this.#pointers.size === 1) return this.pan(to[0] - from[0], to[1] - from[1]);
    const [a, b] = [...this.#pointers.values()];
    const span = Math.hypot(a[0] - b[0], a[1] - b[1]);
    if (this.#pinch) this.zoom((span - this.#pinch) / 300, [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]);
    this.#pinch = span;
  };

  #up = event => {
    this.#pointers.delete(event.pointerId);
    this.#pinch = 0;
    if (this.#pointers.size === 0) this.classList.remove("is-panning");
  };

  #button = event => {
    const how = event.target.closest("[data-zoom]")?.dataset.zoom;
    if (how === "fit") this.fit();
    else if (how) this.zoom(how === "in" ? STEP : -STEP);
  };

  #point(event) {
    const frame = this.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  }
}

const clamp = value => Math.max(LEAST, Math.min(MOST, value));

/* How far a span must move to lie inside another; the beginning wins when it does not fit. */
function short(low, high, least, most) {
  if (low < least) return least - low;
  if (high > most) return Math.max(most - high, least - low);
  return 0;
}

customElements.define("hf-canvas", Canvas);

export const view = () => document.querySelector("hf-canvas");
export const showCard = id => card(id) && view().show(card(id));
