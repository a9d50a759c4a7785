"""What `micronet quantize` refuses: each mistake is one sentence, before any work."""

from pathlib import Path

import pytest
from tests.support.recipes import tiny_recipe

from micronet_lm.cli.main import main
from micronet_lm.compression import write_soft_labels
from micronet_lm.compression.quantization import run as quantized_run
from micronet_lm.compression.quantization import sweep as quantization_sweep
from micronet_lm.compression.quantization.run import quantize
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError
from micronet_lm.training import Run, train


def test_mistakes(
    tmp_path: Path,
    corpus: Corpus,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Run(tmp_path / "source")
    train(source, tiny_recipe(corpus, train__steps=4), corpus, quiet=True)
    words = ["quantize", str(source.path), "--quantize.calibration_tokens", "500"]
    done = tmp_path / "done"
    assert main([*words, "--out", str(done)]) == 0
    calibrated = tmp_path / "calibrated"
    assert main([*words, "--out", str(calibrated), "--steps", "0"]) == 0
    out, here = str(tmp_path / "never"), str(source.path)
    labels, file = tmp_path / "labels", tmp_path / "file"
    write_soft_labels(source.model(), corpus, labels, count=5, quiet=True)
    file.write_text("no folder")
    kept = (done / "best.safetensors").stat().st_mtime_ns
    # Nothing is worked on before it is refused.
    monkeypatch.setattr(quantized_run, "calibrated_model", None)
    monkeypatch.setattr(quantization_sweep, "evaluate", None)
    capsys.readouterr()
    for words, code, said in (
        (["quantize", here], 2, "give what to quantize and where"),
        (["quantize", here, "--out", out, "--methods", "learned"], 2, "--methods is for a table"),
        (["quantize", here, "--out", out, "--tokens", "9"], 2, "--tokens is for a table"),
        (["quantize", here, "--out", out, "--bits", "1"], 2, "bits must be at least 2, got 1"),
        (["quantize", here, "--out", out, "--bits", "17"], 2, "must be at most 16, got 17"),
        (["quantize", here, "--out", out, "--quantize.table_bits", "20"], 2, "2 to 16, or 32"),
        (
            ["quantize", here, "--out", out, "--places", "everywhere"],
            2,
            "there is no place 'everywhere': choose code, text, none, or a list of attention_norm, "
            "qkv,",
        ),
        (["quantize", here, "--out", out, "--places", "relu,text"], 2, "there is no place 'text'"),
        (["quantize", here, "--out", out, "--quantize.places", "5"], 2, "there is no place '5'"),
        (
            ["quantize", here, "--out", out, "--places", "relu,relu"],
            2,
            "places must be distinct, got",
        ),
        (["quantize", here, "--out", out, "--recipe", "demo"], 2, "has no section quantize"),
        (["quantize", here, "--out", out, "--labels", out], 1, "has no soft labels"),
        (
            ["quantize", here, "--out", out, "--train.precision", "bfloat16"],
            2,
            "got bfloat16, which cannot represent 9-bit integers",
        ),
        (["quantize", str(done), "--out", out], 1, "already quantized"),
        (
            ["quantize", here, "--out", here, "--steps", "0"],
            1,
            "is the run itself: choose another --out",
        ),
        (
            ["quantize", here, "--out", str(done), "--steps", "0"],
            1,
            "holds a trained run: choose another --out",
        ),
        (
            ["quantize", here, "--out", str(done), "--bits", "8"],
            1,
            "quantize.bits, quantize.calibration_tokens",
        ),
        (
            ["quantize", "--resume", str(calibrated)],
            1,
            "is a result, which cannot be trained further",
        ),
        (
            ["quantize", here, "--out", out, "--sweep", "9,x"],
            2,
            "each of which must be a whole number, got 'x'",
        ),
        (["quantize", here, "--out", out, "--sweep", "9", "--methods", "magic"], 2, "got magic"),
        (
            ["quantize", here, "--out", out, "--sweep", "9", "--tokens", "0"],
            2,
            "--tokens must be at least 1, got 0",
        ),
        *(
            (
                ["quantize", here, "--out", out, "--sweep", "9", *words],
                2,
                f"{words[0]} is for one run",
            )
            for words in (
                ["--bits", "9"],
                ["--learned"],
                ["--quantize.bits", "9"],
                ["--quantize.learned", "true"],
            )
        ),
        (["quantize", here, "--out", out, "--sweep", "9,99"], 2, "must be at most 16, got 99"),
        (
            ["quantize", here, "--out", out, "--sweep", "9,9"],
            2,
            "--sweep must be distinct, got 9,9",
        ),
        (
            ["quantize", here, "--out", out, "--sweep", "9", "--methods", "fitted,fitted"],
            2,
            "--methods must be distinct, got fitted,fitted",
        ),
        *(
            (
                ["quantize", here, "--out", out, "--sweep", "9", "--methods", method, *zero],
                2,
                f"--methods {method} with 0 steps trains nothing",
            )
            for method in ("trained", "learned")
            for zero in (["--steps", "0"], ["--quantize.steps", "0"])
        ),
        *(
            (["quantize", "--resume", str(done), *words], 2, f"{words[0]} is for a new run")
            for words in (
                ["--bits", "4"],
                ["--steps", "0"],
                ["--places", "text"],
                ["--learned"],
                ["--recipe", "paper/quantized-text"],
            )
        ),
        (
            ["quantize", "--resume", str(done), "--labels", str(labels)],
            2,
            "--labels needs a section distill",
        ),
        (
            ["quantize", here, "--out", out, "--labels", str(labels)],
            2,
            "--labels needs a section distill",
        ),
        (
            ["quantize", here, "--out", out, "--labels", str(labels), "--sweep", "9"],
            2,
            "--labels needs a section distill",
        ),
        (
            ["quantize", here, "--out", out, "--labels", str(labels), "--steps", "0"],
            2,
            "0 steps train nothing, so there is nothing to distil",
        ),
        (
            ["quantize", here, "--out", out, "--distill.top_k", "5", "--steps", "0"],
            2,
            "0 steps train nothing, so there is nothing to distil",
        ),
        (
            ["quantize", here, "--out", out, "--labels", str(labels), "--distill.top_k", "6"],
            1,
            "the recipe needs the",
        ),
        (
            [
                *("quantize", here, "--out", out, "--labels", str(labels), "--distill.top_k", "5"),
                *("--sweep", "9", "--methods", "calibrated,fitted"),
            ],
            2,
            "--methods calibrated,fitted train nothing",
        ),
        (
            ["quantize", here, "--out", out, "--distill.top_k", "5", "--sweep", "9"],
            2,
            "give soft labels with --labels",
        ),
        *(
            (["quantize", here, "--out", str(place), *words], 1, f"{file} is a file, not a folder")
            for place in (file, file / "below")
            for words in ([], ["--steps", "0"], ["--sweep", "9"])
        ),
        (["train", "--resume", str(done)], 2, "micronet quantize RUN --out DIR"),
        (["train", "demo", "--out", out, "--quantize.bits", "9"], 2, "micronet quantize RUN"),
        (
            ["prune", str(done), "--allocation", "uniform", "--out", out],
            2,
            "prune the run that it was made from",
        ),
    ):
        assert main(words) == code, words
        error = capsys.readouterr().err
        assert said in error, error
        assert error.count("\n") == 1, error
    assert not Path(out).exists()
    assert (done / "best.safetensors").stat().st_mtime_ns == kept
    with pytest.raises(ConfigError, match="no section quantize"):
        quantize(Run(tmp_path / "x"), source.recipe(), corpus, source=source)
