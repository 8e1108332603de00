/* <hf-foot>: what is said of a field, below it. Where only one of its rows is at fault (data-at), it stands in that row. */

class Foot extends HTMLElement {
  connectedCallback() {
    const { at } = this.dataset;
    this.place(at ? rowAt(this.closest("[data-field]"), at.split(".")) : null);
  }

  say(message, row) {
    this.replaceChildren(message);
    this.place(row);
  }

  place(row) {
    for (const old of this.closest("[data-field]").querySelectorAll("[data-row] > .err")) old.remove();
    const message = row && this.querySelector(".err");
    if (!message) return;
    row.append(message);
    const controls = [...row.querySelectorAll(row.matches(".cond__row") ? ".cond__right :is(input, .expr)" : ":is([name=value], .expr)")];
    for (const control of controls) control.setAttribute("aria-describedby", message.id);
    if (lacksValue(row)) controls.forEach(blame);
  }
}

/* The rows as they are counted: an empty rule is none. */
export const rowsOf = place => [...place.querySelectorAll("[data-row]")].filter(row => !row.matches(".cond__row") || isFilled(row));

const isFilled = row => valueOf(row, "left") || valueOf(row, "right");
const valueOf = (row, name) => row.querySelector(`[name=${name}]`).value.trim();
const lacksValue = row =>
  row.matches(".cond__row") && !valueOf(row, "right") && !row.querySelector("[data-alone].cond__ops") && !["==", "!="].includes(valueOf(row, "comparison"));

export function blame(control) {
  control.classList.add("is-invalid");
  control.setAttribute("aria-invalid", "true");
}

/* `["deal", "amount"]`: the row `amount` below the row `deal`. Rows without keys, rules and lines, are found by their number. */
export function rowAt(place, keys) {
  const rows = rowsOf(place);
  let [found, from] = [null, 0];
  for (const [depth, key] of keys.entries()) {
    const inner = below(rows, from, depth);
    const next = inner.find(row => row.dataset.key === key) ?? (/^\d+$/.test(key) ? inner.filter(row => !row.dataset.key)[Number(key)] : null);
    if (!next) break;
    found = next;
    from = rows.indexOf(next) + 1;
  }
  return found;
}

/* The rows at this depth from there on, up to where the group ends. */
function below(rows, from, depth) {
  const rest = rows.slice(from);
  const depthOf = row => Number(row.dataset.depth ?? 0);
  const end = rest.findIndex(row => depthOf(row) < depth);
  return rest.slice(0, end === -1 ? rest.length : end).filter(row => depthOf(row) === depth);
}

customElements.define("hf-foot", Foot);
