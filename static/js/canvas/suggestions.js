/* What to offer for the word before the caret. Pure: text in, a list out. */

const WORD = /[A-Za-z_][\w.?[\]"]*$|\.[A-Za-z_]*$/;
const SLASH = /(?:^|\s)\/([^\s/]*)$/;

/* {from, word, kind: "code" | "slash", hole} for a caret, or nothing where nothing can be completed. `hole` tells where the
   `{{` stands, and whether the word is all that is in it. */
export function wanted({ text, at }, language, asked) {
  const before = text.slice(0, at);
  const hole = language === "template" ? openHole(before, text.slice(at)) : null;
  const code = language === "expression" || hole;
  const slash = (language === "expression" ? /^\s*\/([^\s/]*)$/ : SLASH).exec(before);
  if (slash && !hole) return { from: at - slash[1].length - 1, word: slash[1], kind: "slash", hole: null };
  if (!code) return asked ? { from: at, word: "", kind: "slash", hole: null } : null;
  const inside = hole ? before.slice(hole.start + 2) : before;
  if (inText(inside)) return null;
  const word = WORD.exec(inside)?.[0] ?? "";
  if (!word && !asked && !hole?.fresh) return null;
  return { from: at - word.length, word, kind: "code", hole: hole && { ...hole, alone: hole.open && inside.trim() === word } };
}

function openHole(before, after) {
  const start = before.lastIndexOf("{{");
  if (start < 0 || before.indexOf("}}", start) >= 0) return null;
  return { start, open: !/^[^{]*\}\}/.test(after), fresh: before.slice(start + 2).trim() === "" };
}

/* Inside quotes nothing is a name. */
function inText(code) {
  let quote = "";
  for (let index = 0; index < code.length; index++) {
    if (code[index] === "\\") index++;
    else if (quote) quote = code[index] === quote ? "" : quote;
    else if (code[index] === '"' || code[index] === "'") quote = code[index];
  }
  return quote !== "";
}

/* The best first: paths that go on where the word ends, then those with it inside, then functions. */
export function rank({ word, kind, hole }, rows, functions) {
  const sought = word.toLowerCase().replaceAll(".?", ".");
  const data = rows.map(row => ({ ...row, score: scoreOf(row, sought) })).filter(row => row.score && row.path !== word);
  data.sort((one, other) => one.score - other.score);
  const found = data.map(row => ({
    kind: "data", label: row.root && row.leaf === false ? `${row.root}  ${row.path}` : row.path, about: row.value || row.type,
    path: row.path, leaf: row.leaf, insert: hole?.alone && row.leaf ? `${row.path} }}` : row.path,
  }));
  return kind === "slash" ? found : [...found, ...calls(sought, word, rows, functions)];
}

/* Within one score the order of the tree stays: what came in first, headers last. */
function scoreOf(row, sought) {
  const path = row.path.toLowerCase();
  const last = path.slice(path.lastIndexOf(".") + 1);
  if (!sought) return row.root ? 1 : 2;
  if (path.startsWith(sought)) return 1;
  if (last.startsWith(sought)) return 2;
  return `${path} ${row.root.toLowerCase()}`.includes(sought) ? 3 : 0;
}

/* After a point the functions of that kind of value, else those that are called by themselves. */
function calls(sought, word, rows, functions) {
  const point = word.lastIndexOf(".");
  const space = word.slice(0, point + 1);
  const alone = functions.filter(one => !one.on && one.name.toLowerCase().startsWith(sought) && one.name !== word);
  if (point < 0) return sought ? alone.map(one => call(one)) : [];
  const type = rows.find(row => `${row.path}.` === space.replaceAll(".?", "."))?.type ?? "";
  const part = word.slice(point + 1).toLowerCase();
  const fitting = functions.filter(one => one.on && fits(one.on, type) && one.name.toLowerCase().startsWith(part) && one.name !== part);
  return [...alone.map(one => call(one)), ...fitting.map(one => call(one, space))];
}

const KINDS = { text: ["text", "time"], list: ["list"], group: ["map"], number: [], "yes/no": [] };
const fits = (on, type) => (type in KINDS ? KINDS[type].includes(on) : true);

/* The caret ends inside the brackets where something has to be filled in. */
function call(one, space = "") {
  return { kind: "function", label: one.signature, about: one.about, insert: `${space}${one.name}()`, back: one.takes ? 1 : 0 };
}
