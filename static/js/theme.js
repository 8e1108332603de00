/* The theme follows the system until somebody presses a [data-theme-toggle].
   The cookie lets the server render it without a flash. */

const root = document.documentElement;
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const YEAR = 365 * 24 * 3600;

const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemIsDark.matches);

function choose(theme) {
  root.dataset.theme = theme;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `hf-theme=${theme}; Path=/; Max-Age=${YEAR}; SameSite=Lax${secure}`;
}

document.addEventListener("click", event => {
  if (event.target.closest("[data-theme-toggle]")) choose(isDark() ? "light" : "dark");
});
