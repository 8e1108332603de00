/* Under a field that is being typed in: what it gives with the sample data. */
import { url } from "hf/canvas/board";

const PAUSE = 200;

let timer = 0;
let under = null; // {host, line}
let asked = null;

const hostOf = target => target.closest?.("#panel hf-expr, #panel hf-code") ?? null;
const kindOf = host => host.dataset.lang ?? (host.hasAttribute("data-expression") ? "expression" : "template");
const textOf = host => host.querySelector("input, textarea").value;

document.addEventListener("focusin", event => {
  const host = hostOf(event.target);
  if (host) soon(host, 0);
});
document.addEventListener("input", event => {
  const host = hostOf(event.target);
  if (host) soon(host, PAUSE);
});
document.addEventListener("focusout", event => {
  if (!under || hostOf(event.target) !== under.host) return;
  if (pressed) addEventListener("pointerup", () => setTimeout(clearUnlessBack), { once: true });
  else clear();
});

/* What is pressed must not move away under the pointer: the line stays until it is released. */
let pressed = false;
addEventListener("pointerdown", () => (pressed = true), { capture: true });
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (pressed = false), { capture: true });

const clearUnlessBack = () => under && !under.host.contains(document.activeElement) && clear();

function soon(host, pause) {
  clearTimeout(timer);
  timer = setTimeout(() => show(host), pause);
}

/* One plain pill shows its value itself. */
function saysItself(host) {
  const [pill, more] = host.querySelectorAll(".pill:not(.pill--bad):has(.pill__val)");
  return pill !== undefined && more === undefined && host.querySelector(".expr").textContent === pill.textContent;
}

async function show(host) {
  const text = textOf(host);
  const kind = kindOf(host);
  if (!text.trim() || (kind !== "expression" && !text.includes("{{")) || saysItself(host)) return clear();
  asked?.abort();
  asked = new AbortController();
  const { owner } = document.getElementById("panel").dataset;
  const { field } = host.closest("[data-field]").dataset;
  const body = new URLSearchParams({ owner, field, text, kind });
  const headers = JSON.parse(document.body.getAttribute("hx-headers"));
  try {
    const response = await fetch(url("try/"), { method: "POST", body, headers, credentials: "same-origin", signal: asked.signal });
    if (response.ok) tell(host, await response.json());
  } catch { /* superseded, or no connection: the next letter asks again */ }
}

function tell(host, { value, type, error, column, short }) {
  if (!host.contains(document.activeElement)) return;
  if (!value && !type && !error) return withdraw();
  if (under?.host !== host) withdraw();
  under ??= { host, line: lineAfter(host) };
  const { line } = under;
  line.classList.toggle("result--wrong", Boolean(error));
  line.querySelector("b").textContent = error ? "" : "=";
  line.querySelector("span").textContent = error ? `${error}${column ? ` (column ${column})` : ""}` : `${value || "empty"}${short ? "…" : ""}`;
  line.title = value ?? "";
  line.querySelector("small").textContent = error ? "" : type;
}

function lineAfter(host) {
  const line = document.createElement("output");
  line.className = "result";
  line.append(document.createElement("b"), document.createElement("span"), document.createElement("small"));
  host.after(line);
  return line;
}

/* The line alone: a question that waits for its pause, of a later letter, still stands. */
function withdraw() {
  under?.line.remove();
  under = null;
}

function clear() {
  clearTimeout(timer);
  asked?.abort();
  withdraw();
}
