/* What the server answers to an edit: parts to swap, and events for the page. */
import { swapParts } from "hf/canvas/board";

export function takeAnswer(html, header) {
  swapParts(html);
  if (!header) return;
  for (const [name, detail] of Object.entries(JSON.parse(header))) document.dispatchEvent(new CustomEvent(name, { detail }));
}

/* The open panel, for whoever renders it anew. */
export function panelNow() {
  const panel = document.getElementById("panel");
  return panel && !panel.hidden ? { open: panel.dataset.owner, tab: panel.dataset.tab, shape: panel.dataset.shape } : {};
}
