/* Templates in the browser: only how they are shown. What they mean, the server says. */

const HOLE = /\{\{([\s\S]*?)\}\}/g;
const PATH = /^[A-Za-z_]\w*(?:\.\??[A-Za-z_]\w*|\[\d+\]|\["[^"\\]*"\])*$/;

/* "Hi {{ a.b }}!" -> ["Hi ", {expression: "a.b"}, "!"] */
export function parts(text) {
  const found = [];
  let last = 0;
  for (const hole of text.matchAll(HOLE)) {
    if (hole.index > last) found.push(text.slice(last, hole.index));
    found.push({ expression: hole[1].trim() });
    last = hole.index + hole[0].length;
  }
  if (last < text.length) found.push(text.slice(last));
  return found;
}

export const isPath = expression => PATH.test(expression);
export const braced = expression => `{{ ${expression} }}`;

/* What the data tree knows of a path: whose it is, what is left of it, and a sample value. */
export function describe(path, panel) {
  const rows = [...(panel?.querySelectorAll(".tree [data-path]") ?? [])];
  const plain = path.replaceAll(".?", ".");
  const exact = rows.find(row => row.dataset.path === plain);
  const root = rows.filter(row => row.classList.contains("tree__row--step") && begins(plain, row.dataset.path)).at(-1);
  if (!root) return { name: plain.replace(/^steps\./, "").replace(/\.output\b/, ""), rest: "", known: rows.length === 0, value: "" };
  const rest = plain.slice(root.dataset.path.length).replace(/^\./, "").replace(/^body\./, "").replaceAll('["', ".").replaceAll('"]', "");
  const siblings = root.parentElement.querySelector("[role=group]") != null;
  return {
    name: root.dataset.name,
    icon: root.parentElement.dataset.icon,
    rest: rest.replace(/^\./, "").split(".").join(" › "),
    known: exact != null || plain === root.dataset.path || !siblings || openEnded(plain, rows),
    value: exact?.querySelector(".v")?.textContent ?? "",
  };
}

const begins = (path, root) => path === root || path.startsWith(`${root}.`) || path.startsWith(`${root}[`);

/* Below a leaf whose inside nobody knows, everything may be there. */
function openEnded(path, rows) {
  const above = rows.filter(row => begins(path, row.dataset.path)).at(-1);
  return above != null && !above.classList.contains("tree__row--step") && above.parentElement.querySelector("[role=group]") == null && !["text", "number", "yes/no"].includes(above.querySelector(".t")?.textContent);
}
