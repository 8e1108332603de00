/* The menu of a step or trigger: one for the page, filled for whom it was opened. */
import { card, isTrigger, nameOf } from "hf/canvas/board";
import { copy, cut } from "hf/canvas/clipboard";
import { edit } from "hf/canvas/edits";
import { begin as beginMoving } from "hf/canvas/moving";
import { open as openPanel } from "hf/canvas/panel";
import { openAfter } from "hf/canvas/picker";

const menu = () => document.getElementById("step-menu");
let step = "";
let opener = null;

const ACTS = {
  open: () => openPanel(step),
  add: () => openAfter(step),
  duplicate: () => edit({ op: "duplicate", step }),
  copy: () => copy(step),
  cut: () => cut(step),
  move: () => beginMoving(step),
  toggle: () => edit({ op: "toggle", step }),
  "wrap-condition": () => edit({ op: "wrap", step, type: "condition" }),
  "wrap-loop": () => edit({ op: "wrap", step, type: "loop" }),
  "wrap-parallel": () => edit({ op: "wrap", step, type: "parallel" }),
  unwrap: () => edit({ op: "unwrap", step }),
  rename: () => askForId(),
  remove: () => remove(step),
};

export const remove = id => edit(isTrigger(id) ? { op: "remove_trigger", trigger: id } : { op: "remove", step: id });

function open(button) {
  step = button.dataset.menu;
  opener = button;
  const trigger = isTrigger(step);
  const node = document.getElementById(`node-${step}`);
  const box = Boolean(node?.querySelector(":scope > .box, :scope > .split .lane:not(.lane--through)"));
  for (const item of menu().querySelectorAll("[data-act]")) {
    item.hidden = (trigger && !item.hasAttribute("data-for-trigger")) || (item.dataset.act === "unwrap" && !box);
  }
  menu().querySelector("[data-act=toggle] span").textContent = card(step)?.classList.contains("is-off") ? "Turn on" : "Turn off";
  menu().setAttribute("aria-label", `Actions for ${nameOf(step)}`);
  menu().showPopover();
  const from = button.getBoundingClientRect();
  menu().style.left = `${Math.max(8, Math.min(from.right - menu().offsetWidth, innerWidth - menu().offsetWidth - 8))}px`;
  menu().style.top = `${Math.max(8, Math.min(from.bottom + 4, innerHeight - menu().offsetHeight - 8))}px`;
  items()[0]?.focus();
}

const items = () => [...menu().querySelectorAll("[data-act]")].filter(item => !item.hidden);

function askForId() {
  const dialog = document.getElementById("rename");
  const input = dialog.querySelector("input");
  input.value = step;
  dialog.returnValue = "";
  dialog.showModal();
  input.select();
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "yes" && input.value.trim() && input.value !== step) edit({ op: "rename", step, id: input.value.trim() });
  }, { once: true });
}

document.addEventListener("click", event => {
  const button = event.target.closest("[data-menu]");
  if (button) return open(button);
  const item = event.target.closest("#step-menu [data-act]");
  if (!item) return;
  menu().hidePopover();
  ACTS[item.dataset.act]();
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
  if (event.key === "Escape") opener?.focus({ preventScroll: true });
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

