"""`make browser`: finds a browser for the tests, or installs one: Playwright's own, else the distribution's package.

Chromium without its windows comes first: it is the same browser, and takes less than half of the processor's time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SHELL = "chromium-headless-shell"
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MACOS = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def browser() -> str | None:
    """The path of a Chromium or Chrome: the one that HOLDFAST_BROWSER names, an installed one, Playwright's; else None."""
    if named := os.environ.get("HOLDFAST_BROWSER"):
        return named
    for name in NAMES:
        if found := shutil.which(name):
            return found
    return str(MACOS) if MACOS.exists() else playwrights_own()


def playwrights_own() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def install() -> str | None:
    print("Installing a browser for the tests", flush=True)
    if quietly([sys.executable, "-m", "playwright", "install", "chromium"]) and (found := browser()):
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quietly(["apt-get", "update", "-qq"])
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "fonts-dejavu-core"]
        quietly([*command, SHELL]) or quietly([*command, "chromium"])
    return browser()


def quietly(command: list[str]) -> bool:
    """Its words are shown only when it fails."""
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        print(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-300:]}", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    if not (browser() or install()):
        sys.exit("The browser tests need Chromium or Chrome. Install one, or name it in HOLDFAST_BROWSER.")
