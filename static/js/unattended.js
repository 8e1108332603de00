/* What a page asks by itself keeps nobody signed in: it says so (builder/sessions.py). */
export const UNATTENDED = { "Hf-Unattended": "1" };

document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (/^(every|load)\b/.test(detail.elt.getAttribute("hx-trigger") ?? "")) Object.assign(detail.headers, UNATTENDED);
});
