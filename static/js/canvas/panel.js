/* Opening, closing and renewing the panel. The canvas keeps its place and its focus. */
import { announce, asked, board, card, cards, focusCard, url } from "hf/canvas/board";
import { pending, settled } from "hf/canvas/edits";
import { reveal } from "hf/canvas/folding";
import { rowAt } from "hf/canvas/foot";
import { showCard } from "hf/canvas/view";
import { select } from "hf/tabs";

let wanted = 0;

export const panel = () => document.getElementById("panel");
export const isOpen = () => !panel().hidden;

/* step: an id, or "" for the flow's settings. True when it is open. */
export async function open(step, { tab = panel().dataset.tab || "setup", field = "" } = {}) {
  const query = step ? `step=${encodeURIComponent(step)}&tab=${tab}` : "settings";
  const mine = ++wanted;
  reveal(step);
  for (leave(); pending(); leave()) await settled(); // else the answer to an edit of the step that was open would come over this one
  if (mine !== wanted) return false;
  const html = await asked(`${url("panel/")}?${query}`);
  if (mine !== wanted || !html) return false;
  htmx.swap("#panel", html, { swapStyle: "outerHTML" });
  mark(step);
  address(step);
  requestAnimationFrame(() => {
    showCard(step);
    if (field) goTo(field);
  });
  document.dispatchEvent(new CustomEvent("panel:opened"));
  return true;
}

/* A step that has just failed in a test is opened for what was wrong with it. */
async function openByHand(step) {
  if (await open(step, card(step).dataset.run === "failed" ? { tab: "test" } : {})) announce(`${panel().getAttribute("aria-label")} are open; F6 goes there`);
}

export function close() {
  wanted++;
  const owner = panel().dataset.owner;
  const hadFocus = document.activeElement === document.body || panel().contains(document.activeElement);
  leave();
  htmx.swap("#panel", '<aside class="inspector" id="panel" hidden></aside>', { swapStyle: "outerHTML" });
  mark(null);
  address("");
  if (hadFocus && owner) focusCard(owner);
}

/* What was typed and not yet left is an edit of the panel that goes. */
function leave() {
  if (panel().contains(document.activeElement)) document.activeElement.blur();
}

/* Focus the first control of a field, on whichever tab it stands. */
export function goTo(field) {
  const place = findField(field);
  if (!place) return;
  const body = place.closest("[role=tabpanel]");
  const tab = body && document.getElementById(body.getAttribute("aria-labelledby"));
  if (tab) select(tab);
  place.closest("details")?.setAttribute("open", "");
  const inside = field.replace(/^config\./, "").slice(place.dataset.field.replace(/^config\./, "").length + 1);
  const row = rowAt(place, inside.split(".").filter(Boolean));
  const controls = [...(row ?? place).querySelectorAll(".expr, input:not([type=hidden]), select, textarea, button")].filter(one => one.offsetParent);
  (controls.find(one => one.matches("[aria-invalid=true], [aria-describedby$=-err]")) ?? controls[0])?.focus();
  (row ?? place).scrollIntoView({ block: "nearest" });
}

/* `config.json.email` lies in the field `config.json`, in the row whose key is `email`. What a step says of itself is `json.email`. */
function findField(field) {
  const parts = field.split(".");
  while (parts.length) {
    const name = CSS.escape(parts.join("."));
    const found = panel().querySelector(`[data-field="${name}"], [data-field="config.${name}"]`);
    if (found) return found;
    parts.pop();
  }
  return panel().querySelector("[data-field]:not([data-field=name])");
}

/* The page's address opens what is open now, also after a reload. */
function address(step) {
  history.replaceState(history.state, "", step ? `?step=${encodeURIComponent(step)}` : location.pathname);
}

function mark(step) {
  if (step == null) delete board().dataset.open;
  else board().dataset.open = step;
  for (const one of cards()) {
    const chosen = step && one.dataset.step === step;
    one.classList.toggle("is-selected", Boolean(chosen));
    const name = one.querySelector(".step__name");
    if (chosen) name.setAttribute("aria-current", "true");
    else name.removeAttribute("aria-current");
  }
}

document.addEventListener("click", event => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey) return;
  const name = event.target.closest("#stage .step[data-step] .step__name");
  if (name) {
    event.preventDefault();
    if (!("moving" in board().dataset)) openByHand(name.closest(".step").dataset.step);
  } else if (event.target.closest("[data-close-panel]")) close();
  else if (event.target.closest("[data-open-settings]")) open("");
});

document.addEventListener("tab:selected", event => panel().contains(event.target) && wear(panel(), event.target));

/* The tab is the one that is open now, and not the one that was open when the answer was asked for. */
document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target, fragment } }) => {
  const tab = panel().contains(target) && fragment.querySelector?.(`#tab-${panel().dataset.tab}`);
  if (!tab) return;
  select(tab);
  const fresh = fragment.querySelector("#panel");
  if (fresh) wear(fresh, tab);
});

function wear(aside, { id }) {
  aside.dataset.tab = id.replace("tab-", "");
  aside.classList.toggle("inspector--data", Boolean(aside.querySelector("#data")) && id !== "tab-safety");
}

document.addEventListener("draft:saved", ({ detail }) => {
  if (detail.panel_gone) close();
  else if (["insert", "paste", "duplicate", "wrap", "replace_type", "add_trigger"].includes(detail.op) && card(detail.focus) && !(detail.picked?.length > 1)) open(detail.focus, { tab: "setup" });
  else if (isOpen()) {
    reveal(panel().dataset.owner);
    mark(panel().dataset.owner);
    address(panel().dataset.owner);
  }
  if (detail.focus) reveal(detail.focus);
  const inside = panel().dataset.owner === detail.focus && panel().contains(document.activeElement); // as after “Add lane”
  if (detail.op && detail.op !== "configure" && detail.focus && !inside) focusCard(detail.focus);
});

document.addEventListener("draft:caught_up", ({ detail }) => detail.panel_gone && close());
document.addEventListener("canvas:swapped", () => isOpen() && mark(panel().dataset.owner));

if (panel() && isOpen()) {
  reveal(panel().dataset.owner);
  mark(panel().dataset.owner);
  const field = new URLSearchParams(location.search).get("field"); // from the page of a run that failed at it
  requestAnimationFrame(() => {
    showCard(panel().dataset.owner);
    if (field) goTo(field);
  });
}
