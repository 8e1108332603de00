/* <hf-toasts>: one short message at a time, at the lower edge.
   The server asks for it with HX-Trigger: {"toast": {"message": "Removed Send intro", "undo": "/flows/7/undo/"}};
   code asks with toast({message, kind, undo}). Kinds: succeeded, attention, failed. */

const SECONDS = 6;
const SECONDS_WITH_UNDO = 10;
const SECONDS_OF_FAILURE = 20; // why has to be read

class Toasts extends HTMLElement {
  #timer;

  connectedCallback() {
    const shown = this.querySelector(":scope > .toast");
    if (shown) this.#startClock(this.seconds = secondsOf(shown));
    document.addEventListener("toast", this.#asked);
    this.addEventListener("pointerenter", this.#hold);
    this.addEventListener("focusin", this.#hold);
    this.addEventListener("pointerleave", this.#release);
    this.addEventListener("focusout", this.#release);
  }

  disconnectedCallback() {
    document.removeEventListener("toast", this.#asked);
    clearTimeout(this.#timer);
  }

  show({ message, kind = "succeeded", undo, action }) {
    const template = this.querySelector(`template[data-kind="${kind}"]`) ?? this.querySelector("template");
    const box = template.content.firstElementChild.cloneNode(true);
    box.querySelector("[data-text]").textContent = message;
    if (undo) box.append(this.#undoButton(undo, action ?? "Undo"));
    box.toggleAttribute("data-undoes", Boolean(undo));
    this.#clear();
    this.append(box);
    this.#startClock(this.seconds = secondsOf(box));
  }

  #asked = event => this.show(typeof event.detail === "string" ? { message: event.detail } : event.detail);
  #hold = () => clearTimeout(this.#timer);
  #release = () => this.#startClock(this.seconds);

  #undoButton(url, label) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () => {
      this.#clear();
      htmx.ajax("POST", url, { source: document.body, swap: "none" });
    });
    return button;
  }

  #startClock(seconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#clear(), seconds * 1000);
  }

  #clear() {
    clearTimeout(this.#timer);
    this.querySelectorAll(":scope > .toast").forEach(box => box.remove());
  }
}

function secondsOf(box) {
  if (box.querySelector(".is-failed")) return SECONDS_OF_FAILURE;
  return "undoes" in box.dataset ? SECONDS_WITH_UNDO : SECONDS;
}

customElements.define("hf-toasts", Toasts);

export const toast = detail => document.dispatchEvent(new CustomEvent("toast", { detail }));

/* A request that failed without an answer of ours in its place must not look as if nothing had been pressed. */
document.addEventListener("htmx:sendError", () =>
  toast({ message: "No connection to Holdfast. Nothing was changed; try again in a moment.", kind: "failed" }));
document.addEventListener("htmx:responseError", event => {
  const { status } = event.detail.xhr;
  if (status === 401) location.reload();
  else toast({ message: refusal(status), kind: "failed" });
});

function refusal(status) {
  if (status === 403) return "Your role does not allow that. Nothing was changed.";
  if (status === 404) return "That is no longer there. Reload the page to see what is.";
  if (status === 413) return "That is too large. Nothing was changed.";
  return "That did not work. Nothing was changed; try again in a moment.";
}
