"""Wrong words on the command line and in the API: one sentence that says what was meant."""

from collections.abc import Callable
from pathlib import Path

import pytest

import micronet_lm as mn
from micronet_lm.cli.main import main
from micronet_lm.errors import ArtifactError, InferenceError


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("predct Return", "there is no verb 'predct' (did you mean 'predict'?)"),
        ("xyzzy", "there is no verb 'xyzzy'; see micronet --help"),
        ("predict a --modle demo", "(did you mean '--model'?); see micronet predict --help"),
        ("evaluate demo --split tets", "'test', got 'tets' (did you mean 'test'?)"),
        ("predict a -m demoo", "there is no file or model demoo (did you mean 'demo'?)"),
        ("evaluate nosuch --text x", "there is neither a run nor a packed file at nosuch"),
        ("account demoo", "(did you mean 'demo'?)"),
    ],
)
def test_what_was_meant(words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) in {1, 2}
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_the_shipped_model_has_a_name_in_every_verb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = tmp_path / "text"
    text.write_text("Return a new list.\n", encoding="utf-8")
    for words in (["inspect", "demo"], ["verify", "demo"], ["evaluate", "demo", "--text", "text"]):
        assert main(words) == 0
        assert capsys.readouterr().out


def test_no_file_is_not_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", ""]) == 1
    assert "the name of the text file is empty" in capsys.readouterr().err


def test_long_prefixes_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "a", "--prefix", "q" * 5_000]) == 0
    said = capsys.readouterr().out
    assert "no word of the vocabulary begins with 'qqq" in said
    assert len(said) < 200


def test_more_bits_than_a_byte_has_are_remarked_upon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange, usual = tmp_path / "strange", tmp_path / "usual"
    strange.write_text(" ".join(map(chr, range(0x4E00, 0x5E00, 97))), encoding="utf-8")
    usual.write_text("Return a new list of the items in it.\n" * 3, encoding="utf-8")
    remark = "more than the 8 bits that a byte has"
    for file, remarked in ((strange, True), (usual, False)):
        assert main(["score", str(file), "-m", "demo", "--json"]) == 0
        assert main(["score", str(file), "-m", "demo"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert (remark in said) is remarked, said[-300:]


def test_wrong_types_are_sentences() -> None:
    lm = mn.load("demo")
    asked: dict[str, Callable[[], object]] = {
        "a text must be a str, got int": lambda: lm.top_k(3),  # type: ignore[arg-type]
        "a text must be a str, got NoneType": lambda: lm.score(None),  # type: ignore[arg-type]
        "text 1 must be a str, got bytes": lambda: lm.score_batch(["a b", b"a b"]),  # type: ignore[list-item]
        "half of a surrogate pair at character 1": lambda: lm.top_k("a\ud800b"),
        "k must be a whole number, got str": lambda: lm.top_k("a", k="x"),  # type: ignore[arg-type]
        "k must be 1 or more, got 0": lambda: lm.suggest("a", 0),
        "max_tokens must be a whole number": lambda: lm.generate("a", max_tokens="x"),  # type: ignore[arg-type]
        "temperature must be a number, got str": lambda: lm.generate("a", temperature="x"),  # type: ignore[arg-type]
        "a prefix must be a str, got int": lambda: lm.complete("a", 5),  # type: ignore[arg-type]
        "threads must be a whole number": lambda: lm.top_k_batch(["a"], threads=1.5),  # type: ignore[arg-type]
    }
    for sentence, ask in asked.items():
        with pytest.raises(InferenceError, match=sentence):
            ask()
    with pytest.raises(ArtifactError, match="a model is a path or a name, got int"):
        mn.load(5)  # type: ignore[arg-type]


def test_public_names_are_listed() -> None:
    assert {"load", "LM", "State"} <= set(dir(mn))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-m", "demo", "predict", "a"], "'-m' must come after the verb: micronet VERB -m ..."),
        (["--json", "doctor"], "'--json' must come after the verb"),
        (["score", "Return the file."], "there is no file 'Return the file.': give a text file"),
        (["score", "a" * 5_000], "no file has a name of 5,000 letters: give a text file"),
        (["score", "README.md/x"], "as in: echo TEXT | micronet score -"),
        (["predict", "--n", "3", "a"], "'--n' is not an option here; see"),
        (["predict", "a", "-m", "demo/shipped"], "a model that ships (demo, wikitext-2)"),
        (
            ["corpus", "build", "a.txt", "b.txt", "--out", "c"],
            "or a pattern such as '*.txt', into quotes",
        ),
        (["score", "."], ". is a folder: give a text file, or - for standard input"),
        (["score", "Return", "the", "file."], "'the' is one word too many"),
    ],
)
def test_how_it_is_meant(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) in {1, 2}
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert len(said) < 200


def test_keys_of_a_recipe_may_come_before_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--cache.size", "3000", "account", "paper/student", "--json"]
    assert main(words) == 0
    before = capsys.readouterr().out
    assert main([*words[2:], *words[:2]]) == 0
    assert capsys.readouterr().out == before


def test_warnings_show_words_without_marks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "🎉👍 (zzgl) 👩\u200d💻"]) == 0
    assert "read as <unk>: '🎉', '👍', 'zzgl', '👩\u200d💻'\n" in capsys.readouterr().err


def test_an_answer_names_the_model_as_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """`-m demo/shipped`, the recipe's name, was printed, but only `-m demo` opens the model."""
    for words in ([], ["-m", "demo"]):
        assert main(["predict", "a", *words]) == 0
        assert "demo/shipped, 7,137 words (ships with the package: -m demo)\n" in (
            capsys.readouterr().err
        )


def test_a_model_of_wikitexts_tokens_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The model of English reads "1905," and "didn't" as unknown words."""
    for model, tokens in (("wikitext-2", True), ("demo", False)):
        assert main(["predict", "In 1905, he didn't", "-m", model]) == 0
        assert ("In 1905 , he did n't" in capsys.readouterr().err) is tokens


def test_standard_input_that_is_not_asked_for_is_remarked_upon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`echo text | micronet predict` answered what begins a line, as if nothing had been typed."""
    remark = "standard input is not read; give - as the text"
    (tmp_path / "text").write_text("Return a new", encoding="utf-8")
    with (tmp_path / "text").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        for words, remarked in (([], True), (["Return"], False), (["-"], False)):
            assert main(["predict", *words]) == 0
            assert (remark in capsys.readouterr().err) is remarked, words
    with Path("/dev/null").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert main(["predict"]) == 0
        assert remark not in capsys.readouterr().err


def test_utf_16_is_recognized(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As PowerShell and Notepad write it."""
    file = tmp_path / "text.txt"
    file.write_text("some text\n" * 3000, encoding="utf-16")
    for words in (["score"], ["corpus", "build", "--out", str(tmp_path / "c")]):
        assert main([*words, str(file)]) == 1
        assert f"iconv -f UTF-16 -t UTF-8 {file}" in capsys.readouterr().err


def test_lines_of_a_text_cannot_steer_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text"
    text.write_text("a \x1b[31mred\x07 file\tand می\u200cخواهم 👩\u200d💻\n", encoding="utf-8")
    assert main(["score", str(text), "--lines"]) == 0
    shown = capsys.readouterr().out.splitlines()[0]
    assert shown.endswith("a \\x1b[31mred\\x07 file\tand می\u200cخواهم 👩\u200d💻")
