/* The thin line at the top while htmx waits for an answer; CSS shows it only when that takes longer than 150 ms. */

const bar = document.getElementById("loadbar");
let open = 0;

const change = by => {
  open = Math.max(0, open + by);
  bar?.classList.toggle("htmx-request", open > 0);
};

document.addEventListener("htmx:beforeRequest", () => change(1));
document.addEventListener("htmx:afterRequest", () => change(-1));
