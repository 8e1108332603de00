/* Copy, cut and paste of steps, through the system's clipboard as JSON: between flows, and as text for whoever wants it. */
import { announce, card, current, fragment, isTrigger, nameOf, readonly, url } from "hf/canvas/board";
import { edit } from "hf/canvas/edits";
import { isTyping } from "hf/keyboard";
import { toast } from "hf/toast";

const KIND = "holdfast/steps";

export async function copy(step) {
  if (!step || isTrigger(step)) return false;
  const text = await fragment(`${url("copy/")}?step=${encodeURIComponent(step)}`).catch(() => "");
  if (!text) return false;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    sessionStorage.setItem(KIND, text); // no permission, or no HTTPS: within this browser tab it still works
  }
  sessionStorage.setItem(KIND, text);
  announce(`Copied ${nameOf(step)}`);
  return true;
}

export async function cut(step) {
  if (await copy(step)) edit({ op: "remove", step });
}

/* At a place, or after a step. */
export async function pasteAt(place) {
  let text = "";
  try {
    text = await navigator.clipboard.readText();
  } catch { /* not allowed */ }
  paste(text, place) || paste(sessionStorage.getItem(KIND) ?? "", place) || toast({ message: "There is no copied step to paste.", kind: "attention" });
}

function paste(text, place) {
  const steps = read(text);
  if (steps) edit({ op: "paste", steps, place });
  return Boolean(steps);
}

function read(text) {
  try {
    const found = JSON.parse(text);
    const steps = found?.holdfast === "steps" ? found.steps : null;
    return Array.isArray(steps) && steps.length ? steps : null;
  } catch {
    return null;
  }
}

const afterCurrent = () => (card(current()) && !isTrigger(current()) ? { after: current() } : { index: 0 });

/* The browser's own events, so that its menu and every keyboard layout work, and no permission is asked for. */
document.addEventListener("paste", event => {
  if (readonly() || isTyping(event.target)) return;
  const steps = read(event.clipboardData.getData("text/plain")) ?? read(sessionStorage.getItem(KIND) ?? "");
  if (!steps) return;
  event.preventDefault();
  edit({ op: "paste", steps, place: afterCurrent() });
});

document.addEventListener("keydown", event => {
  if (!(event.ctrlKey || event.metaKey) || isTyping(event.target) || getSelection().toString()) return;
  const key = event.key.toLowerCase();
  if ((key !== "c" && key !== "x") || !card(current())) return;
  event.preventDefault();
  if (key === "c") copy(current());
  else if (!readonly()) cut(current());
});
