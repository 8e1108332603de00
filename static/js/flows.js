/* A flow's file dropped anywhere on the page is imported. */

const page = document.getElementById("flows-page");

addEventListener("dragover", event => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  page.classList.add("is-over");
});
addEventListener("dragleave", event => event.relatedTarget == null && page.classList.remove("is-over"));
addEventListener("drop", event => {
  const form = document.getElementById("import-form");
  page.classList.remove("is-over");
  if (!form || event.dataTransfer.files.length !== 1) return;
  event.preventDefault();
  form.querySelector("input[type=file]").files = event.dataTransfer.files;
  form.requestSubmit();
});
