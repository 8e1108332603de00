/* A file dropped on the builder: a flow takes the place of the draft, after a question and with undo; copied steps are pasted. */
import { board, readonly } from "hf/canvas/board";
import { edit } from "hf/canvas/edits";
import { toast } from "hf/toast";

const LARGEST = 2 ** 20;

const carriesFile = event => event.dataTransfer?.types.includes("Files");

addEventListener("dragover", event => {
  if (!carriesFile(event)) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = readonly() ? "none" : "copy";
  board().toggleAttribute("data-over", !readonly());
});
addEventListener("dragleave", event => event.relatedTarget == null && board().removeAttribute("data-over"));
addEventListener("drop", async event => {
  if (!carriesFile(event)) return;
  event.preventDefault();
  board().removeAttribute("data-over");
  const [file, more] = event.dataTransfer.files;
  if (readonly() || !file || more) return;
  const text = file.size <= LARGEST ? await file.text() : "";
  const found = read(text);
  if (found?.holdfast === "steps" && Array.isArray(found.steps)) edit({ op: "paste", steps: found.steps, place: { parent: "", lane: "" } });
  else if (Array.isArray(found?.steps)) ask(found, file.name);
  else toast({ message: `${file.name} holds no flow. ${whyNot(text, found)}Nothing was changed.`, kind: "failed" });
});

function whyNot(text, found) {
  if (found?.nodes) return "It is a flow of another product. ";
  return text.trim() && found === undefined ? "It is not whole JSON. " : "";
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/* The flow keeps its own name: people know it by that. */
function ask(definition, file) {
  const dialog = document.getElementById("drop-file");
  dialog.querySelector("[data-file]").textContent = file;
  dialog.returnValue = "";
  dialog.showModal();
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "yes") return;
    const name = document.getElementById("flow-name").textContent;
    edit({ op: "replace", definition: { ...definition, name }, label: `Take the flow of ${file}`.slice(0, 120) });
  }, { once: true });
}
