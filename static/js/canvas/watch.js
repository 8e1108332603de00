/* Two people, two tabs: this page learns soon that the draft has moved, by whom, and how. Who only looks is taken along. */
import { board, fragment, readonly, revision, swapParts, url } from "hf/canvas/board";
import { catchUp } from "hf/canvas/catchup";
import { pending } from "hf/canvas/edits";
import { UNATTENDED } from "hf/unattended";

const EVERY = 2000;

async function look() {
  if (document.hidden || pending() || !board()) return;
  const known = document.querySelector("#moved-slot [data-known]")?.dataset.known ?? "";
  const asked = revision();
  const html = await fragment(`${url("status/")}?${new URLSearchParams({ revision: asked, known })}`, UNATTENDED).catch(() => "");
  if (!html || pending() || asked !== revision()) return;
  if (readonly()) catchUp();
  else swapParts(html);
}

setInterval(look, EVERY);
document.addEventListener("visibilitychange", look);
