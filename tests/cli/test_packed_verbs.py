"""The verbs on packed files as a user meets them."""

import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.verbs import report

from micronet_lm.artifact import read_packed, write_packed
from micronet_lm.cli.main import main
from micronet_lm.cli.runs import INTERRUPTED
from micronet_lm.corpus import Corpus
from micronet_lm.runtime import benchmark


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(words) == 0
    return capsys.readouterr().out


def test_pack_tells_what_it_made(
    run: Path, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "m.safetensors"
    words = ["pack", str(run), "-o", str(out), "--name", "tiny", "--measure", "test"]
    told = report([*words, "--json"], capsys)
    assert told["bytes"] == out.stat().st_size
    card = told["card"]
    assert card["name"] == "tiny"
    assert card["corpus"]["source"] == "story.txt"  # where it lay is nobody's business
    assert card["corpus"]["fingerprint"] == corpus.fingerprint
    evaluated = report(["evaluate", str(run), "--split", "test", "--json"], capsys)
    assert card["perplexity"]["test"] == pytest.approx(evaluated["perplexity"], rel=1e-5)
    counted = report(["account", str(run), "--rules", "challenge", "--json"], capsys)
    assert card["accounting"]["challenge"]["storage"] == counted["storage"]
    assert card["accounting"]["challenge"]["operations"] == counted["operations"]["total"]
    assert card["made_by"] == "micronet pack tiny -o m.safetensors"
    assert card["shares"] == counted["model"]["shares"]
    assert "bytes" in said(["pack", str(run), "-o", str(out)], capsys)


def test_pack_replaces_regular_files_only(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe, deep = tmp_path / "pipe", tmp_path / "new" / "folder" / "m.safetensors"
    os.mkfifo(pipe)
    for out, why in ((pipe, "is not a regular file"), (deep, "make it first")):
        capsys.readouterr()
        assert main(["pack", str(run), "-o", str(out)]) == 1
        assert why in capsys.readouterr().err
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_an_unmeasured_file_never_has_the_final_name(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("micronet_lm.runtime.evaluation.evaluate_engine", interrupt)
    out = tmp_path / "m.safetensors"
    words = ["pack", str(run), "-o", str(out), "--measure", "test"]
    assert main(words) == INTERRUPTED
    assert list(tmp_path.iterdir()) == []
    out.write_text("an earlier file")
    assert main(words) == INTERRUPTED
    assert out.read_text() == "an earlier file"


def test_evaluate_gives_the_runs_perplexity(
    run: Path, model: Path, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = report(["evaluate", str(run), "--json"], capsys)
    words = ["evaluate", str(model), "--corpus", str(corpus.path)]
    found = report([*words, "--json"], capsys)
    assert found["perplexity"] == pytest.approx(wanted["perplexity"], rel=1e-5)
    assert found["tokens"] == wanted["tokens"]
    assert found["cache"] == {"size": 30, "ramp": 0}
    assert [part["tokens"] for part in found["bins"]] == [p["tokens"] for p in wanted["bins"]]
    text = tmp_path / "valid.txt"
    text.write_text(corpus.decode(corpus.split("valid")), encoding="utf-8")
    by_text = report(["evaluate", str(model), "--text", str(text), "--json"], capsys)
    assert by_text["perplexity"] == pytest.approx(found["perplexity"], rel=1e-9)
    assert "perplexity" in said([*words, "--split", "test", "--threads", "2"], capsys)


def test_account_counts_the_file(
    run: Path, model: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    for rules in ("paper", "challenge"):
        words = ["--rules", rules, "--json"]
        own = report(["account", str(model), "--corpus", str(corpus.path), *words], capsys)
        other = report(["account", str(run), *words], capsys)
        assert own["storage"] == other["storage"]
        assert own["operations"] == other["operations"]
        from_card = report(["account", str(model), *words], capsys)
        assert from_card["model"]["shares_from"] == "the card"
        for key in ("storage", "operations", "score"):
            assert from_card[key] == own[key]
    by_shares = report(["account", str(model), "--shares", "8,1,1", "--json"], capsys)
    assert by_shares["model"]["shares"] == [8, 1, 1]


def test_inspect_shows_every_tensor_and_its_bits(
    run: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = report(["inspect", str(model), "--json"], capsys)
    assert told["file"]["bytes"] == model.stat().st_size
    assert (
        sum(told["file"][key] for key in ("header", "vocabulary", "weights"))
        == (told["file"]["bytes"])
    )
    assert told["bits"] == sum(tensor["stored"] for tensor in told["tensors"])
    assert told["bits"] == sum(told["parts"].values()) == sum(told["fp32"].values())
    assert told["bits"] == 8 * told["file"]["weights"]  # floats only: no padding
    assert told["card"]["accounting"]["challenge"]["storage"] * 32 == told["bits"]
    names = [tensor["name"] for tensor in told["tensors"]]
    assert {"embedding.tables.2", "blocks.0.inner.bias", "cache.lam"} <= set(names)
    of_run = report(["inspect", str(run), "--json"], capsys)
    assert of_run["bits"] == told["bits"]
    assert of_run["tensors"] == told["tensors"]
    shown = said(["inspect", str(model)], capsys)
    assert "blocks.0.attention.output.weight" in shown
    assert "left in 32 bits" in shown


def test_predict_tells_words_and_probabilities(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["predict", "word1 word2", "-m", str(model)]
    told = report([*words, "-k", "3", "--json"], capsys)
    chances = [item["probability"] for item in told["words"]]
    assert len(chances) == 3
    assert chances == sorted(chances, reverse=True)
    begun = report([*words, "--prefix", "word9", "--json"], capsys)
    assert all(item["word"].startswith("word9") for item in begun["words"])
    shown = said(words, capsys)
    assert shown.count("%") == 5
    assert "begins with 'zzz'" in said([*words, "--prefix", "zzz"], capsys)
    assert report(["predict", "-m", str(model), "--json"], capsys)["text"] == ""


def test_generate_writes_on(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["generate", "word1 word2", "-m", str(model), "-n", "6", "--seed", "2"]
    told = report([*words, "--json"], capsys)
    assert len(told["pieces"]) == 6
    assert told["text"] == "word1 word2" + "".join(told["pieces"])
    assert "<unk>" not in told["text"]
    tokens = report([*words, "--special", "--json"], capsys)["pieces"]
    assert all(token.startswith(" ") and not token[1:].isspace() for token in tokens)
    assert said([*words[:1], "word1", "word2", *words[2:]], capsys) == told["text"] + "\n"
    assert said(words, capsys) == told["text"] + "\n"
    cold = ["--temperature", "0", "--json"]
    assert report([*words, *cold], capsys) == report([*words, *cold], capsys)


def test_score_tells_every_token(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("word1 word2\nword3\n", encoding="utf-8")
    told = report(["score", str(text), "-m", str(model), "--json"], capsys)
    assert [item["word"] for item in told["scores"]] == ["word2", "<eos>", "word3", "<eos>"]
    total = sum(item["log_probability"] for item in told["scores"])
    assert told["log_probability"] == pytest.approx(total)
    stdin = io.TextIOWrapper(io.BytesIO(text.read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert report(["score", "-", "-m", str(model), "--json"], capsys) == told
    lines = said(["score", str(text), "-m", str(model)], capsys).splitlines()
    assert len(lines) == 5
    assert lines[0].endswith("\tword2")
    by_line = report(["score", str(text), "-m", str(model), "--lines", "--json"], capsys)
    assert [line["tokens"] for line in by_line["lines"]] == [3, 2]
    assert by_line["tokens"] == 5
    shown = said(["score", str(text), "-m", str(model), "--lines", "--threads", "2"], capsys)
    assert shown.splitlines()[1].endswith("\tword3")


def test_unknown_words_are_told(
    model: Path, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, plain = tmp_path / "text.txt", tmp_path / "plain.txt"
    text.write_text("rare word1 rare\nseldom odd\n", encoding="utf-8")
    plain.write_text("word1 word2\n", encoding="utf-8")
    m = ["-m", str(model)]
    # Of every token after the first: word1, rare, the line's end, seldom, odd, the line's end.
    told = report(["score", str(text), *m, "--json"], capsys)
    assert (told["tokens"], told["unknown"], told["unknown_share"]) == (6, 3, 0.5)
    lines = report(["score", str(text), "--lines", *m, "--json"], capsys)
    assert [line["unknown"] for line in lines["lines"]] == [2, 2]
    assert (lines["unknown"], lines["unknown_share"]) == (4, 4 / 7)
    told = report(["evaluate", str(model), "--text", str(text), "--json"], capsys)
    assert (told["unknown"], told["unknown_share"]) == (3, 0.5)
    split = report(["evaluate", str(model), "--corpus", str(corpus.path), "--json"], capsys)
    wanted = int((corpus.split("valid")[1:] == corpus.vocabulary.words.index("<unk>")).sum())
    assert split["unknown"] == wanted
    for words in (["score", "{}", *m], ["evaluate", str(model), "--text", "{}"]):
        assert "3 of these tokens (50.0 %) are <unk>" in said(
            [word.format(text) for word in words], capsys
        )
        assert "<unk>" not in said([word.format(plain) for word in words], capsys)
    for verb in ("predict", "generate"):
        assert main([verb, text.read_text("utf-8"), *m, "--json"]) == 0
        heard = capsys.readouterr()
        json.loads(heard.out)
        assert "4 of 7 tokens are not in the model's vocabulary" in heard.err
        assert heard.err.endswith("read as <unk>: 'rare', 'seldom', 'odd'\n")
        assert heard.err.count("\n") == 1
        assert main([verb, "word1 word2", *m]) == 0
        assert capsys.readouterr().err == f"model: tiny, 99 words ({model})\n"
    long = "x" * 100
    assert main(["predict", long, *m, "--json"]) == 0
    assert f"<unk>: '{'x' * 29}…'" in capsys.readouterr().err


def test_standard_input_and_words_without_quotes(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    m = ["-m", str(model), "--json"]
    expected = report(["predict", "word1 word2", *m], capsys)
    assert report(["predict", "word1", "word2", *m], capsys) == expected
    for typed in (b"word1 word2", b"word1 word2\n", b"\xef\xbb\xbfword1 word2 \r\n"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed)))
        assert report(["predict", "-", *m], capsys)["words"] == expected["words"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"word1 word2")))
    assert report(["generate", "-", "-n", "3", *m], capsys)["prompt"] == "word1 word2"


def test_line_ends_of_every_system_score_alike(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    scores = []
    for data in (b"word1 word2\nword3\n", b"\xef\xbb\xbfword1 word2\r\nword3\r\n"):
        text.write_bytes(data)
        for words in (["score"], ["score", "--lines"], ["evaluate", str(model), "--text"]):
            options = [] if words[0] == "evaluate" else ["-m", str(model)]
            scores.append(report([*words, str(text), *options, "--json"], capsys))
    for one, other in zip(scores[:3], scores[3:], strict=True):
        assert one["perplexity"] == other["perplexity"]
        assert one["tokens"] == other["tokens"]


def test_lines_end_where_the_tokenizers_end_them(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    lines = ["word1\fword2", "word3\u2028word4\x85word5", "", "word6\x1cword7"]
    for end in ("", "\n"):
        text.write_text("\n".join(lines) + end, encoding="utf-8", newline="")
        told = report(["score", str(text), "-m", str(model), "--lines", "--json"], capsys)
        assert [line["text"] for line in told["lines"]] == lines
        assert [line["tokens"] for line in told["lines"]] == [3, 4, 1, 3]


def test_bench_measures(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", str(model), "--seconds", "0.01", "--engine", "numpy"]
    told = report([*words, "--json"], capsys)
    assert told["engine"] == "numpy"
    assert set(told["tokens_per_second"]) == {"distribution", "top_5", "scoring"}
    assert all(speed > 0 for speed in told["tokens_per_second"].values())
    assert (told["tokens_before"], told["cache_full"]) == (benchmark.TEXT, True)
    shown = said(words, capsys)
    assert "tokens/s" in shown
    assert "not full" not in shown


def test_bench_fills_the_cache_or_says_so(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, packed = tmp_path / "large.safetensors", read_packed(model)
    assert packed.cache is not None
    write_packed(path, replace(packed, cache=replace(packed.cache, size=benchmark.TEXT + 100)))
    words = ["bench", str(path), "--seconds", "0.01", "--engine", "numpy"]
    told = report([*words, "--json"], capsys)
    assert (told["tokens_before"], told["cache_full"]) == (benchmark.TEXT + 100 + 9, True)
    monkeypatch.setattr(benchmark, "MOST", benchmark.TEXT + 50)
    told = report([*words, "--json"], capsys)
    assert (told["tokens_before"], told["cache_full"]) == (benchmark.TEXT + 50, False)
    assert "after 4,146 tokens: the cache was not full" in said(words, capsys)


def test_the_folder_of_a_pipeline_means_its_packed_file(
    model: Path, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine" / "packed").mkdir(parents=True)
    shutil.copy(model, tmp_path / "mine" / "packed" / "model.safetensors")
    own = str(tmp_path / "mine")
    shown = report(["inspect", own, "--json"], capsys)
    assert {**shown, "target": ""} == {
        **report(["inspect", str(model), "--json"], capsys),
        "target": "",
    }
    assert shown["target"] == f"{own}/packed/model.safetensors"
    counted = [report(["account", target, "--json"], capsys) for target in (own, str(model))]
    assert counted[0]["score"] == counted[1]["score"]
    on = ["--corpus", str(corpus.path), "--split", "test", "--json"]
    measured = [report(["evaluate", target, *on], capsys) for target in (own, str(model))]
    assert measured[0]["loss"] == measured[1]["loss"]


@pytest.mark.parametrize(
    "verb", ["pack", "inspect", "predict", "generate", "score", "bench", "evaluate"]
)
def test_help_has_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    told = capsys.readouterr().out
    assert f"micronet {verb} " in told.split("examples:")[1]
    assert "--json" in told
