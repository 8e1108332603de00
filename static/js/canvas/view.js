/* <hf-canvas>: pan and zoom as one transform of the stage. Fit is the default and holds until somebody moves the view or
   edits the flow; from then on what is seen stays where it is, also over a reload. A flow that is too tall to be read as a whole begins
   at its beginning; asked to fit, it is shown as a whole, and the step that is opened then comes near. */
import { card } from "hf/canvas/board";

const LEAST = 0.4; // what is smaller cannot be read
const SMALLEST = 0.1;
const MOST = 1.5;
const STEP = 0.1;
const MARGIN = 8;
const WIRE = devicePixelRatio > 1 ? 1.4 : 1.8; // how many pixels thick a connector is at least; a fine screen shows thinner ones
const BELOW = 64; // for the + under a card

/* Where the canvases of this page were moved to, for those that take their place. */
const KEPT = `canvases of ${location.pathname}`;
const views = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");
addEventListener("pagehide", () => sessionStorage.setItem(KEPT, JSON.stringify(views)));

class Canvas extends HTMLElement {
  #x = 0;
  #y = 0;
  #z = 1;
  #fitted = true;
  #whole = false; // however small that makes it
  #free = false; // moved by hand
  #pointers = new Map();
  #pinch = 0;
  #width = 0;
  #height = 0;
  #lent = [0, 0]; // how far it was panned to show the step whose panel opened
  #stood = [];

  connectedCallback() {
    this.addEventListener("wheel", this.#wheel, { passive: false });
    this.addEventListener("pointerdown", this.#down);
    this.addEventListener("pointermove", this.#drag);
    this.addEventListener("pointerup", this.#up);
    this.addEventListener("pointercancel", this.#up);
    this.addEventListener("click", this.#button);
    this.addEventListener("scroll", this.#scrolled);
    this.addEventListener("focusin", ({ target }) => target.matches(":active") || this.show(target)); // what is pressed stays under the pointer
    for (const [event, act] of this.#heard) document.addEventListener(event, act);
    this.#begin();
  }

  disconnectedCallback() {
    for (const [event, act] of this.#heard) document.removeEventListener(event, act);
  }

  get stage() { return this.querySelector(".canvas__stage"); }
  get scale() { return this.#z; }

  fit() {
    const { offsetWidth: width, offsetHeight: height } = this.stage;
    const scale = Math.min(1, this.clientWidth / width, this.clientHeight / height);
    if (this.#whole) this.#z = Math.max(SMALLEST, scale);
    else this.#z = scale < LEAST ? Math.max(LEAST, Math.min(1, this.clientWidth / width)) : scale;
    this.#x = Math.max(0, (this.clientWidth - width * this.#z) / 2);
    if (width * this.#z > this.clientWidth) this.#x = this.#beginning(width);
    this.#y = 0;
    this.#fitted = true;
    this.#free = false;
    this.#lent = [0, 0];
    this.#apply();
  }

  fitWhole() {
    this.#whole = true;
    this.fit();
  }

  /* A press that began before this was loaded keeps its card under the pointer, or its click would be none. */
  #begin() {
    if (this.stage.querySelector(".step:active")) {
      addEventListener("pointerup", () => setTimeout(() => this.#begin()), { once: true });
      return;
    }
    [this.#width, this.#height] = [this.clientWidth, this.clientHeight];
    new ResizeObserver(this.#resized).observe(this);
    const kept = views[this.getAttribute("aria-label")];
    if (!kept) return this.fit();
    this.#moveTo(...kept);
  }

  /* The panel opens beside it, or closes: what nobody has moved stays in the middle, and where somebody has, what was panned
     for the panel's step is taken back. */
  #resized = () => {
    const [by, down] = [this.clientWidth - this.#width, this.clientHeight - this.#height];
    if (!by && !down) return;
    [this.#width, this.#height] = [this.clientWidth, this.clientHeight];
    if (this.#fitted) {
      this.fit();
      const { open } = document.getElementById("board")?.dataset ?? {};
      if (card(open)) this.lend(card(open));
    } else if (by && !this.#free) this.#shift(this.#toMiddle(by), 0);
    else if (by > 0) this.#shift(-this.#lent[0], -this.#lent[1]);
    if (by > 0) this.#lent = [0, 0];
  };

  /* How far to the middle; what is wider than the canvas keeps what was in its middle. */
  #toMiddle(by) {
    const width = this.stage.offsetWidth * this.#z;
    return width <= this.clientWidth ? (this.clientWidth - width) / 2 - this.#x : by / 2;
  }

  /* The cards that are seen, from the top, before something is swapped; afterwards the first of them that was not itself
     moved is where it was. */
  #remember = () => {
    const frame = this.getBoundingClientRect();
    this.#stood = [...this.stage.querySelectorAll(".step[data-step]")]
      .map(one => [one.dataset.step, one.getBoundingClientRect()])
      .filter(([, box]) => box.width && box.bottom > frame.top && box.top < frame.bottom && box.right > frame.left && box.left < frame.right);
  };

  #stay = ({ detail }) => {
    const moved = [detail.focus, ...(detail.picked ?? [])];
    for (const [step, was] of this.#stood.splice(0)) {
      const now = !moved.includes(step) && card(step)?.getBoundingClientRect();
      if (now && now.width) return this.#shift(was.left - now.left, was.top - now.top);
    }
  };

  #heard = Object.entries({
    "canvas:swapping": this.#remember,
    "draft:saved": this.#stay,
    "draft:caught_up": this.#stay,
    "canvas:resized": () => this.#fitted && this.fit(),
  });

  /* Too wide even at the least scale: begin where the first card is in the middle. */
  #beginning(width) {
    return Math.min(MARGIN, (this.clientWidth - width * this.#z) / 2);
  }

  zoom(by, at = null) {
    const { clientWidth, clientHeight } = this;
    const [px, py] = at ?? [clientWidth / 2, clientHeight / 3];
    const next = Math.max(SMALLEST, Math.min(MOST, Math.round((this.#z + by) * 100) / 100));
    this.#moveTo(px - ((px - this.#x) * next) / this.#z, py - ((py - this.#y) * next) / this.#z, next);
  }

  pan(dx, dy) {
    this.#moveTo(this.#x + dx, this.#y + dy, this.#z);
  }

  #moveTo(x, y, z) {
    [this.#x, this.#y, this.#z] = [x, y, z];
    this.#free = true;
    this.#lent = [0, 0];
    this.#shift(0, 0);
  }

  #shift(dx, dy) {
    this.#x += dx;
    this.#y += dy;
    this.#fitted = this.#whole = false;
    this.#apply();
  }

  /* In the middle, and large enough to be read. */
  centre(element) {
    const box = element.getBoundingClientRect();
    const frame = this.getBoundingClientRect();
    const z = this.#z < LEAST ? 1 : this.#z;
    const x = (box.left + box.width / 2 - frame.left - this.#x) / this.#z;
    const y = (box.top + box.height / 2 - frame.top - this.#y) / this.#z;
    this.#moveTo(this.clientWidth / 2 - x * z, this.clientHeight / 2 - y * z, z);
  }

  /* Bring an element of the stage into view, moving no more than needed. */
  show(element) {
    if (!this.stage.contains(element)) return;
    const box = (element.closest(".step, .paper") ?? element).getBoundingClientRect();
    const frame = this.getBoundingClientRect();
    const dx = short(box.left, box.right, frame.left + MARGIN, frame.right - MARGIN);
    const dy = short(box.top, box.bottom, frame.top + MARGIN, frame.bottom - BELOW * this.#z);
    if (dx || dy) this.#shift(dx, dy);
  }

  /* The same for the step whose panel opens: where nobody has moved the view, it is no less the whole flow for that. */
  lend(element) {
    this.#resized();
    if (this.#z < LEAST) return this.centre(element);
    const [x, y, fitted] = [this.#x, this.#y, this.#fitted];
    this.show(element);
    this.#lent = [this.#lent[0] + this.#x - x, this.#lent[1] + this.#y - y];
    this.#fitted = fitted;
    if (fitted) views[this.getAttribute("aria-label")] = null;
  }

  #apply() {
    const { style } = this.stage;
    style.setProperty("--x", `${Math.round(this.#x)}px`);
    style.setProperty("--y", `${Math.round(this.#y)}px`);
    style.setProperty("--z", this.#z);
    style.setProperty("--wire", `${Math.max(2, Math.round(WIRE / this.#z))}px`); // whole pixels: a border has no others
    this.stage.classList.add("is-placed");
    views[this.getAttribute("aria-label")] = this.#fitted ? null : [this.#x, this.#y, this.#z];
    const level = this.querySelector(".zoom output");
    if (level) level.textContent = `${Math.round(this.#z * 100)}%`;
  }

  /* Focus scrolls even what hides its overflow; the place it meant is reached by panning. */
  #scrolled = () => {
    const { scrollLeft, scrollTop } = this;
    if (!scrollLeft && !scrollTop) return;
    this.scrollTo(0, 0);
    this.#shift(-scrollLeft, -scrollTop); // nobody's hand
  };

  #wheel = event => {
    if (event.target.closest(".zoom")) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey) this.zoom(-event.deltaY * unit * 0.0025, this.#point(event));
    else this.pan(-event.deltaX * unit, -event.deltaY * unit);
  };

  #down = event => {
    if (event.button > 1 || event.target.closest("button, a, .step, .paper, .zoom, .drop") && event.pointerType === "mouse" && event.button === 0) return;
    this.#pointers.set(event.pointerId, this.#point(event));
  };

  #drag = event => {
    const from = this.#pointers.get(event.pointerId);
    if (!from || document.documentElement.classList.contains("is-dragging-step")) return;
    const to = this.#point(event);
    const moved = Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (!this.hasPointerCapture(event.pointerId)) {
      if (moved < (event.pointerType === "touch" ? 8 : 4)) return;
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
    if (how === "fit") this.fitWhole();
    else if (how) this.zoom(how === "in" ? STEP : -STEP);
  };

  #point(event) {
    const frame = this.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  }
}

/* How far a span must move to lie inside another; the beginning wins when it does not fit. */
function short(low, high, least, most) {
  if (low < least) return least - low;
  if (high > most) return Math.max(most - high, least - low);
  return 0;
}

customElements.define("hf-canvas", Canvas);

export const view = () => document.querySelector("hf-canvas");
export const showCard = id => card(id) && view().lend(card(id));
