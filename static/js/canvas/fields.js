/* A change in the panel is sent as it was typed, field by field: what a field is, the server knows. */
import { staying, swapAround } from "hf/canvas/around";
import { readonly } from "hf/canvas/board";
import { editField } from "hf/canvas/edits";
import { blame, rowsOf } from "hf/canvas/foot";
import { panel } from "hf/canvas/panel";
import { restore } from "hf/focus";

document.addEventListener("change", event => {
  const place = event.target.closest?.("#panel [data-field]");
  if (place && !readonly() && event.target.name) sendField(place);
});

/* A field in which somebody types while the panel is renewed stays what it is, caret and all; so does one with the focus, unless
   it has another value now. */
let typedIn = null;

document.addEventListener("input", event => (typedIn = event.target.closest?.("#panel [data-field]") ?? null));
document.addEventListener("change", event => typedIn?.contains(event.target) && (typedIn = null));
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
  const old = panel();
  const fresh = detail.target === old && detail.shouldSwap && detail.fragment.getElementById("panel");
  const stays = fresh && staying(old, fresh, isUnsaved);
  if (!stays || !swapAround(stays, old, fresh)) return;
  detail.shouldSwap = false;
  restore();
});

const isUnsaved = (field, fresh) => field === typedIn || String(valuesOf(field)) === String(valuesOf(fresh));

function sendField(place) {
  const { owner } = place.closest("#panel").dataset; // also of a panel that is gone already
  clearRefusal(place);
  editField(owner, place.dataset.field, valuesOf(place));
}

/* Controls of a field inside this one belong to that one; a control in a part that is hidden still belongs. */
function valuesOf(place) {
  const controls = [...place.querySelectorAll("input[name], select[name], textarea[name]")];
  return controls
    .filter(control => control.closest("[data-field]") === place)
    .filter(control => !["checkbox", "radio"].includes(control.type) || control.checked)
    .map(control => [control.name, control.value]);
}

document.addEventListener("draft:refused", ({ detail }) => {
  if (!detail.field) return;
  const place = document.querySelector(`#panel [data-field="${CSS.escape(detail.field)}"]`);
  const foot = place?.querySelector(".field__foot");
  if (!foot) return;
  const row = detail.row == null ? null : rowsOf(place)[detail.row];
  (row ?? place).querySelectorAll("input:not([type=hidden]), textarea, .expr").forEach(blame);
  foot.say(refusal(detail, foot), row);
});

function refusal(detail, foot) {
  const message = document.createElement("p");
  message.className = "err is-failed";
  message.id = `${foot.id.replace(/-foot$/, "")}-err`;
  message.setAttribute("role", "alert");
  const words = document.createElement("span");
  words.append(detail.message);
  if (detail.put) words.append(" ", putButton(detail));
  message.append(words);
  return message;
}

/* What was typed, spelled as it can be read: one press writes it into the field and saves it. */
function putButton({ put, label }) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", () => {
    const host = [...button.closest("[data-field]").querySelectorAll("hf-expr, hf-code")].find(one => one.offsetParent);
    host?.write(put);
  });
  return button;
}

function clearRefusal(place) {
  for (const control of place.querySelectorAll(".is-invalid")) {
    control.classList.remove("is-invalid");
    control.removeAttribute("aria-invalid");
  }
}

document.addEventListener("field:changed", event => {
  if (!readonly()) sendField(event.target.closest("[data-field]"));
});
