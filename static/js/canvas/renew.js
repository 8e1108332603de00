/* A field of the panel, asked for again as it is saved now. */
import { asked, url } from "hf/canvas/board";
import { settled } from "hf/canvas/edits";

/* Gives the new element, or nothing when the field is gone. */
export async function renew(place) {
  const { owner } = document.getElementById("panel").dataset;
  const { field } = place.dataset;
  await settled();
  const query = new URLSearchParams({ owner, field });
  const html = await asked(`${url("field/")}?${query}`);
  if (!html || !place.isConnected) return null;
  const box = document.createElement("template");
  box.innerHTML = html;
  const fresh = box.content.querySelector(`[data-field="${CSS.escape(field)}"]`);
  place.replaceWith(fresh);
  htmx.process(fresh);
  return fresh;
}
