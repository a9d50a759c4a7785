"""Take the pictures of the page: python docs/pictures/page.py, while `micronet serve` runs.

Needs Playwright (extra `serve-test`), Debian's chromium and Pillow, which makes the files small.
"""

import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
COLOURS = 200
HEIGHTS = {"write": 670, "read": 1040, "generate": 860, "inside": 1420}


def write(page: Page) -> None:
    """Type, taking words that are suggested."""
    text = page.locator("#text")
    for typed in ("Return a n", "l", " of the ele"):
        text.press_sequentially(typed, delay=60)
        page.wait_for_timeout(400)
        if typed != " of the ele":
            text.press("Tab")
            page.wait_for_timeout(400)
            text.press("Backspace") if typed == "l" else None
    page.wait_for_selector(".slot:visible")


def read(page: Page) -> None:
    """Read the example, and look at a word that the cache helped."""
    page.get_by_role("button", name="take this example").click()
    page.wait_for_selector(".passage .word")
    page.locator("#cache").check()
    page.locator(".passage .word", has_text="sorted").last.click()


def generate(page: Page) -> None:
    """Write on."""
    page.get_by_role("button", name="Generate").click()
    page.wait_for_selector(".facts .fact")


def inside(page: Page) -> None:
    """Wait for the card."""
    page.wait_for_selector(".pipeline")


VIEWS = {write: "light", read: "dark", generate: "light", inside: "dark"}


def main() -> None:
    """Take one picture of each view."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for view, scheme in VIEWS.items():
            context = browser.new_context(
                viewport={"width": 1000, "height": HEIGHTS[view.__name__]},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page = context.new_page()
            page.goto(f"{URL}/#{view.__name__}")
            page.wait_for_selector(".dot.ready")
            view(page)
            page.wait_for_timeout(500)
            path = HERE / f"page-{view.__name__}.png"
            page.screenshot(path=path)
            context.close()
            image = Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            image.save(path, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
