/* <hf-testbar>: a test run that is followed. Its states lie over the cards until the bar is closed. */
import { announce, card, cards, swapParts, url } from "hf/canvas/board";
import { open } from "hf/canvas/panel";

class TestBar extends HTMLElement {
  connectedCallback() {
    this.states = JSON.parse(document.getElementById("test-states").textContent);
    this.paint();
    this.addEventListener("click", event => event.target.closest("[data-close-test]") && this.close());
    if (this.hasAttribute("data-ended")) this.#ended();
  }

  paint() {
    for (const one of cards()) clear(one);
    for (const [step, { state, word }] of Object.entries(this.states)) {
      const one = card(step);
      if (one) lay(one, state, word, this.querySelector(`template[data-shape="${state}"]`));
    }
  }

  close() {
    for (const one of cards()) clear(one);
    const place = document.createElement("div");
    place.id = this.id;
    place.hidden = true;
    this.replaceWith(place);
  }

  /* Its outputs are the sample data from now on. Nobody is interrupted who types just now. */
  #ended() {
    announce(`Test run ${this.dataset.run}: ${this.querySelector(".state").textContent.trim()}`);
    if (!document.getElementById("panel").contains(document.activeElement)) renewSamples().then(tellWhy);
  }
}

/* What was wrong with the open step, where it failed in the run that is followed. */
function tellWhy() {
  const bar = document.querySelector("hf-testbar");
  const step = document.getElementById("panel").dataset.owner;
  if (bar?.states[step]?.state !== "failed" || !document.getElementById("test-result")) return;
  htmx.ajax("GET", `${url("test/result/")}?${new URLSearchParams({ run: bar.dataset.run, step })}`, { target: "#test-result", swap: "innerHTML show:top" });
}

document.addEventListener("panel:opened", tellWhy);

function lay(one, state, word, shape) {
  one.dataset.run = state;
  one.classList.add(`is-${state}`);
  const mark = document.createElement("span");
  mark.className = "step__ran";
  mark.append(shape.content.cloneNode(true), word);
  one.append(mark);
}

function clear(one) {
  if (!one.dataset.run) return;
  one.classList.remove(`is-${one.dataset.run}`);
  delete one.dataset.run;
  one.querySelector(".step__ran")?.remove();
}

/* The open panel, the problems and the cards, with the sample data as it is now. */
async function renewSamples() {
  const body = new URLSearchParams({ from: "keep", ...opened() });
  const headers = { "HX-Request": "true", ...JSON.parse(document.body.getAttribute("hx-headers")) };
  const response = await fetch(url("samples/"), { method: "POST", body, headers, credentials: "same-origin" }).catch(() => null);
  if (response?.ok) swapParts(await response.text());
}

/* What a request has to say so that the open panel is drawn anew. */
function opened() {
  const panel = document.getElementById("panel");
  return panel.hidden ? {} : { open: panel.dataset.owner, tab: panel.dataset.tab };
}

customElements.define("hf-testbar", TestBar);

document.addEventListener("htmx:configRequest", event => {
  if (event.detail.elt.closest("[data-with-panel]")) Object.assign(event.detail.parameters, opened());
});

/* A card that was swapped has lost what lay over it. */
let soon = 0;
document.addEventListener("htmx:oobAfterSwap", () => {
  cancelAnimationFrame(soon);
  soon = requestAnimationFrame(() => document.querySelector("hf-testbar")?.paint());
});

/* A call was caught: it is the sample already, and the page does not show it yet. */
document.addEventListener("htmx:load", event => event.detail.elt.matches?.("[data-came]") && renewSamples());

document.addEventListener("samples:changed", () => document.getElementById("samples-dialog")?.close());

/* Typing a payload, or choosing a run, chooses that way. */
document.addEventListener("focusin", event => {
  const kind = event.target.dataset?.chooses;
  if (kind) event.target.form.querySelector(`input[name=from][value="${kind}"]`).checked = true;
});

document.addEventListener("click", event => {
  const button = event.target.closest("[data-run-to]");
  if (button) runTo(button.dataset.runTo);
  const why = event.target.closest("[data-why]")?.dataset.why;
  if (card(why)) open(why, { tab: "test" });
});

export const runTo = step => htmx.ajax("GET", `${url("test/run/")}?to=${encodeURIComponent(step)}`, { target: "#layer" });
