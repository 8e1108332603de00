/* The place that a + stands for, as operations name it. */
export function placeOf(button) {
  return button.dataset.after ? { after: button.dataset.after } : { parent: button.dataset.parent, lane: button.dataset.lane, index: 0 };
}

/* Where steps may go: every + but those inside them and the two beside a single one, which would change nothing. */

export function legal(ids) {
  const nodes = ids.map(id => document.getElementById(`node-${id}`));
  const before = nodes.length === 1 ? beforeOf(nodes[0]) : null;
  const within = add => nodes.some(node => node.contains(add));
  return [...document.querySelectorAll("#stage .add")].filter(add => add.offsetParent && !within(add) && add !== before);
}

/* The + right above a step: the link of its neighbour, or the first one of its lane. */
function beforeOf(node) {
  const above = node.previousElementSibling;
  if (above) return above.querySelector(":scope > .link .add");
  return node.parentElement.previousElementSibling?.querySelector(".add") ?? null;
}
