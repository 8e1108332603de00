"""`make bench-ui`: the builder measured with flows of 20, 100 and 500 steps, on a Holdfast of its own in a real browser.

Options: --steps 20,100,500, --rounds N. With --runs N, the pages beside so many runs instead (`runs.py`), --times N each.
Prints a Markdown table: medians of the rounds, and the range.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.bench import runs
from tests.bench.flows import flow_of

FIGURES = {
    "open: server": 500.0,
    "open: server's processor": 0.0,
    "open: interactive": 1500.0,
    "panel: server": 150.0,
    "edit a field: server": 150.0,
    "edit a field: server's processor": 0.0,
    "insert a step: server": 150.0,
    "insert a step: server's processor": 0.0,
    "undo: server": 150.0,
    "undo: server's processor": 0.0,
    "insert a step: on the screen": 0.0,
}
"""Milliseconds that each may take with 500 steps; 0 for what is only watched."""
PLACED = """new MutationObserver((_, watch) => {
    if (!document.querySelector("#stage.is-placed")) return;
    window.interactiveAt = performance.now();
    watch.disconnect();
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["class"] });"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.bench.ui", description=__doc__)
    parser.add_argument("--steps", default="20,100,500")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--times", type=int, default=40)
    chosen = parser.parse_args()
    sizes = [int(one) for one in chosen.steps.split(",")]
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-ui-"))
    folder.chmod(0o711)  # the database's user passes through when we are root
    try:
        if chosen.runs:
            return runs.main(folder, chosen.runs, chosen.times)
        report(measure(folder, sizes, chosen.rounds), sizes, chosen.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(folder: Path, sizes: list[int], rounds: int) -> dict[tuple[str, int], list[float]]:
    """(figure, steps) -> milliseconds of each round. Every round goes through all sizes, so that all see the same hours."""
    from playwright.sync_api import sync_playwright

    from tests.browser import browser
    from tests.e2e.people import sign_in
    from tests.e2e.stack import Holdfast

    found: dict[tuple[str, int], list[float]] = {}
    with Holdfast(folder) as holdfast, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser())
        page = chromium.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(60_000)
        sign_in(page, holdfast)
        page.add_init_script(PLACED)
        flows = {size: imported(page, holdfast.url, size) for size in sizes}
        web = Web(holdfast.process.pid)
        for number in range(rounds + 1):
            for size, flow in flows.items():
                for figure, value in once(page, f"{holdfast.url}/flows/{flow}/", web).items():
                    if number:  # the first round fills caches, of the server and of the browser
                        found.setdefault((figure, size), []).append(value)
            print(f"round {number} of {rounds}", flush=True)
        chromium.close()
    return found


def imported(page: Any, url: str, size: int) -> int:
    """A flow of that many steps. Gives its id."""
    page.goto(f"{url}/")
    file = {"name": "flow.json", "mimeType": "application/json", "buffer": json.dumps(flow_of(size)).encode()}
    token = page.locator("#import-form input[name=csrfmiddlewaretoken]").get_attribute("value")
    answer = page.request.post(f"{url}/flows/import/", multipart={"csrfmiddlewaretoken": token, "file": file})
    return int(answer.url.rstrip("/").rsplit("/", 1)[1])


class Web:
    """The processor time of the web server's processes, which says more than a clock does on a busy machine."""

    def __init__(self, pid: int):
        self.processes = [one for one in psutil.Process(pid).children(recursive=True) if "serve" in one.cmdline()]
        assert self.processes, "no web server is found"

    def spent(self) -> float:
        """Milliseconds since the start, in steps of ten."""
        times = [one.cpu_times() for one in self.processes]
        return 1000 * sum(one.user + one.system for one in times)


def once(page: Any, address: str, web: Web) -> dict[str, float]:
    """Open the flow, change it, and put it back as it was."""
    before = web.spent()
    found = {"open: server": timed(lambda: page.request.get(address))}
    found["open: server's processor"] = web.spent() - before
    page.goto(address)
    page.wait_for_function("() => window.interactiveAt")
    found["open: interactive"] = page.evaluate("() => window.interactiveAt")
    found["panel: server"] = timed(lambda: page.request.get(f"{address}panel/?step=step_1"))
    headers = {**json.loads(page.locator("body").get_attribute("hx-headers")), "HX-Request": "true"}
    revision = int(page.locator("#board").get_attribute("data-revision"))
    field = {"owner": "step_1", "field": "config.values", "mode": "json", "text": '{"n": 2, "%d": 1}' % time.time_ns()}
    operation = {"operation": json.dumps({"op": "insert", "type": "delay", "place": {"after": "step_1"}})}
    for name, part, form in (
        ("edit a field: server", "edit/", {**field, "open": "step_1", "tab": "setup"}),
        ("insert a step: server", "edit/", operation),
        ("undo: server", "undo/", {}),
    ):
        form, before = {**form, "revision": str(revision), "edit_key": str(time.time_ns())}, web.spent()
        found[name] = timed(lambda: page.request.post(address + part, form=form, headers=headers))  # noqa: B023
        found[f"{name}'s processor"] = web.spent() - before
        revision += 1
    page.goto(address)
    page.wait_for_function("() => window.interactiveAt")
    found["insert a step: on the screen"] = page.evaluate(INSERT)
    return found


INSERT = """async () => {
    const { edit, undo, settled } = await import("hf/canvas/edits");
    const begun = performance.now();
    edit({ op: "insert", type: "delay", place: { after: "step_1" } });
    await settled();
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    const took = performance.now() - begun;
    undo();
    await settled();
    return took;
}"""


def timed(ask: Callable[[], Any]) -> float:
    """Milliseconds until the whole answer is here, over loopback. It must be a good one."""
    begun = time.perf_counter()
    answer = ask()
    answer.body()
    took = 1000 * (time.perf_counter() - begun)
    assert answer.ok, (answer.status, answer.url, answer.text()[:300])
    return took


def report(found: dict[tuple[str, int], list[float]], sizes: list[int], rounds: int) -> None:
    print(f"\nMedians of {rounds} rounds in milliseconds, with the range; the last column is the target for 500 steps.")
    print(f"Load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| figure | " + " | ".join(f"{size} steps" for size in sizes) + " | target |")
    print("|---|" + "---:|" * (len(sizes) + 1))
    for figure, target in FIGURES.items():
        cells = [shown(found[figure, size]) for size in sizes]
        print(f"| {figure} | " + " | ".join(cells) + f" | {f'{target:,.0f}' if target else ''} |")


def shown(values: list[float]) -> str:
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} – {max(values):,.0f})"


if __name__ == "__main__":
    main()
