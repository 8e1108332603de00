/* Rows that nest: what a group or list holds stands below it, one level deeper. */

document.addEventListener("click", event => {
  const button = event.target.closest("[data-outline] [data-add-inside]");
  if (!button) return;
  const row = button.closest("[data-row]");
  const inner = row.closest("hf-rows").add(lastInside(row));
  place(inner, depthOf(row) + 1, row.dataset.rowKind === "list");
});

document.addEventListener("change", event => {
  if (!event.target.matches?.("[data-outline] select[name=kind]")) return;
  const row = event.target.closest("[data-row]");
  row.dataset.rowKind = event.target.value;
  row.querySelector("[data-holds]").textContent = event.target.value === "value" ? "" : event.target.value;
  const inside = insideOf(row);
  if (event.target.value === "value") inside.forEach(one => one.remove());
  else if (inside.length === 0) row.querySelector("[data-add-inside]").click();
  inside.filter(one => depthOf(one) === depthOf(row) + 1).forEach(one => place(one, depthOf(one), event.target.value === "list"));
}, { capture: true });

/* Removing a group removes what it holds; runs before the row itself goes. */
document.addEventListener("click", event => {
  const button = event.target.closest("[data-outline] [data-remove-row]");
  if (button) insideOf(button.closest("[data-row]")).forEach(one => one.remove());
}, { capture: true });

function place(row, depth, inList) {
  row.dataset.depth = depth;
  row.dataset.vars = `--depth:${depth}`;
  row.querySelector("input[name=depth]").value = depth;
  row.toggleAttribute("data-in-list", inList);
  if (inList) row.querySelector("input[name=key]").value = "";
}

function insideOf(row) {
  const found = [];
  for (let next = row.nextElementSibling; next?.matches("[data-row]") && depthOf(next) > depthOf(row); next = next.nextElementSibling) found.push(next);
  return found;
}

const lastInside = row => insideOf(row).at(-1) ?? row;
const depthOf = row => Number(row.dataset.depth);
