/* Tabs: a click or an arrow key shows the panel that the tab controls. ?tab=log opens one. */

document.addEventListener("click", event => {
  const tab = event.target.closest("[role=tab]");
  if (tab) select(tab);
});

document.addEventListener("keydown", event => {
  const tab = event.target.closest?.("[role=tab]");
  if (!tab) return;
  const tabs = siblings(tab);
  const next = {
    ArrowRight: tabs[(tabs.indexOf(tab) + 1) % tabs.length],
    ArrowLeft: tabs.at(tabs.indexOf(tab) - 1),
    Home: tabs[0],
    End: tabs.at(-1),
  }[event.key];
  if (!next) return;
  event.preventDefault();
  select(next);
  next.focus();
});

export function select(tab) {
  for (const other of siblings(tab)) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", chosen);
    other.tabIndex = chosen ? 0 : -1;
    const panel = other.getRootNode().getElementById(other.getAttribute("aria-controls"));
    if (panel) panel.hidden = !chosen;
  }
  tab.dispatchEvent(new CustomEvent("tab:selected", { bubbles: true }));
}

const siblings = tab => [...tab.closest("[role=tablist]").querySelectorAll("[role=tab]")];

const asked = new URLSearchParams(location.search).get("tab");
const tab = asked && document.getElementById(`tab-${asked}`);
if (tab) select(tab);
