/* Dialogs that came as fragments: a button closes them, and a closed one leaves the page. */

document.addEventListener("click", event => event.target.closest("[data-close-dialog]")?.closest("dialog").close());
document.addEventListener("close", event => event.target.closest?.("#layer") && event.target.remove(), { capture: true });
