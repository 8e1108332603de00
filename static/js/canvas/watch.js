/* Two people, two tabs: this page learns soon that the draft has moved, and by whom. */
import { board, fragment, revision, swapParts, url } from "hf/canvas/board";
import { pending } from "hf/canvas/edits";

const EVERY = 10000;

async function look() {
  if (document.hidden || pending() || !board()) return;
  const html = await fragment(`${url("status/")}?revision=${revision()}`).catch(() => "");
  if (html && !pending()) swapParts(html);
}

setInterval(look, EVERY);
document.addEventListener("visibilitychange", look);
