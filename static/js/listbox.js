/* A text field above a list of choices, of which one is marked while the focus stays in the field. */

/* Mark this choice among all, or none. */
export function mark(input, all, choice) {
  for (const one of all) one.setAttribute("aria-selected", one === choice);
  if (!choice) return input.removeAttribute("aria-activedescendant");
  input.setAttribute("aria-activedescendant", choice.id);
  choice.scrollIntoView({ block: "nearest" });
}

export const marked = all => all.find(one => one.getAttribute("aria-selected") === "true");

/* The choice to which an arrow key leads, round the ends. */
export function neighbour(all, key) {
  const at = all.indexOf(marked(all));
  return key === "ArrowDown" ? all[(at + 1) % all.length] : all.at(at - 1);
}
