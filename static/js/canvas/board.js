/* What the page knows of itself: the flow, the draft's revision, the open step. Everything else is asked of the server. */
import { fragment } from "hf/fragment";
import { toast } from "hf/toast";

export const board = () => document.getElementById("board");
export const url = part => `${board().dataset.url}${part}`;
export const revision = () => board().dataset.revision;
export const readonly = () => "readonly" in board().dataset;

export const card = id => (id ? document.getElementById(`step-${id}`) : null);
export const cards = () => [...document.querySelectorAll("#stage .step[data-step]")];
export const nameOf = id => card(id)?.querySelector(".step__name")?.textContent ?? id;
export const isTrigger = id => card(id)?.hasAttribute("data-trigger") ?? false;

/* The step that a key or a menu acts on: the focused card, else the open one. */
export const current = () => document.activeElement?.closest("#stage .step[data-step]")?.dataset.step ?? board().dataset.open ?? "";

export function focusCard(id) {
  card(id)?.querySelector(".step__name")?.focus({ preventScroll: true });
}

export function announce(text) {
  document.getElementById("announce").textContent = text;
}

export { fragment };

/* For what somebody has pressed: without an answer it says so, and gives nothing. */
export const asked = address =>
  fragment(address).catch(() => {
    toast({ message: "There is no answer from Holdfast. Nothing was changed; try again in a moment.", kind: "failed" });
    return "";
  });

/* Put out-of-band parts of an answer in their places. What lies over the cards, and where they stand, is put right by whoever
   hears of it. */
export function swapParts(html) {
  if (!html) return;
  document.dispatchEvent(new CustomEvent("canvas:swapping"));
  htmx.swap(document.body, withPlaces(html), { swapStyle: "none" });
  document.dispatchEvent(new CustomEvent("canvas:swapped"));
}

/* What an answer says of a panel that has been closed meanwhile has no place any more. */
function withPlaces(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  const lost = [...box.content.querySelectorAll("[id][hx-swap-oob=true]")].filter(part => !document.getElementById(part.id));
  for (const part of lost) part.remove();
  return lost.length ? box.innerHTML : html;
}
