/* Where the caret stands in a field: in an .expr the text node around it, in a text area or input its whole text. */

const HIGHLIGHTED = "hf-code";

/* {text, at, node | area, rect()}: `at` counts in `text`. Nothing while something is selected, or outside such a field. */
export function caretIn(field) {
  return field.matches("textarea, input") ? inArea(field) : inEditor(field);
}

function inArea(area) {
  if (area.selectionStart !== area.selectionEnd) return null;
  return { text: area.value, at: area.selectionStart, area, rect: () => areaRect(area) };
}

function inEditor(editor) {
  const selection = getSelection();
  if (!selection.isCollapsed || !editor.contains(selection.anchorNode)) return null;
  const node = selection.anchorNode;
  if (node.nodeType !== Node.TEXT_NODE) return { text: "", at: 0, node: null, rect: () => editor.getBoundingClientRect() };
  const range = selection.getRangeAt(0);
  return { text: node.data, at: selection.anchorOffset, node, rect: () => solid(range) ?? editor.getBoundingClientRect() };
}

/* A collapsed range at the end of a line has no box of its own. */
function solid(range) {
  const box = range.getClientRects()[0];
  return box && (box.height || box.width) ? box : null;
}

/* The highlighted copy under a text area lies letter for letter where the text does. */
function areaRect(area) {
  const paint = area.closest(HIGHLIGHTED)?.querySelector("pre");
  const range = paint && rangeAt(paint, area.selectionStart);
  return (range && solid(range)) || area.getBoundingClientRect();
}

function rangeAt(paint, at) {
  const walker = document.createTreeWalker(paint, NodeFilter.SHOW_TEXT);
  let left = at;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (left <= node.length) {
      const range = document.createRange();
      range.setStart(node, left);
      range.collapse(true);
      return range;
    }
    left -= node.length;
  }
  return null;
}

/* Select `from`…`at` before the caret, so that what is typed or inserted next replaces it. */
export function selectBack(caret, from) {
  if (caret.area) caret.area.setSelectionRange(from, caret.at);
  else if (caret.node) getSelection().setBaseAndExtent(caret.node, from, caret.node, caret.at);
}
