from pathlib import Path

import pytest

from micronet_lm.corpus import Corpus, build_corpus, pythondocs
from micronet_lm.corpus.pythondocs import tidy
from micronet_lm.corpus.splits import SPLITS, split_of


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return build_corpus("python-docs", tmp_path_factory.mktemp("docs") / "c")


def test_it_is_large_enough_to_learn_from(docs: Corpus) -> None:
    assert 300_000 < sum(map(docs.tokens, SPLITS)) < 1_000_000
    assert 4_000 < docs.vocabulary.size < 12_000
    for split in ("valid", "test"):
        assert 0.02 < docs.tokens(split) / docs.tokens("train") < 0.15
        assert docs.manifest.unknown[split] / docs.tokens(split) < 0.1


def test_it_is_prose(docs: Corpus) -> None:
    text = docs.decode(docs.split("train")[:40_000])
    assert "The following" in text
    assert ">>>" not in text
    assert {"the", "function", "class", "returns"} <= set(docs.vocabulary.words[:1000])


def test_building_again_gives_the_same(docs: Corpus, tmp_path: Path) -> None:
    assert build_corpus("python-docs", tmp_path / "c").fingerprint == docs.fingerprint


def test_documents_do_not_depend_on_each_other() -> None:
    ratio = (0.9, 0.05, 0.05)
    splits = [split_of(f"document {n}", ratio) for n in range(4000)]
    assert splits.count("train") == pytest.approx(3600, abs=80)
    assert splits.count("valid") == pytest.approx(200, abs=60)
    # sha256("topic lambda") begins with 8ec8, that is 0.558 of the way.
    assert split_of("topic lambda", (0.56, 0.24, 0.2)) == "train"
    assert split_of("topic lambda", (0.55, 0.25, 0.2)) == "valid"
    assert split_of("topic lambda", (0.35, 0.2, 0.45)) == "test"


def test_tidy_joins_paragraphs_and_drops_examples() -> None:
    text = """Return the sum of the two things, which may be numbers
    of any kind; everything that has the right method will
    do.

    Title
    =====

        >>> add(1, 2)
        3

    A long line that introduces something that is indented:
        the indented thing
        another   one
    """
    assert tidy(text) == [
        "Return the sum of the two things, which may be numbers of any kind; "
        "everything that has the right method will do.",
        "Title",
        "A long line that introduces something that is indented:",
        "the indented thing",
        "another one",
    ]


def test_docstrings_come_in_order_and_nothing_runs(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""Module."""\nraise SystemExit\n'
        'class A:\n    """A."""\n    def f(self):\n        """f."""\n        "not \\d this"\n'
        'try:\n    async def g(): """g."""\nexcept E:\n    def h(): """h."""\n'
        'match x:\n    case 1:\n        def i(): """i."""\n'
    )
    assert pythondocs._docstrings(path) == ["Module.", "A.", "f.", "g.", "h.", "i."]
    path.write_text("def (:")
    assert pythondocs._docstrings(path) == []


def test_a_text_that_comes_twice_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pythondocs, "_topics", lambda: [("topic a", ["One.", "Two."])])
    modules = [("b", ["Two."]), ("c", ["Two.", "Three."])]
    monkeypatch.setattr(pythondocs, "_modules", lambda: modules)
    assert list(pythondocs._documents()) == [("topic a", ["One.", "Two."]), ("c", ["Three."])]


def test_tests_and_packages_of_others_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("a.py", "x/b.py", "test/t.py", "x/tests/u.py", "site-packages/p.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(f'"""About {place}."""')
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    assert list(pythondocs._modules()) == [
        ("module a.py", ["About a.py."]),
        ("module x/b.py", ["About x/b.py."]),
    ]
