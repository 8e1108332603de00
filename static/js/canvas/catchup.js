/* The draft moved on without this page: what is shown becomes what stands, in place. */
import { announce, board, cards, current, focusCard, revision, url } from "hf/canvas/board";
import { panelNow, takeAnswer } from "hf/canvas/answers";
import { UNATTENDED } from "hf/unattended";

export async function catchUp() {
  const from = revision();
  const query = new URLSearchParams({ ...panelNow(), revision: from });
  const response = await fetch(`${url("since/")}?${query}`, { headers: { "HX-Request": "true", ...UNATTENDED }, credentials: "same-origin" });
  if (response.status !== 200 || response.redirected) return location.reload();
  const html = await response.text();
  if (from === revision()) takeAnswer(html, response.headers.get("HX-Trigger")); // else an answer of ours was faster
}

/* The notice that the draft has moved, once the page shows what it tells of. */
export function dismiss() {
  const notice = document.getElementById("moved-slot");
  const asked = notice.contains(document.activeElement);
  notice.replaceChildren();
  if (asked) focusCard(current() || cards()[0]?.dataset.step);
}

document.addEventListener("draft:caught_up", ({ detail }) => {
  board().dataset.revision = detail.revision;
  dismiss();
  announce(detail.announce);
});

document.addEventListener("click", event => event.target.closest("[data-catch-up]") && catchUp());
