/* data-vars="--x:12;--w:40" becomes custom properties of the element.
   The content security policy forbids style attributes; the CSSOM it allows. An observer, so that it does not matter
   who put the element there. */

const SELECTOR = "[data-vars]";

function applyVars(element) {
  for (const pair of element.dataset.vars.split(";")) {
    const cut = pair.indexOf(":");
    const name = pair.slice(0, cut).trim();
    if (cut > 0 && name.startsWith("--")) element.style.setProperty(name, pair.slice(cut + 1).trim());
  }
}

function applyWithin(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return;
  if (node.matches(SELECTOR)) applyVars(node);
  node.querySelectorAll(SELECTOR).forEach(applyVars);
}

new MutationObserver(records => {
  for (const { type, target, addedNodes } of records) {
    if (type === "childList") addedNodes.forEach(applyWithin);
    else if (target.dataset.vars) applyVars(target);
  }
}).observe(document.documentElement, { childList: true, subtree: true, attributeFilter: ["data-vars"] });

applyWithin(document.documentElement);
