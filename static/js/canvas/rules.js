/* <hf-rules>: a condition as rows of value, comparison, value; all or any; or as one expression. */
import { renew } from "hf/canvas/renew";
import { focusFirst } from "hf/canvas/rows";

class Rules extends HTMLElement {
  connectedCallback() {
    this.#join();
    this.addEventListener("click", this.#click);
    this.addEventListener("change", this.#change, { capture: true });
  }

  get rows() { return this.querySelector("[data-rows]"); }

  #click = event => {
    const { target } = event;
    if (target.closest("[data-add-rule]")) this.#add("0");
    if (target.closest("[data-add-group]")) this.#add(`new-${this.rows.children.length}-${Date.now() % 1e6}`);
    const into = target.closest("[data-add-into]");
    if (into) this.#add(into.dataset.addInto, into);
    const match = target.closest("[data-match] button");
    if (match) this.#match(match);
    const mode = target.closest("[data-as]");
    if (mode) this.#as(mode.dataset.as);
    const remove = target.closest("[data-remove-row]");
    if (remove) this.#remove(remove.closest("[data-row]"));
  };

  /* At the end; or into a group, where its own button stands. */
  #add(group, place = null) {
    const row = this.querySelector(":scope template").content.firstElementChild.cloneNode(true);
    row.querySelector("input[name=group]").value = group;
    row.classList.toggle("cond__row--in", group !== "0");
    if (place) place.before(row);
    else this.rows.append(row);
    this.#join();
    focusFirst(row);
  }

  #remove(row) {
    row.remove();
    this.#join();
    this.#tell();
  }

  #match(button) {
    for (const other of button.parentElement.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
    this.querySelector("input[name=match]").value = button.value;
    this.#join();
    this.#tell();
  }

  #change = event => {
    if (event.target.name !== "comparison") return;
    const alone = event.target.selectedOptions[0].hasAttribute("data-alone");
    event.target.closest(".cond__ops").toggleAttribute("data-alone", alone);
  };

  /* The words between the rows; rules of a group are joined by the other word, and a group ends with a button for more. */
  #join() {
    this.querySelectorAll(".cond__and, .cond__more").forEach(part => part.remove());
    const all = this.querySelector("input[name=match]").value !== "any";
    const rows = [...this.rows.children];
    rows.forEach((row, index) => {
      const group = groupOf(row);
      const within = group !== "0" && index > 0 && groupOf(rows[index - 1]) === group;
      if (index > 0) row.before(word(within ? !all : all, within));
      if (group !== "0" && !(rows[index + 1] && groupOf(rows[index + 1]) === group)) row.after(this.#more(group, all));
    });
  }

  #more(group, all) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn--ghost btn--sm cond__more";
    button.dataset.addInto = group;
    button.textContent = all ? "or …" : "and …";
    button.setAttribute("aria-label", "Add a rule to this group");
    button.hidden = this.querySelector("[data-add-rule]") === null;
    return button;
  }

  /* The other way to write it is rendered anew, so that it shows what is saved. */
  async #as(mode) {
    const place = await renew(this.closest("[data-field]"));
    place?.querySelector("hf-rules").show(mode);
  }

  show(mode) {
    this.querySelector("input[name=mode]").value = mode;
    for (const part of this.querySelectorAll(":scope > [data-mode]")) part.hidden = part.dataset.mode !== mode;
  }

  #tell() {
    this.dispatchEvent(new CustomEvent("field:changed", { bubbles: true }));
  }
}

const groupOf = row => row.querySelector("input[name=group]").value;

function word(all, within) {
  const element = document.createElement("div");
  element.className = within ? "cond__and cond__and--in" : "cond__and";
  element.textContent = all ? "and" : "or";
  return element;
}

customElements.define("hf-rules", Rules);
