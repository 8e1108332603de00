/* Where a step may go: every + but those inside it and the two beside it, which would change nothing. */

export function legal(step) {
  const node = document.getElementById(`node-${step}`);
  const before = beforeOf(node);
  return [...document.querySelectorAll("#stage .add")].filter(add => !node.contains(add) && add !== before);
}

/* The + right above a step: the link of its neighbour, or the first one of its lane. */
function beforeOf(node) {
  const above = node.previousElementSibling;
  if (above) return above.querySelector(":scope > .link .add");
  return node.parentElement.previousElementSibling?.querySelector(".add") ?? null;
}
