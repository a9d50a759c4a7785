"""A table of the paper with our own numbers: the stages it needs, and their results."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from micronet_lm.config import FULL
from micronet_lm.files import make_folder, write_text
from micronet_lm.pipeline import Sources, Stage, State, Workspace, plan, stages_of, take_apart
from micronet_lm.pipeline.corpus_size import corpus_size
from micronet_lm.pipeline.costs import Costs
from micronet_lm.pipeline.estimates import estimated
from micronet_lm.pipeline.runner import Tell
from micronet_lm.pipeline.stages import MODELS
from micronet_lm.report.paper_counts import paper_count
from micronet_lm.report.stack import Layer, stack_svg
from micronet_lm.report.tables import Column, Row, Table


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number three times: printed in the paper, counted, and measured."""

    printed: str | None = None
    computed: float | None = None
    """Counted from the paper's recipe, whatever the scale of the measurement."""
    measured: float | None = None
    """From complete stages; None before. The mean if there are several seeds."""
    seeds: tuple[float, ...] = ()
    """The number of each seed so far, if the row has several."""

    @property
    def spread(self) -> float | None:
        """Standard deviation over the seeds; None for fewer than two."""
        return stdev(self.seeds) if len(self.seeds) > 1 else None


class Reproduction:
    """One table at one scale, in a workspace shared by many tables."""

    def __init__(
        self,
        table: Table,
        scale: str,
        workspace: Workspace,
        *,
        sources: Sources | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare the table; `overrides` change all its recipes."""
        self.table, self.scale, self._site = table, scale, workspace
        self._sources, self.overrides = sources or Sources(), overrides or {}
        self._stages: dict[tuple[str, int], dict[str, Stage]] = {}

    def targets(self) -> list[Stage]:
        """Return the stages whose results the table shows, all of one seed before the next."""
        return list(chain(*(self.targets_of_seed(seed) for seed in range(self.most_seeds()))))

    def targets_of_seed(self, seed: int) -> list[Stage]:
        """Return the stages of the rows that are measured with a seed."""
        found: dict[str, Stage] = {}
        for row, column in self._cells():
            asked = self._asked(row, column, seed) if seed < self._seeds(row) else None
            if asked is not None:
                stage, _ = asked
                found[stage.fingerprint] = stage
        return list(found.values())

    def compared(self) -> list[Stage]:
        """List the trainings whose models the cache figures compare: no cache, small, large."""
        column = self.table.columns[-1]
        presets = [row.recipe(column, self.scale) for row in self.table.rows if row.compared]
        return [self.stages(preset)[MODELS[0]] for preset in presets if preset]

    def estimate(self, targets: Sequence[Stage], tell: Tell) -> list[dict[str, Any]]:
        """Estimate every stage that is still missing, each by a recipe that asks for it."""
        costs: dict[str, Costs] = {}
        facts = None
        for preset in self.recipes():
            recipes, stages = take_apart(preset, self.overrides), self.stages(preset)
            if facts is None:
                place = self._site.folder(stages["corpus"])
                facts = corpus_size(recipes.corpus, place, self._sources.corpus)
            for stage in chain(
                *(self.stages(preset, seed).values() for seed in range(self.most_seeds()))
            ):
                costs.setdefault(stage.fingerprint, Costs(recipes, facts))
        rows = []
        for planned in plan(self._site, targets):
            rows += estimated(self._site, [planned], costs[planned.stage.fingerprint], tell)
        return rows

    def write(self, out: Path) -> None:
        """Write the table into its workspace; the pipeline also as a figure."""
        from micronet_lm.report.table_text import markdown

        make_folder(out)
        if self.table.name == "pipeline":
            write_text(out / "figures" / "pipeline.svg", stack_svg(self.stacks()))
        stem = out / "tables" / self.table.name
        write_text(stem.with_suffix(".md"), markdown(self))
        write_text(stem.with_suffix(".json"), json.dumps(self.as_json(), indent=1) + "\n")

    def recipes(self) -> list[str]:
        """Return the presets of the table's own numbers."""
        names = (row.recipe(column, self.scale) for row, column in self._cells() if column.measured)
        return list(dict.fromkeys(name for name in names if name))

    def cells(self, row: Row) -> dict[str, Cell]:
        """Return the cells of a row, by the keys of the columns."""
        return {
            column.key: Cell(
                printed=row.printed.get(column.key),
                computed=self._computed(row, column),
                measured=fmean(values) if (values := self._values(row, column)) else None,
                seeds=tuple(values) if self._seeds(row) > 1 else (),
            )
            for column in self.table.columns
        }

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        return {
            "table": self.table.name,
            "title": self.table.title,
            "source": self.table.source,
            "scale": self.scale,
            "columns": {column.key: column.title for column in self.table.columns},
            "rows": [
                {
                    "label": row.label,
                    "cells": {key: vars(cell) for key, cell in self.cells(row).items()},
                }
                for row in self.table.rows
            ],
        }

    def asks(self, row: Row, column: Column) -> bool:
        """Return whether a cell has a number of our own, known or not."""
        return self._asked(row, column) is not None

    def stacks(self) -> list[tuple[str, list[Layer]]]:
        """Return the rows of the pipeline figure with our own numbers, as two stacks."""
        keys = {"validation": "validation_perplexity"}
        stacks: list[tuple[str, list[Layer]]] = []
        for row in self.table.rows:
            if row.stack is not None:
                stacks.append((row.stack, []))
            values = {keys.get(k, k): cell.measured for k, cell in self.cells(row).items()}
            leads = row.stage in MODELS
            stacks[-1][1].append(Layer(label=row.label, kind=row.kind, values=values, leads=leads))
        return stacks

    def _cells(self) -> Iterator[tuple[Row, Column]]:
        for row in self.table.rows:
            for column in self.table.columns:
                yield row, column

    def _computed(self, row: Row, column: Column) -> float | None:
        preset = row.recipe(column, "paper")
        if preset is None or column.computed is None:
            return None
        return paper_count(preset, column.computed, row.stage)

    def most_seeds(self) -> int:
        """Return how many seeds the row with the most is measured with."""
        return max(self._seeds(row) for row in self.table.rows)

    def _seeds(self, row: Row) -> int:
        """Return how many seeds a row is measured with."""
        return row.seeds if self.scale == "wikitext-2" else 1

    def _values(self, row: Row, column: Column) -> list[float]:
        """Return a cell's numbers of all seeds that are measured."""
        found = (self._measured(row, column, seed) for seed in range(self._seeds(row)))
        return [value for value in found if value is not None]

    def _asked(self, row: Row, column: Column, seed: int = 0) -> tuple[Stage, str] | None:
        """Return the stage that has a cell's number, and the number's key there."""
        preset = row.recipe(column, self.scale)
        if preset is None or column.measured is None:
            return None
        *named, key = column.measured.split(".")
        name = "account" if named == ["account"] else row.stage or named[0]
        return self.stages(preset, seed)[name], key

    def stages(self, preset: str, seed: int = 0) -> dict[str, Stage]:
        """Return all stages of one of the table's recipes, with another seed than its own."""
        if (preset, seed) not in self._stages:
            own = {"train.seed": seed} if seed else {}
            recipes = take_apart(preset, {**own, **self.overrides})
            self._stages[preset, seed] = stages_of(recipes, self._sources)
        return self._stages[preset, seed]

    def _measured(self, row: Row, column: Column, seed: int = 0) -> float | None:
        asked = self._asked(row, column, seed)
        if asked is None:
            return None
        stage, key = asked
        if self._site.state(stage) not in (State.COMPLETE, State.GONE):
            return None
        if stage.name == "account":
            return self._accounted(stage, row.stage, key)
        record = self._site.record(stage)
        assert record is not None  # noqa: S101
        value = record.result.get(key, record.seconds if key == "seconds" else None)
        return None if value is None else float(value)

    def _accounted(self, stage: Stage, name: str | None, key: str) -> float | None:
        """Return a number of one stage's model in an account, by default of the last one."""
        record = self._site.record(stage)
        rows = record.result.get("models") if record else None
        if rows is None:  # made before the record had them
            return None
        models = [row for row in rows if row["stage"] in ((name,) if name else MODELS)]
        chosen = models[-1]
        dense = chosen["nonzeros"] > 0.99 * chosen["weights"] and chosen["bits"] == FULL
        if key == "storage" and dense:
            key = "parameters"  # there are no masks to count
        return float(chosen[key])
