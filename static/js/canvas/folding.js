/* Containers that are collapsed: a look of one's own, kept by the server for the next time. */
import { announce, card, nameOf, url } from "hf/canvas/board";

const revealed = new Set();

const node = id => document.getElementById(`node-${id}`);
const isFolded = id => node(id)?.classList.contains("is-folded") ?? false;

export function toggleFold(id) {
  const button = card(id)?.querySelector("[data-fold]");
  if (!button) return announce(`${nameOf(id)} holds no steps`);
  revealed.delete(id);
  set(id, !isFolded(id));
  remember(id);
  announce(`${isFolded(id) ? "Collapsed" : "Expanded"} ${nameOf(id)}`);
}

/* Whatever is to be seen, opened or focused is not hidden. That is for as long as the page is open, and not remembered. */
export function reveal(id) {
  for (let one = node(id)?.parentElement?.closest(".node"); one; one = one.parentElement.closest(".node")) {
    if (one.classList.contains("is-folded")) revealed.add(one.id.slice(5));
  }
  unfold();
}

const unfold = () => [...revealed].filter(isFolded).forEach(id => set(id, false));

/* What the server draws anew it draws as it was remembered. */
document.addEventListener("canvas:swapped", unfold);

function set(id, away) {
  node(id).classList.toggle("is-folded", away);
  card(id).querySelector("[data-fold]").setAttribute("aria-expanded", !away);
  document.dispatchEvent(new CustomEvent("canvas:resized"));
}

function remember(id) {
  const headers = { "HX-Request": "true", ...JSON.parse(document.body.getAttribute("hx-headers")) };
  const body = new URLSearchParams({ step: id, folded: isFolded(id) ? "yes" : "no" });
  fetch(url("fold/"), { method: "POST", body, headers, credentials: "same-origin" }).catch(() => {}); // only not remembered
}

document.addEventListener("click", event => {
  const button = event.target.closest("#stage [data-fold]");
  if (button) toggleFold(button.dataset.fold);
});
