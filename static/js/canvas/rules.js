/* <hf-rules>: a condition as rows of value, comparison, value; all or any; or as one expression. */
import { renew } from "hf/canvas/renew";

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
    if (target.closest("[data-add-group]")) this.#add(String(Date.now() % 1e6));
    const match = target.closest("[data-match] button");
    if (match) this.#match(match);
    const mode = target.closest("[data-as]");
    if (mode) this.#as(mode.dataset.as);
    const remove = target.closest("[data-remove-row]");
    if (remove) this.#remove(remove.closest("[data-row]"));
  };

  #add(group) {
    const row = this.querySelector(":scope template").content.firstElementChild.cloneNode(true);
    row.querySelector("input[name=group]").value = group;
    row.classList.toggle("cond__row--in", group !== "0");
    const last = this.rows.lastElementChild;
    if (last && group === "0" && last.querySelector("input[name=group]")?.value !== "0") this.rows.append(row);
    else this.rows.append(row);
    this.#join();
    row.querySelector(".expr, input:not([type=hidden])").focus();
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

  /* The words between the rows; rules of a group are joined by the other word. */
  #join() {
    this.querySelectorAll(".cond__and").forEach(word => word.remove());
    const all = this.querySelector("input[name=match]").value !== "any";
    let before = null;
    for (const row of [...this.rows.children]) {
      const group = row.querySelector("input[name=group]").value;
      if (before !== null) row.before(this.#word(group !== "0" && group === before ? !all : all, row));
      before = group;
    }
  }

  #word(all, row) {
    const word = document.createElement("div");
    word.className = row.classList.contains("cond__row--in") ? "cond__and cond__and--in" : "cond__and";
    word.textContent = all ? "and" : "or";
    return word;
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

customElements.define("hf-rules", Rules);
