/* Edits that are not saved yet outlive the page: a reload, a sign-in in between. Each tab keeps its own, for whoever made them. */
import { board } from "hf/canvas/board";

const place = () => `holdfast/unsent/${board().dataset.person}/${board().dataset.flow}`;

export function keep(queue) {
  try {
    if (queue.length) sessionStorage.setItem(place(), JSON.stringify(queue));
    else sessionStorage.removeItem(place());
  } catch { /* too much for the tab's memory: it waits in the page alone */ }
}

export function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(place())) ?? [];
  } catch {
    return [];
  }
}
