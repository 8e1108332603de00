/* <hf-confirm question="Cancel run 48,213?" text="…" yes="Cancel run" no="Keep running"> around a form:
   asks before the form is sent, be it by the browser or by htmx. Without script the form simply works.
   button="[value=cancel]" asks for that button of the form alone. A button may bring its own data-question, data-text, data-no
   and data-mild, and is then called by its own words in the dialog.
   told="/address/" posts the form there first and shows what comes back below the text; the [data-number] in it is how many, and a
   checked [data-instead] in it takes the place of the button's value.
   ask="Why?" asks for a word on it, too, which the form's field "why" carries. */

class Confirm extends HTMLElement {
  #agreed = false;
  #asked = null;

  connectedCallback() {
    this.addEventListener("submit", this.#ask, { capture: true });
  }

  #ask = event => {
    if (this.#agreed) {
      this.#agreed = false;
      return;
    }
    const { target: form, submitter } = event;
    if (this.hasAttribute("button") && !submitter?.matches(this.getAttribute("button"))) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    this.#openDialog(submitter).addEventListener("close", ({ target: dialog }) => {
      if (dialog.returnValue !== "yes") return;
      this.#agreed = true;
      if (this.hasAttribute("ask")) form.elements.why.value = dialog.querySelector("#confirm-why").value;
      const instead = dialog.querySelector("[data-instead]:checked");
      if (instead) submitter.value = instead.value;
      form.requestSubmit(submitter);
    }, { once: true });
  };

  async #tell(told, yes, submitter) {
    const asked = this.#asked = {};
    told.textContent = "Looking at what it does…";
    yes.disabled = true;
    const body = new FormData(submitter.form, submitter);
    const answer = await fetch(this.getAttribute("told"), { method: "POST", body }).catch(() => null);
    const words = answer?.ok ? await answer.text() : "";
    if (this.#asked !== asked) return;
    yes.disabled = false;
    if (words && answer.headers.get("Content-Type")?.startsWith("text/html")) told.innerHTML = words;
    else told.textContent = words || "What it does in detail could not be asked just now.";
    const number = told.querySelector("[data-number]")?.dataset.number;
    if (number) yes.textContent = `${submitter.querySelector("[data-number]").dataset.number} ${number}`;
  }

  #openDialog(submitter) {
    const dialog = document.getElementById("confirm"), own = submitter?.dataset.question ? submitter : null;
    const fill = (selector, name, otherwise) => {
      dialog.querySelector(selector).textContent = own?.dataset[name] || this.getAttribute(name) || otherwise;
    };
    fill("#confirm-question", "question", "Go on?");
    fill("#confirm-text", "text", "");
    fill("[data-yes]", "yes", own?.textContent.trim() || "Go on");
    fill("[data-no]", "no", "Keep it");
    const told = dialog.querySelector("#confirm-told");
    told.textContent = "";
    dialog.querySelector("[data-yes]").disabled = false;
    this.#asked = null;
    if (this.hasAttribute("told")) this.#tell(told, dialog.querySelector("[data-yes]"), submitter);
    const mild = own ? "mild" in own.dataset : this.hasAttribute("mild");
    dialog.querySelector("[data-yes]").classList.toggle("btn--destroy", !mild);
    dialog.querySelector("[data-yes]").classList.toggle("btn--primary", mild);
    const ask = this.getAttribute("ask"), why = dialog.querySelector("#confirm-why");
    dialog.querySelector("[data-asked]").hidden = !ask;
    dialog.querySelector("[data-asked] label").textContent = ask ?? "";
    why.required = Boolean(ask);
    why.value = "";
    dialog.returnValue = "";
    dialog.showModal();
    if (ask) why.focus();
    return dialog;
  }
}

customElements.define("hf-confirm", Confirm);
