/* Undo and redo: the buttons, the keys, and the toast after something was removed. */
import { readonly } from "hf/canvas/board";
import { redo, undo } from "hf/canvas/edits";
import { isTyping } from "hf/keyboard";
import { toast } from "hf/toast";

document.addEventListener("click", event => {
  if (event.target.closest("[data-undo]")) undo();
  if (event.target.closest("[data-redo]")) redo();
  if (event.target.closest(".toast [data-undo-edit]")) undo();
});

/* In a text field the keys belong to the text. */
document.addEventListener("keydown", event => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || readonly() || isTyping(event.target)) return;
  const key = event.key.toLowerCase();
  if (key !== "z" && key !== "y") return;
  event.preventDefault();
  if (key === "y" || event.shiftKey) redo();
  else undo();
});

document.addEventListener("draft:saved", ({ detail }) => {
  document.querySelector(".toast[data-undoes]")?.remove(); // it would take back another edit now
  if (!["remove", "remove_trigger", "remove_lane", "remove_note", "unwrap"].includes(detail.op)) return;
  toast({ message: detail.label.replace(/^Remove /, "Removed "), undo: document.getElementById("board").dataset.url + "undo/" });
});

/* The toast's own button posts by htmx: give it what every edit carries, and settle its answer the same way. */
document.addEventListener("htmx:beforeRequest", event => {
  if (!event.detail.pathInfo.requestPath.endsWith("/undo/")) return;
  event.preventDefault();
  undo();
});
