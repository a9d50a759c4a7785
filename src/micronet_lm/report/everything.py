"""All tables and figures of the paper at one scale: what they need, and the page of what holds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from micronet_lm.pipeline import Sources, Stage, State, Workspace
from micronet_lm.pipeline.stage import in_order
from micronet_lm.report.cache_effect import CacheEffect
from micronet_lm.report.claims import (
    ASSUMED_NOISE,
    FIGURES,
    Claim,
    Judgement,
    judged,
    load_claims,
    pooled_noise,
)
from micronet_lm.report.effect_stage import effect_stage, shares
from micronet_lm.report.figure_claims import judged_figure
from micronet_lm.report.reproduction import Cell, Reproduction
from micronet_lm.report.tables import load_table

ORDER = ("hebbian", "cache", "context", "cache-search", "sota", "claims", "compression", "micronet")
"""Tables in the order in which they are trained: the cheap and informative ones first."""

TABLES = (*ORDER, "pipeline")

_NUMBERS = frozenset({"teacher", "student", "prune", "search-cache", "quantize", "search-again"})
"""Stages whose results tables show."""

_RECORDED = _NUMBERS | {"corpus", "account", "cache-effect"}
"""Stages whose records outlive their runs."""


class Everything:
    """All tables and figures, in one workspace."""

    def __init__(
        self,
        scale: str,
        workspace: Workspace,
        *,
        sources: Sources | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare everything; `overrides` change all recipes."""
        self.scale, self._site = scale, workspace
        self.tables = {
            name: Reproduction(
                load_table(name), scale, workspace, sources=sources, overrides=overrides
            )
            for name in TABLES
        }
        compared = self.tables["cache"].compared()
        self._effect = effect_stage(compared[0].needs["corpus"], compared)

    @property
    def corpus(self) -> Stage:
        """The corpus of all rows."""
        return self._effect.needs["corpus"]

    def targets(self) -> list[Stage]:
        """Return the stages whose results are shown, those of cheap tables first.

        Everything is trained once before anything with a second seed: an unfinished page then tells
        the most.
        """
        found: dict[str, Stage] = {}
        for seed in range(max(made.most_seeds() for made in self.tables.values())):
            for name in TABLES:
                for stage in self.tables[name].targets_of_seed(seed):
                    found.setdefault(stage.fingerprint, stage)
            found.setdefault(self._effect.fingerprint, self._effect)
        return list(found.values())

    def to_train(self) -> list[Stage]:
        """Return the targets whose results are not known, here or from a record."""
        return [stage for stage in self.targets() if self._site.state(stage) is not State.GONE]

    def give(self, folder: Path) -> int:
        """Write the records of all complete stages that tables show; return how many."""
        return sum(self.give_one(stage, folder) for stage in in_order(self.targets()))

    def give_one(self, stage: Stage, folder: Path) -> bool:
        """Write the record of a stage if it is complete and tables show it; return whether."""
        return stage.name in _RECORDED and self._site.give(stage, folder)

    def trainings(self) -> tuple[list[Stage], list[Stage]]:
        """Return the stages with results that are known, and those that are still to do."""
        stages = [stage for stage in in_order(self.targets()) if stage.name in _NUMBERS]
        known = (State.COMPLETE, State.GONE)
        done = [stage for stage in stages if self._site.state(stage) in known]
        return done, [stage for stage in stages if stage not in done]

    def seconds(self) -> float:
        """Return the time that the known results took, wherever they were made."""
        records = [self._site.record(stage) for stage in self.trainings()[0]]
        return sum(max(own.seconds, float(own.result.get("seconds", 0))) for own in records if own)

    def budget(self) -> tuple[int, float | None]:
        """Return the tokens of the plain student's training, and the passes over the text.

        The passes are None where the size of the text is not known.
        """
        train = self._student().settings["train"]
        tokens = train["steps"] * train["batch"] * train["window"] * train["accumulate"]
        record = self._site.record(self.corpus)
        size = record.result.get("tokens", {}).get("train") if record else None
        return tokens, tokens / size if size else None

    def precision(self) -> str:
        """Return the precision of the plain student's training."""
        return str(self._student().settings["train"]["precision"])

    def _student(self) -> Stage:
        return self.tables["hebbian"].targets()[0]

    def noise(self) -> float | None:
        """Return the spread of log perplexities over seeds; None while no row has two."""
        cells: dict[tuple[float, ...], Cell] = {}  # several tables show some of them
        for made in self.tables.values():
            for row in (row for row in made.table.rows if row.seeds > 1):
                for column in made.table.columns:
                    if column.measured and "perplexity" in column.measured:
                        cell = made.cells(row)[column.key]
                        cells[cell.seeds] = cell
        return pooled_noise(list(cells.values()))

    def effect(self) -> Mapping[str, Mapping[str, float]] | None:
        """Return what the cache figures sum up, by model; None before they are made."""
        made = self._compared()
        return made["sums"] if made else None

    def figures(self) -> dict[str, CacheEffect]:
        """Return the data of the cache figures by name; nothing before they are made."""
        made = self._compared() or {"figures": {}}
        return {name: CacheEffect.from_json(tree) for name, tree in made["figures"].items()}

    def _compared(self) -> Mapping[str, Any] | None:
        record = self._site.record(self._effect)
        return record.result if record and record.complete else None

    def verdicts(self) -> dict[str, list[tuple[Claim, Judgement]]]:
        """Return every claim with its verdict, by table."""
        noise = self.noise() or ASSUMED_NOISE
        compared = self._compared()
        parts = shares(compared["figures"]) if compared else {}
        found: dict[str, list[tuple[Claim, Judgement]]] = {}
        for name, claims in load_claims().items():
            if name == FIGURES:
                sums = self.effect()
                found[name] = [(own, judged_figure(own, sums, parts, noise)) for own in claims]
                continue
            made = self.tables[name]
            rows = {row.label: made.cells(row) for row in made.table.rows}
            found[name] = [
                (claim, judged(claim, lambda row, column, own=rows: own[row][column], noise))  # type: ignore[misc]
                for claim in claims
            ]
        return found
