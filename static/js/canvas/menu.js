/* The menu of a step or trigger: one for the page, filled for whom it was opened. */
import { askForId, askForNote } from "hf/canvas/asking";
import { card, isTrigger, nameOf } from "hf/canvas/board";
import { copy, cut } from "hf/canvas/clipboard";
import { edit } from "hf/canvas/edits";
import { toggleFold } from "hf/canvas/folding";
import { addNote } from "hf/canvas/notes";
import { begin as beginMoving } from "hf/canvas/moving";
import { open as openPanel } from "hf/canvas/panel";
import { openAfter, openInstead } from "hf/canvas/picker";
import { about, chosen, named } from "hf/canvas/selection";
import { runTo } from "hf/canvas/testrun";

const menu = () => document.getElementById("step-menu");
let step = "";
let opener = null;

const ACTS = {
  open: () => openPanel(step),
  add: () => openAfter(step),
  unwrap: () => edit({ op: "unwrap", step }),
  fold: () => toggleFold(step),
  rename: () => askForId(step),
  note: () => askForNote(step),
  paper: () => addNote(step),
  replace: () => openInstead(step),
  duplicate: steps => edit({ op: "duplicate", ...about(steps) }),
  copy,
  cut,
  move: beginMoving,
  toggle: steps => edit({ op: "toggle", ...about(steps) }),
  "run-to": () => runTo(step),
  "wrap-condition": steps => edit({ op: "wrap", ...about(steps), type: "condition" }),
  "wrap-loop": steps => edit({ op: "wrap", ...about(steps), type: "loop" }),
  "wrap-parallel": steps => edit({ op: "wrap", ...about(steps), type: "parallel" }),
  remove: steps => (isTrigger(step) ? edit({ op: "remove_trigger", trigger: step }) : edit({ op: "remove", ...about(steps) })),
};

/* By name, on the picked steps when this is one of them, else on this step alone. */
export function act(name, id) {
  step = id;
  const steps = chosen(id);
  if (!card(id) || (isTrigger(id) && !["open", "remove"].includes(name))) return;
  ACTS[name](steps);
}

function open(button) {
  if (!button) return;
  step = button.dataset.menu;
  opener = button;
  const trigger = isTrigger(step);
  const node = document.getElementById(`node-${step}`);
  const box = Boolean(node?.querySelector(":scope > .box, :scope > .split .lane:not(.lane--through)"));
  const steps = chosen(step);
  for (const item of menu().querySelectorAll("[data-act]")) {
    const { act: name } = item.dataset;
    item.hidden = (trigger && !("forTrigger" in item.dataset)) || (name === "unwrap" && !box) || (name === "fold" && !card(step).querySelector("[data-fold]")) || (steps.length > 1 && "one" in item.dataset);
  }
  const off = steps.every(id => card(id).classList.contains("is-off"));
  const toggle = menu().querySelector("[data-act=toggle] span");
  if (toggle) toggle.textContent = off && steps.length ? "Turn on" : "Turn off";
  menu().setAttribute("aria-label", `Actions for ${trigger ? nameOf(step) : named(steps)}`);
  menu().showPopover();
  const from = button.getBoundingClientRect();
  menu().style.left = `${Math.max(8, Math.min(from.right - menu().offsetWidth, innerWidth - menu().offsetWidth - 8))}px`;
  menu().style.top = `${Math.max(8, Math.min(from.bottom + 4, innerHeight - menu().offsetHeight - 8))}px`;
  items()[0]?.focus();
}

export const openMenu = id => open(card(id)?.querySelector("[data-menu]"));

const items = () => [...menu().querySelectorAll("[data-act]")].filter(item => !item.hidden);

document.addEventListener("click", event => {
  const button = event.target.closest("[data-menu]");
  if (button) return open(button);
  const picked = event.target.closest("[data-picked-act]");
  if (picked) act(picked.dataset.pickedAct, chosen("")[0]);
  const item = event.target.closest("#step-menu [data-act]");
  if (!item) return;
  menu().hidePopover();
  act(item.dataset.act, step);
});

document.addEventListener("contextmenu", event => {
  const button = event.target.closest("#stage .step[data-step]")?.querySelector("[data-menu]");
  if (!button) return;
  event.preventDefault();
  open(button);
});

document.addEventListener("keydown", event => {
  if (!menu()?.matches(":popover-open")) return;
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") (opener?.isConnected ? opener : card(step)?.querySelector("[data-menu]"))?.focus({ preventScroll: true });
  if (!by) return;
  event.preventDefault();
  event.stopPropagation();
  const all = items();
  all[(all.indexOf(document.activeElement) + by + all.length) % all.length].focus();
}, { capture: true });

/* Lanes of the open step, from the panel. */
document.addEventListener("click", event => {
  const owner = document.getElementById("panel")?.dataset.owner;
  const { target } = event;
  if (target.closest("[data-add-lane]")) edit({ op: "add_lane", step: owner });
  const gone = target.closest("[data-remove-lane]");
  if (gone) edit({ op: "remove_lane", step: owner, lane: gone.dataset.removeLane });
  const up = target.closest("[data-move-lane]");
  if (up) edit({ op: "move_lane", step: owner, lane: up.dataset.moveLane, index: Number(up.dataset.to) });
});
