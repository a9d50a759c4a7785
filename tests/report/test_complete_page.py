"""The page of what holds when every result is there: made-up records for all stages."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from micronet_lm.cli.main import main
from micronet_lm.pipeline import Stage, Workspace
from micronet_lm.pipeline.stage import in_order
from micronet_lm.pipeline.workspace import Record
from micronet_lm.report.cache_effect import cache_effect
from micronet_lm.report.claims import Verdict, load_claims
from micronet_lm.report.effect_stage import COMPARED, REFERENCE, sums
from micronet_lm.report.everything import Everything
from micronet_lm.report.tables import CACHE_FIGURES

MODELS = ("teacher", "student", "prune", "search-cache", "quantize", "search-again")


def effect() -> dict[str, Any]:
    """The result of the cache figures' stage: the larger the cache, the lower the loss."""
    random = np.random.default_rng(0)
    ids = (random.zipf(1.2, size=5_000) % 20_000).astype(np.uint16)
    losses = {
        name: random.gamma(2, 2, len(ids) - 1) - number
        for number, name in enumerate((*COMPARED, REFERENCE))
    }
    figures = {what: cache_effect(ids, losses, by).as_json() for what, by in CACHE_FIGURES.items()}
    return {"sums": sums(ids, losses), "figures": figures}


def result(stage: Stage, number: int) -> dict[str, Any]:
    if stage.name == "corpus":
        return {"tokens": {"train": 2_000_000}}
    if stage.name == "cache-effect":
        return effect()
    if stage.name == "account":
        row = {"storage": 1e6, "operations": 3e6, "parameters": 2e6}
        more = {"nonzeros": 60, "weights": 100, "bits": 9}
        return {"models": [{"stage": name, **row, **more} for name in MODELS]}
    own = {"validation_perplexity": 100.0 + number, "test_perplexity": 90.0 + number}
    return {**own, "theta": 0.02, "lam": 0.1 + number / 1e4, "seconds": 50.0}


@pytest.fixture(scope="module", name="records")
def _records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("complete")
    site = Workspace(folder / "out", shared=True)
    made = Everything("wikitext-2", site)
    (folder / "out" / "stages").mkdir(parents=True)
    for number, stage in enumerate(in_order(made.targets())):
        record = Record(
            stage=stage.name,
            fingerprint=stage.fingerprint,
            complete=True,
            settings=dict(stage.settings),
            needs={role: needed.fingerprint for role, needed in stage.needs.items()},
            result=result(stage, number),
            seconds=60.0,
        )
        site.write(stage, record)
    made.give(folder / "paper")
    return folder / "paper"


@pytest.fixture(scope="module", name="text")
def _text(records: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    words = ["reproduce", "all", "--scale", "wikitext-2", "--only-records"]
    out = tmp_path_factory.mktemp("out")
    assert main([*words, "--records", str(records), "--out", str(out)]) == 0
    return records.with_suffix(".md").read_text()


def test_nothing_is_left_to_train(text: str) -> None:
    assert "not trained yet" not in text
    assert "missing" not in text
    done = re.search(r"(\d+) of (\d+) results are there", text)
    assert done
    assert done[1] == done[2]


def test_every_claim_has_its_numbers_and_a_verdict(text: str) -> None:
    told = {verdict.value for verdict in Verdict} - {Verdict.MISSING.value}
    for claims in load_claims().values():
        for claim in claims:
            row = next(line for line in text.splitlines() if line.startswith(f"| {claim.text} |"))
            *_, ours, verdict = row.strip("| ").split(" | ")
            assert verdict in told
            assert re.search(r"[\d%] [<>≈] |nats per token", ours)
    count = sum(int(n) for n in re.findall(r"\| (?:holds|does|cannot).* \| (\d+) \|", text))
    assert count == sum(not claim.ours for claims in load_claims().values() for claim in claims)


def test_figures_stand_beside_the_page(text: str, records: Path) -> None:
    files = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert files == ["paper-pipeline.svg", "paper-cache-tokens.png", "paper-cache-gaps.png"]
    svg = (records.parent / files[0]).read_text()
    assert all(f">{title}</text>" in svg for title in ("Without compression", "With compression"))
    for name in files[1:]:
        assert (records.parent / name).read_bytes().startswith(b"\x89PNG")


def test_seeds_have_a_mean_and_a_spread(text: str) -> None:
    for start, cells in (
        ("| Ours, no Hebbian |", 2),
        ("| Ours, with Hebbian |", 2),
        ("| cache of 1000 (demo 500) |", 1),
        ("| cache of 2000 (demo 1000) |", 1),
        ("| C = 65 |", 1),
        ("| C = 257 |", 1),
        ("| extended context |", 1),
        ("| embeddings times √d |", 1),
    ):
        row = next(line for line in text.splitlines() if line.startswith(start))
        assert len(re.findall(r"[\d.]+ ± [\d.]+ \(3 seeds\)", row)) == cells, row


def test_tables_are_not_wider_than_a_reader_can_follow(text: str) -> None:
    heads = [line for line in text.splitlines() if line.startswith("|  |")]
    assert heads
    assert max(head.count("|") for head in heads) <= 14
    assert "| score: paper | counted |" in text
    for head in heads:  # no column of nothing
        body = text[text.index(head) :].partition("\n\n")[0].splitlines()[2:]
        columns = zip(*(line.strip("| ").split(" | ") for line in body), strict=True)
        assert all(set(column) != {"–"} for column in columns)
