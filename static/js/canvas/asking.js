/* What is asked in a dialog before a step changes: its id, with a preview of what that rewrites, and its note. */
import { card, fragment, nameOf, url } from "hf/canvas/board";
import { edit } from "hf/canvas/edits";

const TYPED = 200;
let step = "";
let timer = null;

function ask(id, control, value, take) {
  const dialog = document.getElementById(id);
  control.value = value;
  dialog.returnValue = "";
  dialog.showModal();
  control.select();
  dialog.addEventListener("close", () => dialog.returnValue === "yes" && take(control.value.trim()), { once: true });
}

export function askForId(id) {
  step = id;
  ask("rename", document.getElementById("rename-id"), id, value => value && value !== id && edit({ op: "rename", step: id, id: value }));
  preview();
}

export function askForNote(id) {
  const before = card(id).querySelector("[data-note]")?.textContent ?? "";
  document.getElementById("note-title").textContent = `Note on ${nameOf(id)}`;
  const label = note => `${note ? "Change" : "Remove"} the note on ${nameOf(id)}`;
  const take = note => note !== before && edit({ op: "configure", step: id, set: { note: note || null }, label: label(note) });
  ask("note", document.getElementById("note-text"), before, take);
}

async function preview() {
  const { value } = document.getElementById("rename-id");
  const html = await fragment(`${url("renaming/")}?${new URLSearchParams({ step, id: value })}`).catch(() => "");
  if (document.getElementById("rename-id").value === value) document.getElementById("rename-preview").innerHTML = html;
}

document.addEventListener("input", event => {
  if (event.target.id !== "rename-id") return;
  clearTimeout(timer);
  timer = setTimeout(preview, TYPED);
});
