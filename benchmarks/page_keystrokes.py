"""Time from a key to its suggestions on the page: run this while `micronet serve` runs.

    python benchmarks/page_keystrokes.py [http://127.0.0.1:8080]

Chromium types a text, one key every 60 ms. A key's time ends when the page has put the new words
into the document; the screen shows them with its next frame. The server's processor time does not
depend on other work of the machine, the other numbers do.
"""

import os
import re
import shutil
import sys
import urllib.request

import numpy as np
from playwright.sync_api import sync_playwright

TEXT = (
    "Return a new list of the items in the given order. The items are sorted by their keys, and "
    "the order of equal items does not change. Raise a ValueError if there are none. "
)
FRAME = 1000 / 60
WATCH = """() => {
  window.times = [];
  let pressed = 0;
  const text = document.getElementById("text");
  text.addEventListener("beforeinput", () => { pressed = performance.now(); }, true);
  new MutationObserver(() => {
    if (pressed) window.times.push(performance.now() - pressed);
    pressed = 0;
  }).observe(document.querySelector(".slots"), { childList: true });
}"""


def processor_seconds(url: str) -> float:
    """Return the processor time that the server has used."""
    with urllib.request.urlopen(f"{url}/metrics") as reply:  # noqa: S310
        found = re.search(r"^process_cpu_seconds_total (\S+)", reply.read().decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.goto(url)
        page.wait_for_selector(".slot:visible")
        page.evaluate(WATCH)
        used = processor_seconds(url)
        for letter in TEXT:
            page.keyboard.insert_text(letter)
            page.wait_for_timeout(60)
        used = processor_seconds(url) - used
        times = np.array(page.evaluate("window.times"))
        browser.close()
    shown = ", ".join(
        f"{name} {value:.1f} ms"
        for name, value in zip(
            ("median", "90 %", "99 %", "most"),
            np.percentile(times, [50, 90, 99, 100]),
            strict=True,
        )
    )
    print(f"{len(TEXT)} keys, {len(times)} answers, load {os.getloadavg()[0]:.1f}: {shown}")
    print(f"within a frame of {FRAME:.1f} ms: {np.mean(times <= FRAME):.0%}")
    print(f"processor time of the server: {1000 * used / len(TEXT):.2f} ms per key")


if __name__ == "__main__":
    main()
