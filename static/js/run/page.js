/* The run page: rows that fold, rows that are links, and updates that leave alone what looks as before. */

const folded = new Map();

/* The chosen step may stand far below: a failure is shown, and not searched for. */
const chosen = document.querySelector(".wf tr.is-selected");
const list = document.querySelector(".runlist");
if (chosen && chosen.offsetTop + chosen.offsetHeight > list.clientHeight) list.scrollTop = chosen.offsetTop - list.clientHeight / 2;

document.addEventListener("click", event => {
  const twist = event.target.closest("[data-twist]");
  if (twist) return fold(twist.closest("tr"));
  const row = event.target.closest(".wf tbody tr");
  if (row && !event.target.closest("a, button")) row.querySelector("a.n")?.click();
});

function fold(row) {
  const open = row.getAttribute("aria-expanded") === "true";
  folded.set(row.dataset.path, open);
  row.setAttribute("aria-expanded", !open);
  showRows(row.closest("tbody"));
}

/* A row is hidden while any row above it in the tree is folded. Rows come parents first. */
function showRows(body) {
  const shut = new Set();
  for (const row of body.rows) {
    row.hidden = shut.has(row.dataset.parent);
    if (row.hidden || row.getAttribute("aria-expanded") === "false") shut.add(row.dataset.path);
  }
}

/* What a person folded stays so when the table is replaced. Iterations are opened by the server and not here. */
function refold(root) {
  const body = root.querySelector?.(".wf tbody") ?? root.closest?.(".wf tbody");
  if (!body) return;
  for (const row of body.rows)
    if (row.querySelector("[data-twist]") && folded.has(row.dataset.path))
      row.setAttribute("aria-expanded", !folded.get(row.dataset.path));
  showRows(body);
}

/* Up and Down walk the steps. */
document.addEventListener("keydown", event => {
  if (!["ArrowDown", "ArrowUp"].includes(event.key) || !event.target.matches?.(".wf a.n")) return;
  const links = [...document.querySelectorAll(".wf tr:not([hidden]) a.n")];
  const next = links[links.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)];
  if (!next) return;
  event.preventDefault();
  next.focus();
});

/* The chosen tab outlives both a swap of the panel and the choice of another step. */
let tab = "";
document.addEventListener("tab:selected", event => { tab = event.target.id; });

function reselect() {
  const button = document.getElementById(tab);
  if (button?.getAttribute("aria-selected") === "false") button.click();
}

document.addEventListener("htmx:oobBeforeSwap", event => {
  const { target, fragment } = event.detail;
  const fresh = fragment.querySelector?.(`#${target.id}`) ?? fragment.firstElementChild;
  if (target.dataset?.rev && target.dataset.rev === fresh?.dataset.rev) event.detail.shouldSwap = false;
});
document.addEventListener("htmx:oobAfterSwap", event => { refold(event.detail.target ?? document); reselect(); });
document.addEventListener("htmx:afterSwap", () => { refold(document); reselect(); });
