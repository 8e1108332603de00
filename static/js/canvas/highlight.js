/* Text to coloured pieces: expressions, and JSON with {{ }} in its strings. Only how it looks; what it means, the server says. */

const EXPRESSION = /(?<comment>\/\/[^\n]*)|(?<text>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|(?<number>\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|(?<word>\b(?:true|false|null|in)\b)|(?<call>[A-Za-z_]\w*(?=\())|(?<name>[A-Za-z_]\w*)|(?<sign>&&|\|\||[=!<>]=|[-+*/%<>!?:])/g;
const JSON_TEXT = /(?<key>"(?:\\.|[^"\\\n])*"(?=\s*:))|(?<text>"(?:\\.|[^"\\\n])*"?)|(?<number>-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|(?<word>\b(?:true|false|null)\b)/g;
const HOLE = /\{\{[\s\S]*?(?:\}\}|$)/g;

export function paint(text, language) {
  return language === "json" ? pieces(text, JSON_TEXT, holes) : pieces(text, EXPRESSION, plain);
}

/* Everything between two matches stays as it is, so that the copy has every letter. */
function pieces(text, lexis, inside) {
  const found = [];
  let last = 0;
  for (const match of text.matchAll(lexis)) {
    if (match.index > last) found.push(text.slice(last, match.index));
    const [kind] = Object.entries(match.groups).find(([, part]) => part !== undefined);
    found.push(...inside(match[0], kind));
    last = match.index + match[0].length;
  }
  found.push(text.slice(last));
  return found;
}

const plain = (text, kind) => [piece(text, kind)];

function holes(text, kind) {
  if (kind !== "text") return [piece(text, kind)];
  const found = [];
  let last = 0;
  for (const hole of text.matchAll(HOLE)) {
    if (hole.index > last) found.push(piece(text.slice(last, hole.index), kind));
    found.push(piece(hole[0], "hole"));
    last = hole.index + hole[0].length;
  }
  if (last < text.length) found.push(piece(text.slice(last), kind));
  return found;
}

function piece(text, kind) {
  const part = document.createElement("span");
  part.className = `code__${kind}`;
  part.textContent = text;
  return part;
}
