"""The page in a real browser: typing, reading, generating, by keyboard, on a phone, in the dark."""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.browsers import axe_source, chromium
from tests.support.servers import Server, serving

import micronet_lm as mn

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route, WebSocket

TEXT = "Return a new list of the items.\nReturn a new list of the values."
PATIENCE = 60_000  # milliseconds; the machine may be busy with other tests
WATCH = """
  window.told = [];
  new MutationObserver(() => window.told.push(document.getElementById("notice").textContent))
    .observe(document.getElementById("notice"), { childList: true });
"""
"""Keeps all that the page says of refusals and errors."""


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: "Browser", server: Server) -> Iterator["Page"]:
    yield from opened(browser, server.url)


def opened(browser: "Browser", url: str, **settings: Any) -> Iterator["Page"]:
    """Open the page; it may neither fail nor load anything from elsewhere."""
    context = browser.new_context(**settings)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith(url) else problems.append(request.url),
    )
    page.goto(url)
    page.wait_for_selector(".dot.ready")
    yield page
    context.close()
    assert problems == []


def suggested(page: "Page") -> list[str]:
    page.wait_for_selector(".slot:visible")
    return page.locator(".slot span").all_inner_texts()


def wait_for_words(page: "Page", words: list[str]) -> None:
    from playwright.sync_api import expect

    # Not `wait_for_function`: it evaluates strings, which the page's policy forbids.
    expect(page.locator(".slot span")).to_have_text(words, timeout=PATIENCE)


def test_typing_and_taking_words(page: "Page", lm: mn.LM) -> None:
    text = page.locator("#text")
    text.press_sequentially("Return a new lis")
    expected = [word for word, _ in lm.suggest("Return a new lis")]
    wait_for_words(page, expected)
    assert re.fullmatch(r"[\d.]+ ms", page.locator(".fact b").first.inner_text())
    text.press("Tab")
    assert text.input_value() == f"Return a new {expected[0]} "
    after = f"Return a new {expected[0]} "
    expected = [word for word, _ in lm.suggest(after)]
    wait_for_words(page, expected)
    page.locator(".slot").nth(1).click()
    wait_for_words(page, [word for word, _ in lm.suggest(text.input_value())])
    assert text.input_value().split()[-1].endswith(expected[1])
    assert page.locator("#saved b").inner_text() != "0 %"
    text.press("Backspace")  # going back asks for the word that is unfinished again
    wait_for_words(page, [word for word, _ in lm.suggest(text.input_value())])
    # The words stand above the caret.
    box, area = page.locator(".slots").bounding_box(), text.bounding_box()
    assert box
    assert area
    assert area["x"] <= box["x"]
    assert box["x"] + box["width"] <= area["x"] + area["width"]


def test_a_keystroke_costs_one_message_and_one_answer(page: "Page") -> None:
    sent: list[Any] = []
    asked: list[str] = []

    def watch(socket: "WebSocket") -> None:
        socket.on("framesent", lambda frame: sent.append(json.loads(frame)))

    page.on("websocket", watch)
    with page.expect_websocket() as typing:
        page.reload()
    suggested(page)
    page.on("request", lambda request: asked.append(request.url))
    for letter in "Return a":
        with typing.value.expect_event("framereceived", timeout=PATIENCE):
            page.keyboard.insert_text(letter)
    messages = [(message["keep"], message["text"]) for message in sent]
    assert messages == [(0, ""), *enumerate("Return a")]
    assert asked == []


def test_reading_a_text(page: "Page", lm: mn.LM) -> None:
    page.goto(page.url.split("#")[0] + "#read")
    page.get_by_role("button", name="Read it").click()
    assert "paste one first" in page.locator("#notice").inner_text()
    page.locator("#passage").fill(TEXT)
    page.locator("#passage").press("Control+Enter")
    page.wait_for_selector(".passage .word")
    assert page.locator("#notice").is_hidden()
    words = page.locator(".passage .word")
    assert words.count() == len(lm.encoder.tokens(TEXT))
    assert page.locator(".fact b").first.inner_text() == f"{lm.perplexity(TEXT):.1f}"
    colours = words.evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)")
    assert len(set(colours)) >= 3
    last = words.nth(words.count() - 2)
    last.hover()
    assert last.inner_text() in page.locator(".detail h2").inner_text()
    assert page.locator(".detail .bars li").count() == 5
    page.locator("#cache").check()
    assert page.locator(".passage .helped-1, .passage .helped-2, .passage .helped-3").count() > 2
    last.hover()
    assert page.locator(".passage .voter, .passage .voter-strong").count() > 0
    assert page.locator(".votes li").count() > 0


def test_generating(page: "Page", lm: mn.LM) -> None:
    page.goto(page.url.split("#")[0] + "#generate")
    page.locator("#prompt").fill("Return a")
    page.locator("#seed").fill("7")
    page.get_by_role("button", name="Generate").click()
    page.wait_for_selector(".facts .fact")
    written = "Return a" + "".join(lm.generate("Return a", 80, 0.7, top_p=0.95, seed=7))
    assert page.locator(".story").text_content() == written


def test_inside(page: "Page", server: Server) -> None:
    card = server.get("/card").json
    page.goto(page.url.split("#")[0] + "#inside")
    page.wait_for_selector(".pipeline")
    body = page.locator("main").inner_text()
    shown = [f"of the file's {card['file']['bytes']:,}", f"{card['model']['vocabulary']:,}"]
    shown += ["feed-forward", "layer 3", card["card"]["made_by"]]
    shown += [f"{card['card']['perplexity']['test']:.1f}"]
    assert [words for words in shown if words not in body] == []
    page.get_by_label("What").select_option("score")
    score = f"{card['accounting']['paper']['score']:.5f} of the challenge, in all"
    assert score in page.locator("main").inner_text()
    # Whatever the width, no number is wider than its tile.
    wide = (
        "[...document.querySelectorAll('.fact')].filter(f => f.scrollWidth > f.clientWidth).length"
    )
    for width in (1400, 1000, 700, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(wide) == 0, width


def test_by_keyboard_alone(page: "Page", lm: mn.LM) -> None:
    page.locator("#text").press_sequentially("Return a ")
    wait_for_words(page, [word for word, _ in lm.suggest("Return a ")])
    page.keyboard.press("Alt+2")
    assert page.locator("#text").input_value() == f"Return a {lm.suggest('Return a ')[1].word} "
    suggested(page)
    page.keyboard.press("Escape")  # Tab moves on now
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Clear"
    page.goto(page.url.split("#")[0] + "#read")
    page.locator("#passage").fill(TEXT)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".passage .word")
    page.locator("#cache").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator(".detail h2").inner_text() == "list"
    for _ in range(30):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.hash") == "#inside":
            page.keyboard.press("Enter")
            break
    page.wait_for_selector(".pipeline")


def test_light_dark_and_a_phone(browser: "Browser", server: Server) -> None:
    papers = set()
    for scheme in ("light", "dark"):
        for page in opened(
            browser, server.url, color_scheme=scheme, viewport={"width": 360, "height": 740}
        ):
            papers.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            for view in ("write", "read", "generate", "inside"):
                page.locator(f'nav a[href="#{view}"]').click()
                page.wait_for_selector(f"#{view}-title")
                if view == "inside":
                    page.wait_for_selector(".pipeline")
                assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
            if scheme == "dark":
                page.locator("#theme").click()  # from the system's to light
                assert page.evaluate("getComputedStyle(document.body).backgroundColor") in papers
    assert len(papers) == 2


def test_nothing_serious_for_axe(
    browser: "Browser", server: Server, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = axe_source(tmp_path_factory.mktemp("axe"))
    if source is None:
        pytest.skip("axe-core cannot be fetched by npm")
    for scheme in ("light", "dark"):
        for page in opened(browser, server.url, color_scheme=scheme):
            for view in ("write", "read", "generate", "inside"):
                page.goto(f"{server.url}/#{view}")
                if view == "read":
                    page.locator("#passage").fill(TEXT)
                    page.keyboard.press("Control+Enter")
                    page.wait_for_selector(".passage .word")
                    page.locator(".passage .word").nth(5).hover()
                elif view == "inside":
                    page.wait_for_selector(".pipeline")
                elif view == "write":
                    page.locator("#text").press_sequentially("Return a")
                    suggested(page)
                page.evaluate(source)
                found = page.evaluate("axe.run().then(found => found.violations)")
                serious = [
                    (one["id"], [node["html"] for node in one["nodes"]][:3])
                    for one in found
                    if one["impact"] in {"serious", "critical"}
                ]
                assert serious == [], (scheme, view)


def test_a_server_that_went_away_and_came_back(browser: "Browser", lm: mn.LM) -> None:
    with serving("demo") as first:
        port = int(first.url.rpartition(":")[2])
        pages = opened(browser, first.url)
        page = next(pages)
        page.locator("#text").press_sequentially("Return a")
        suggested(page)
        first.process.kill()
        first.process.wait(60)
        page.wait_for_selector(".dot.lost")
        assert "does not answer" in page.locator("#notice").inner_text()
        page.locator("#text").press_sequentially(" new ")
    with serving("demo", port=port):
        page.wait_for_selector(".dot.ready")
        page.wait_for_selector("#notice", state="hidden")
        wait_for_words(page, [word for word, _ in lm.suggest("Return a new ")])
        assert page.locator("#text").input_value() == "Return a new "
        for _ in pages:
            pass


def ask_for_more(route: "Route") -> None:
    """Let the server write for a minute, so that it is killed before the end."""
    wish = {**json.loads(route.request.post_data or ""), "max_tokens": 2_000, "n": 128}
    route.continue_(post_data=json.dumps(wish))


def test_a_server_that_goes_away_while_it_writes(browser: "Browser") -> None:
    """What was written stays, and what the page says is a sentence, not the browser's error."""
    from playwright.sync_api import expect

    with serving("demo") as server:
        pages = opened(browser, server.url)
        page = next(pages)
        page.locator('nav a[href="#generate"]').click()
        page.evaluate(WATCH)
        page.route("**/v1/completions", ask_for_more)
        page.get_by_role("button", name="Generate").click()
        page.locator(".written:not(:empty)").wait_for()  # while it is written
        server.process.kill()
        page.wait_for_selector(".dot.lost")
        expect(page.locator("button.main")).to_have_text("Generate", timeout=PATIENCE)
        assert page.locator(".story .written").inner_text()
        told = page.evaluate("window.told")
        assert set(told) == {"The server does not answer. This page tries again by itself."}
        for _ in pages:
            pass


def test_a_key_is_asked_for_and_refusals_are_sentences(browser: "Browser") -> None:
    with serving("demo", "--api-key", "open-sesame", "--max-prompt", "40") as locked:
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        sockets: list[object] = []
        page.on("websocket", lambda socket: sockets.append(socket))
        page.goto(locked.url)
        page.locator("#key").wait_for()
        while len(sockets) < 3:  # those before it were refused; nobody says that nobody answers
            page.wait_for_timeout(50)
        assert page.locator("#notice").is_hidden()
        page.locator("#key").fill("open")
        page.keyboard.press("Enter")
        page.locator("#notice", has_text="did not accept this key").wait_for()
        page.locator("#key").fill("open-sesame")
        page.keyboard.press("Enter")
        page.wait_for_selector(".dot.ready")
        page.locator("#notice").wait_for(state="hidden")
        page.locator("#text").press_sequentially("Return a")
        suggested(page)
        page.goto(f"{locked.url}/#read")
        page.locator("#passage").fill("too long " * 40)
        page.get_by_role("button", name="Read it").click()
        page.locator("#notice", has_text="at most 40 are allowed").wait_for()
        context.close()
