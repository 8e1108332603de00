/* <hf-expr> around an input or textarea: shows {{ path }} as a pill with its sample value. The input keeps the text and is
   what is sent; without script it is simply edited as text. */
import { braced, describe, isPath, parts } from "hf/canvas/template";

class Expr extends HTMLElement {
  connectedCallback() {
    this.control = this.querySelector("input, textarea");
    if (this.editor || !this.control) return;
    this.lines = this.hasAttribute("data-lines");
    this.editor = this.#makeEditor();
    this.control.hidden = true;
    this.append(this.editor);
    this.#render(this.control.value);
    this.addEventListener("input", event => event.target === this.editor && this.#typed());
    this.editor.addEventListener("focusout", ({ relatedTarget }) => relatedTarget?.closest("hf-data") || this.leave());
    this.editor.addEventListener("keydown", this.#key);
    this.editor.addEventListener("paste", this.#paste);
    this.editor.addEventListener("click", this.#beside);
    this.editor.addEventListener("dblclick", event => this.#open(event.target.closest(".pill")));
  }

  get value() { return this.control.value; }

  /* Put a path where the caret was. In an expression that is more than one value it is written out. */
  insert(path) {
    const raw = this.hasAttribute("data-expression") && this.value.trim() !== "" && !this.editor.querySelector(".pill");
    const replaces = this.hasAttribute("data-expression") && this.editor.querySelector(".pill") && !this.#hasText();
    if (replaces) this.editor.replaceChildren();
    this.#placeCaret();
    const node = raw ? document.createTextNode(path) : this.#pill(path);
    const range = getSelection().getRangeAt(0);
    range.deleteContents();
    range.insertNode(node);
    range.setStartAfter(node);
    range.collapse(true);
    this.#typed();
    this.#commit();
  }

  /* Another text in the place of what stands there, as if it had been typed. */
  write(text) {
    this.control.value = text;
    this.#render(text);
    this.dirty = true;
    this.#commit();
    this.editor.focus();
  }

  #makeEditor() {
    const editor = document.createElement("div");
    editor.className = this.lines ? "expr expr--lines" : "expr";
    editor.id = this.control.id ? `${this.control.id}-expr` : "";
    editor.setAttribute("role", "textbox");
    editor.setAttribute("aria-multiline", this.lines);
    editor.setAttribute("aria-autocomplete", "list");
    const label = this.control.id && document.querySelector(`label[for="${CSS.escape(this.control.id)}"]`);
    editor.setAttribute("aria-label", (label && label.textContent.trim()) || this.control.getAttribute("aria-label") || "Value");
    if (this.control.hasAttribute("aria-describedby")) editor.setAttribute("aria-describedby", this.control.getAttribute("aria-describedby"));
    if (this.control.classList.contains("is-invalid")) {
      editor.classList.add("is-invalid");
      editor.setAttribute("aria-invalid", "true");
    }
    const fixed = this.control.readOnly || this.control.matches(":disabled");
    editor.contentEditable = fixed ? "false" : "true";
    editor.spellcheck = !this.hasAttribute("data-expression") && this.lines;
    editor.dataset.placeholder = this.control.placeholder;
    if (this.hasAttribute("data-expression")) editor.classList.add("mono");
    return editor;
  }

  #render(text) {
    const shown = this.hasAttribute("data-expression") ? unbracedUnlessPath(text) : text;
    this.editor.replaceChildren(...parts(shown).map(part => (typeof part === "string" ? document.createTextNode(part) : this.#pill(part.expression))));
    this.editor.classList.toggle("is-empty", shown === "");
  }

  #pill(expression) {
    const pill = document.createElement("span");
    pill.className = "pill";
    pill.contentEditable = "false";
    pill.draggable = true;
    pill.dataset.source = braced(expression);
    pill.title = pill.dataset.source;
    const path = document.createElement("span");
    path.className = "pill__path";
    pill.append(path);
    if (!isPath(expression)) {
      path.append(expression);
      return pill;
    }
    const panel = this.closest(".inspector");
    const about = describe(expression, panel);
    const name = document.createElement("b");
    name.textContent = about.name;
    const icon = about.icon && panel.querySelector(`.data template[data-icon="${about.icon}"]`);
    if (icon) path.append(icon.content.cloneNode(true));
    path.append(name);
    if (about.rest) path.append(arrow(), about.rest);
    const answer = /^response\b/.test(expression); // what a call gives to its own expressions: nobody has it before
    pill.classList.toggle("pill--bad", !about.known && !answer);
    const value = about.known ? about.value : answer ? "" : "not found";
    if (value) {
      const sample = document.createElement("span");
      sample.className = "pill__val";
      sample.textContent = value;
      pill.append(sample);
    }
    return pill;
  }

  #typed() {
    this.control.value = serialize(this.editor);
    this.editor.classList.toggle("is-empty", this.control.value === "");
    this.dirty = true;
  }

  /* Whoever goes to the data comes back with some of it: only then, or elsewhere, is what was typed done. */
  leave() {
    this.#commit();
    if (/\{\{/.test(this.editor.textContent)) this.#render(this.control.value);
  }

  #commit() {
    if (!this.dirty) return;
    this.dirty = false;
    this.control.dispatchEvent(new Event("change", { bubbles: true }));
  }

  #key = event => {
    const pill = event.target.closest(".pill");
    if (event.key === "Enter" && pill) this.#open(pill);
    else if (event.key === "Enter" && this.lines && !event.ctrlKey) document.execCommand("insertText", false, "\n");
    else if (event.key === "Enter") this.#commit();
    else return;
    event.preventDefault();
  };

  #paste = event => {
    event.preventDefault();
    const text = event.clipboardData.getData("text/plain");
    document.execCommand("insertText", false, this.lines ? text : text.replace(/\s*\n\s*/g, " "));
  };

  /* Put a path where it was let go; on a pill, beside it. */
  drop(path, { target, clientX, clientY }) {
    const pill = target.closest(".pill");
    const range = document.caretRangeFromPoint?.(clientX, clientY);
    if (pill) this.#caretBeside(pill, clientX);
    else if (range && this.editor.contains(range.startContainer)) {
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
    this.insert(path);
  }

  /* A pill that is pressed has the caret on that side of it. */
  #beside = ({ target, clientX, detail }) => {
    const pill = target.closest(".pill");
    if (pill && detail < 2 && this.editor.contentEditable === "true") this.#caretBeside(pill, clientX);
  };

  #caretBeside(pill, clientX) {
    const { left, width } = pill.getBoundingClientRect();
    this.editor.focus();
    getSelection().collapse(this.editor, [...this.editor.childNodes].indexOf(pill) + (clientX > left + width / 2));
  }

  /* A pill opened is its text again; leaving the field closes it. */
  #open(pill) {
    if (!pill || this.editor.contentEditable !== "true") return;
    const text = document.createTextNode(pill.dataset.source);
    pill.replaceWith(text);
    getSelection().setBaseAndExtent(text, 3, text, text.length - 3);
  }

  #hasText() {
    return [...this.editor.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
  }

  #placeCaret() {
    const selection = getSelection();
    if (selection.rangeCount && this.editor.contains(selection.anchorNode)) return;
    this.editor.focus();
    selection.selectAllChildren(this.editor);
    selection.collapseToEnd();
  }
}

function serialize(editor) {
  let text = "";
  for (const node of editor.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) text += node.data;
    else if (node.matches(".pill")) text += node.dataset.source;
    else if (node.tagName === "BR") text += node.nextSibling ? "\n" : "";
    else text += `\n${serialize(node)}`;
  }
  return text.replaceAll("\u00a0", " ");
}

function unbracedUnlessPath(text) {
  const found = parts(text);
  return found.length === 1 && found[0].expression && !isPath(found[0].expression) ? found[0].expression : text;
}

function arrow() {
  const mark = document.createElement("i");
  mark.textContent = "›";
  return mark;
}

/* The label may be another one by now. */
document.addEventListener("click", event => event.target.closest?.("label[for]")?.control?.closest("hf-expr")?.editor?.focus());

customElements.define("hf-expr", Expr);
