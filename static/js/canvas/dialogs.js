/* Dialogs that came as fragments: a closed one leaves the page. */

document.addEventListener("close", event => event.target.closest?.("#layer") && event.target.remove(), { capture: true });
