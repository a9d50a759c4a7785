"""The package for browsers in Chromium: on a page and in a worker, by addresses of a server."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.browsers import chromium

import micronet_lm as mn

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
TEXT = "Return a new"
ASKED = f"""
const {{ load }} = await import(base + "/web/src/index.js");
const model = await load(base + "/src/micronet_lm/models/demo.safetensors");
let refused = "";
try {{ model.topK("a", 0); }} catch (error) {{ refused = error.message; }}
let written = "";
for await (const piece of model.generate("{TEXT}", {{ maxTokens: 8, seed: 3 }})) written += piece;
const answer = {{ refused, written, words: model.topK("{TEXT}", 5).map(({{ word }}) => word) }};
"""
ON_A_PAGE = f"async (base) => {{ {ASKED} return answer; }}"
IN_A_WORKER = f"""(base) => new Promise((done, fail) => {{
  const script = "const base = " + JSON.stringify(base) + ";" + {ASKED!r} + "postMessage(answer);";
  const address = URL.createObjectURL(new Blob([script], {{ type: "text/javascript" }}));
  const worker = new Worker(address, {{ type: "module" }});
  worker.onmessage = ({{ data }}) => done(data);
  worker.onerror = ({{ message }}) => fail(new Error(message));
}})"""


class Quiet(SimpleHTTPRequestHandler):
    """Files of the repository, without a log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def tab() -> Iterator["Page"]:
    """Open a page of a server of files."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(ROOT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(f"http://127.0.0.1:{server.server_port}/web/package.json")
        yield tab
        browser.close()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("script", [ON_A_PAGE, IN_A_WORKER], ids=["page", "worker"])
def test_the_package_answers_as_python_does(tab: "Page", script: str) -> None:
    lm = mn.load()
    answer = tab.evaluate(script, tab.evaluate("location.origin"))
    assert answer["words"] == [word for word, _ in lm.top_k(TEXT, 5)]
    assert answer["written"] == "".join(lm.generate(TEXT, 8, seed=3))
    assert "k must be a whole number of 1 or more, got 0" in answer["refused"]
