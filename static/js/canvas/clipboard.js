/* Copy, cut and paste of steps, through the system's clipboard as JSON: between flows, and as text for whoever wants it. */
import { announce, current, fragment, isTrigger, readonly, url } from "hf/canvas/board";
import { edit } from "hf/canvas/edits";
import { placeOf } from "hf/canvas/places";
import { about, chosen, named } from "hf/canvas/selection";
import { isTyping } from "hf/keyboard";
import { toast } from "hf/toast";

const KIND = "holdfast/steps";

export async function copy(steps) {
  if (!steps.length) return false;
  const query = new URLSearchParams(steps.map(step => ["step", step]));
  const text = await fragment(`${url("copy/")}?${query}`).catch(() => "");
  if (!text) {
    toast({ message: "Nothing was copied. Try again in a moment.", kind: "failed" });
    return false;
  }
  try {
    await navigator.clipboard.writeText(text);
    localStorage.removeItem(KIND);
  } catch {
    localStorage.setItem(KIND, text); // no permission, or no HTTPS: within this browser it still works
  }
  announce(`Copied ${named(steps)}`);
  return true;
}

export async function cut(steps) {
  if (await copy(steps)) edit({ op: "remove", ...about(steps) });
}

/* At a place, or after a step. */
export async function pasteAt(place) {
  let text = "";
  try {
    text = await navigator.clipboard.readText();
  } catch { /* not allowed */ }
  paste(text, place);
}

function paste(text, place) {
  const steps = read(text) ?? (isJson(text) ? null : read(localStorage.getItem(KIND) ?? ""));
  if (steps) edit({ op: "paste", steps, place });
  else toast({ message: whyNot(text), kind: "attention" });
}

const isJson = text => /^\s*[[{]/.test(text);

/* What is wrong with a text that holds no steps. */
function whyNot(text) {
  if (!isJson(text)) return "There is no copied step to paste.";
  try {
    const { nodes } = JSON.parse(text);
    return nodes ? "This is a flow of another product. Its steps cannot be pasted here." : "This JSON holds no steps: each has an id and a type.";
  } catch (wrong) {
    return `This is not whole JSON, and nothing was pasted: ${wrong.message}`;
  }
}

/* What was copied here, or steps as anybody may write them: a flow, a list of steps, one step. */
function read(text) {
  try {
    const found = JSON.parse(text);
    const steps = Array.isArray(found) ? found : found?.steps && !found.type ? found.steps : [found];
    return Array.isArray(steps) && steps.length && steps.every(step => step?.type && step.id) ? steps : null;
  } catch {
    return null;
  }
}

/* At the + that has the focus; after what is picked or focused; else at the end, so that it is seen where the flow goes on. */
function afterCurrent() {
  const add = document.activeElement.closest("#stage .add");
  if (add) return placeOf(add);
  const last = chosen().at(-1);
  return last ? { after: last } : { index: isTrigger(current()) ? 0 : Number.MAX_SAFE_INTEGER };
}

/* The browser's own events, so that its menu and every keyboard layout work, and no permission is asked for. */
document.addEventListener("paste", event => {
  if (readonly() || isTyping(event.target)) return;
  event.preventDefault();
  paste(event.clipboardData.getData("text/plain"), afterCurrent());
});

document.addEventListener("keydown", event => {
  if (!(event.ctrlKey || event.metaKey) || isTyping(event.target) || getSelection().toString()) return;
  const key = event.key.toLowerCase();
  const steps = chosen();
  if ((key !== "c" && key !== "x") || !steps.length) return;
  event.preventDefault();
  if (key === "c") copy(steps);
  else if (!readonly()) cut(steps);
});
