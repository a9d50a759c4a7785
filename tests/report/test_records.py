"""Records of finished rows stand for runs that are gone; the page has a verdict for each claim."""

import json
import re
import shutil
from pathlib import Path

import pytest

from micronet_lm.cli.main import main
from micronet_lm.pipeline import State, Workspace
from micronet_lm.pipeline.records import adopt_records, told_of_records
from micronet_lm.pipeline.workspace import Record
from micronet_lm.report.claims import Verdict, load_claims
from micronet_lm.report.everything import TABLES, Everything
from micronet_lm.report.paper_page import page
from micronet_lm.report.tables import load_table


def complete(site: Workspace, made: Everything, perplexity: dict[str, float]) -> None:
    """Write records as if every student of the Hebbian table had been trained."""
    for number, stage in enumerate(made.tables["hebbian"].targets()):
        cached = "cache" if stage.settings.get("cache") else "none"
        record = Record(
            stage=stage.name,
            fingerprint=stage.fingerprint,
            complete=True,
            settings=dict(stage.settings),
            needs={role: needed.fingerprint for role, needed in stage.needs.items()},
            result={
                "validation_perplexity": perplexity[cached] * (1 + number / 1e4),
                "seconds": 90.0,  # of all calls; the record may know the last one only
            },
            seconds=60.0,
        )
        site.write(stage, record)


def everything(root: Path) -> tuple[Workspace, Everything]:
    site = Workspace(root, shared=True)
    return site, Everything("wikitext-2", site)


@pytest.fixture(scope="module", name="records")
def _records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    site, made = everything(folder / "out")
    (folder / "out" / "stages").mkdir(parents=True)
    complete(site, made, {"none": 150.0, "cache": 110.0})
    assert made.give(folder / "records") == 12
    return folder / "records"


def test_a_record_is_small_and_suffices(records: Path, tmp_path: Path) -> None:
    assert max(file.stat().st_size for file in records.iterdir()) < 4_000
    site, made = everything(tmp_path / "out")
    before = len(made.to_train())
    assert adopt_records(site, made.targets(), records, build=False) == 12
    assert len(made.to_train()) == before - 12
    row = made.tables["hebbian"].table.rows[2]
    cell = made.tables["hebbian"].cells(row)["none"]
    assert cell.measured == pytest.approx(150, rel=1e-2)
    assert len(cell.seeds) == 3
    assert made.seconds() == 12 * 90
    # Adopted once: a second call has nothing to do, and what is here is not replaced.
    assert adopt_records(site, made.targets(), records, build=False) == 0
    stage = made.tables["hebbian"].targets()[0]
    assert site.state(stage) is State.GONE


def test_other_recipes_are_trained(records: Path, tmp_path: Path) -> None:
    site = Workspace(tmp_path / "out", shared=True)
    made = Everything("wikitext-2", site, overrides={"train.steps": 900})
    assert adopt_records(site, made.targets(), records, build=False) == 0


def test_records_of_another_text_are_left_alone(records: Path, tmp_path: Path) -> None:
    site, made = everything(tmp_path / "out")
    folder = tmp_path / "records"
    shutil.copytree(records, folder)
    corpus = made.corpus
    (tmp_path / "out" / "stages").mkdir(parents=True)

    def record(text: str) -> Record:
        return Record(
            stage="corpus",
            fingerprint=corpus.fingerprint,
            complete=True,
            settings=dict(corpus.settings),
            needs={},
            result={"fingerprint": text},
        )

    site.write(corpus, record("theirs"))
    site.folder(corpus).mkdir()
    assert site.give(corpus, folder)
    site.write(corpus, record("ours"))
    assert adopt_records(site, made.targets(), folder, build=False) is None
    assert "another text" in told_of_records(None, folder)
    site.write(corpus, record("theirs"))
    assert adopt_records(site, made.targets(), folder, build=False) == 12


def test_the_page_tells_what_is_there_and_what_is_not(records: Path, tmp_path: Path) -> None:
    site, made = everything(tmp_path / "out")
    adopt_records(site, made.targets(), records, build=False)
    text = page(made, records="paper", command="micronet reproduce all", pictures={})
    assert "12 of " in text
    assert "(3 seeds)" in text
    assert "not trained yet" in text
    for name in TABLES:
        assert load_table(name).title in text
    for claims in load_claims().values():
        assert all(claim.text in text for claim in claims)
    judged = made.verdicts()
    assert {own.verdict for _, own in judged["hebbian"]} == {Verdict.HOLDS}
    assert {own.verdict for _, own in judged["context"]} == {Verdict.MISSING}


def test_the_verb_writes_the_page_beside_the_records(
    records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "paper"
    shutil.copytree(records, folder)
    words = ["reproduce", "all", "--scale", "wikitext-2", "--only-records"]
    more = ["--records", str(folder), "--out", str(tmp_path / "out")]
    assert main([*words, *more]) == 0
    assert "12 results are taken from the records" in capsys.readouterr().err
    assert "Hebbian softmax" in (tmp_path / "paper.md").read_text()
    words = ["reproduce", "hebbian", "--scale", "wikitext-2", "--only-records", "--json"]
    assert main([*words, *more]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"][2]["cells"]["none"]["measured"] == pytest.approx(150, rel=1e-2)
    damaged = next(folder.glob("student-*.json"))
    damaged.write_text("{")
    assert main([*words[:-1], "--records", str(folder), "--out", str(tmp_path / "new")]) == 1
    assert "is damaged" in capsys.readouterr().err


def test_counted_numbers_need_no_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", "compression", "--only-records", "--out", str(tmp_path / "out"), "--json"]
    assert main(words) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    best = rows[5]["cells"]
    assert f"{best['score']['computed']:.4f}" == best["score"]["printed"] == "0.0387"
    equal = {
        row["label"]: [
            key
            for key in ("storage", "operations")
            if f"{row['cells'][key]['computed'] / 1e6:.1f}M" == row["cells"][key]["printed"]
        ]
        for row in rows
    }
    assert [label for label, keys in equal.items() if len(keys) == 2] == [
        label for label in equal if "best" not in label and "0.477" not in label
    ]
    assert equal["C 97, 0.358, 3000, 9 bits (the best)"] == ["storage"]
    # What people see: these numbers side by side, and no column of results that are not there.
    assert main([word for word in words if word != "--json"]) == 0
    told = capsys.readouterr().out
    assert re.search(
        r"C 97, 0\.358, 3000, 9 bits .* 1\.8M +1\.76M +8\.9M +8\.81M +0\.0387 +0\.0387", told
    )
    assert "ours  " not in told
