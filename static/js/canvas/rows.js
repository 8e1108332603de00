/* <hf-rows>: rows that can be added from a <template> and removed. Removing is a change; an empty new row is none. */

export const changed = element => element.dispatchEvent(new Event("change", { bubbles: true }));

class Rows extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", this.#click);
    this.addEventListener("change", this.#type);
    this.addEventListener("keydown", this.#next);
  }

  #click = event => {
    if (event.target.closest("[data-add-row]")) this.add();
    const remove = event.target.closest("[data-remove-row]");
    if (remove) this.remove(remove.closest("[data-row]"));
  };

  #type = event => {
    if (event.target.name === "type") event.target.closest("[data-row]").dataset.type = event.target.value;
  };

  add(after = null) {
    const row = this.querySelector(":scope > template").content.firstElementChild.cloneNode(true);
    if (after) after.after(row);
    else this.querySelector(":scope > template").before(row);
    focusFirst(row);
    return row;
  }

  remove(row) {
    const neighbour = row.nextElementSibling?.matches("[data-row]") ? row.nextElementSibling : row.previousElementSibling;
    row.remove();
    if (neighbour?.matches?.("[data-row]")) focusFirst(neighbour);
    else this.querySelector("[data-add-row]")?.focus();
    tell(this);
  }

  /* Enter in the last row begins another. */
  #next = event => {
    if (event.key !== "Enter" || event.shiftKey || !event.target.matches("input, .expr")) return;
    const rows = [...this.querySelectorAll(":scope > [data-row]")];
    if (event.target.closest("[data-row]") !== rows.at(-1)) return;
    event.preventDefault();
    event.target.blur();
    this.add();
  };
}

/* The first control that is there to be seen: an expression's own input is not. */
export const focusFirst = row => [...row.querySelectorAll("input, textarea, .expr, select")].find(one => one.offsetParent)?.focus();

/* A row that is gone has no control that could change: the field itself says so. */
function tell(rows) {
  const place = rows.closest("[data-field]");
  place.dispatchEvent(new CustomEvent("field:changed", { bubbles: true }));
}

customElements.define("hf-rows", Rows);
