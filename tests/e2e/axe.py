"""What axe finds on a page as it stands: by every rule in the light theme, and in the dark one, which is the same document, by
those about colours."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

COLOURS = ["color-contrast", "link-in-text-block"]
# Without its look at our style sheets, and without telling of what is well, axe adds no styles, of which the browser complains.
RUN = """rules => axe.run(document, { preload: false, resultTypes: ["violations"], ...(rules && { runOnly: rules }) })
    .then(({ violations }) => violations.flatMap(one => one.nodes.map(node => `${one.id}: ${node.html.slice(0, 160)}`)))"""


def barriers(page: Page) -> list[str]:
    """The rule and the element of each; "dark: " before what is there in the dark theme. Leaves the page in the light one."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    found = page.evaluate(RUN, None)
    page.emulate_media(color_scheme="dark")
    found += [f"dark: {one}" for one in page.evaluate(RUN, COLOURS)]
    page.emulate_media(color_scheme="light")
    return found


def overflow(page: Page) -> int:
    """How many pixels stand beyond the right edge."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")
