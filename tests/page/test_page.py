"""`micronet page`: one file that a browser opens without a network."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.firefox import FIREFOX, firefox
from tests.support.shapes import ONE_LAYER

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import random_model
from micronet_lm.cli.main import main
from micronet_lm.page import page
from micronet_lm.runtime.places import shipped_model

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    assert main(["page", str(shipped_model()), "-o", str(path)]) == 0
    return path


def test_everything_is_inside(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    assert "{{" not in re.sub(r"`[^`]*`", "", text.split("<script", 1)[0])
    assert not re.search(r"""(?:src|href)=["'](?!data:,)""", text)
    assert not re.search(r"^(?:import|export) ", text, re.MULTILINE)
    assert "default-src 'none'" in text
    assert len(text) < 2_000_000


def test_without_a_model_it_is_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["page", "-o", "page.html"]) == 0
    assert Path("page.html").read_text(encoding="utf-8") == page(shipped_model())


def test_wrong_models_are_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, out = tmp_path / "broken", tmp_path / "page.html"
    broken.write_bytes(b"not a model at all")
    assert main(["page", str(broken), "-o", str(out)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not out.exists()
    assert main(["page", str(tmp_path / "none"), "-o", str(out)]) == 1
    assert not out.exists()


def test_names_cannot_break_out_of_the_title(tmp_path: Path) -> None:
    name = "</title><script>alert(1)</script>{{page}}"
    model = replace(random_model(ONE_LAYER), card={"name": name})
    write_packed(tmp_path / "model", model)
    text = page(tmp_path / "model")
    assert "<title>micronet-lm: &lt;/title&gt;&lt;script&gt;" in text
    assert "alert(1)</script>" not in text
    assert text.count("{{page}}") == text.count("/script&gt;{{page}}")  # not expanded once more
    assert text.count("<script") == page(shipped_model()).count("<script")


@pytest.fixture(scope="module")
def tab(written: Path) -> Iterator[Any]:
    """Open the page from its file, with the network off; no request but its own may be made."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(offline=True, viewport={"width": 900, "height": 1100})
        tab = context.new_page()
        tab.problems, tab.asked = [], []
        tab.on("pageerror", lambda error: tab.problems.append(str(error)))
        tab.on(
            "console", lambda said: tab.problems.append(said.text) if said.type == "error" else None
        )
        tab.on("request", lambda request: tab.asked.append(request.url[:60]))
        tab.goto(written.as_uri())
        tab.wait_for_selector("html[data-ready]", timeout=60_000)
        yield tab
        browser.close()


def test_it_suggests_while_typing_and_takes_a_suggestion(tab: Any) -> None:
    tab.fill("#text", "")
    tab.type("#text", "Return a ne")
    tab.wait_for_selector("#suggestions button[data-word=new]")
    tab.keyboard.press("Tab")
    assert tab.input_value("#text") == "Return a new "
    tab.wait_for_selector("#suggestions button[data-word=dictionary]")
    tab.click("#suggestions button[data-word=dictionary]")
    assert tab.input_value("#text") == "Return a new dictionary "


def test_a_suggestion_replaces_a_word_with_errors(tab: Any) -> None:
    tab.fill("#text", "")
    tab.type("#text", "Return a dictoin")
    tab.wait_for_selector("#suggestions button[data-word=dictionary]")
    tab.click("#suggestions button[data-word=dictionary]")
    assert tab.input_value("#text") == "Return a dictionary "


def test_it_colours_a_text(tab: Any) -> None:
    tab.fill("#text", "Return True if the zebrafish exists.")
    tab.wait_for_selector("#reading span:has-text('exists')")
    tab.wait_for_selector("#reading .unknown")
    assert tab.inner_text("#reading") == "Return True if the zebrafish exists."
    colours = tab.eval_on_selector_all("#reading span", "all => all.map(s => s.style.background)")
    assert len(set(colours)) > 3
    assert "1 of 6 words unknown" in tab.inner_text("#summary")


def test_it_writes_on_and_shows_the_card(tab: Any) -> None:
    tab.fill("#text", "Return a new")
    tab.fill("#words", "8")
    tab.click("#write")
    tab.wait_for_function("!document.getElementById('write').disabled")
    found = tab.input_value("#text")
    assert found.startswith("Return a new ") and len(found) > 20
    tab.fill("#temperature", "-3")
    tab.click("#write")
    tab.wait_for_selector("#problem:not([hidden])")
    assert "temperature must be above 0" in tab.inner_text("#problem")
    assert "demo/shipped" in tab.inner_text("#card")


def test_it_asked_nobody_and_made_no_errors(tab: Any) -> None:
    assert tab.problems == []
    assert [url for url in tab.asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.skipif(not FIREFOX, reason="firefox is not installed")
def test_firefox_opens_it_too(written: Path, tmp_path: Path) -> None:
    """Without a network: types, takes a suggestion, reads a coloured text, writes on."""
    pytest.importorskip("websockets", reason="websockets is not installed")
    value = "document.getElementById('text').value"
    with firefox(tmp_path / "profile") as tab:
        tab.open(written.as_uri())
        tab.wait("'ready' in document.documentElement.dataset")
        tab.value("document.getElementById('text').focus()")
        tab.press("Return a ne")
        tab.wait("!!document.querySelector('#suggestions button[data-word=new]')")
        tab.press("\ue004")  # Tab
        assert tab.value(value) == "Return a new "
        tab.press("zebrafish")
        tab.wait("!!document.querySelector('#reading .unknown')")
        assert tab.value("document.getElementById('reading').innerText") == "Return a new zebrafish"
        tab.value("document.getElementById('write').click()")
        tab.wait("!document.getElementById('write').disabled")
        assert len(tab.value(value)) > 60
        assert tab.picture().startswith(b"\x89PNG")
        assert tab.problems == []
        assert [url for url in tab.asked if not url.startswith(("file:", "data:"))] == []
