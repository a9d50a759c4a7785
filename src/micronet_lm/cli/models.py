"""`micronet models`: the packed models that ship with the package."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from micronet_lm.artifact.reader import read_card
from micronet_lm.cli.output import make_table, print_report, size
from micronet_lm.cli.parsers import Arguments, Verbs, add_verb
from micronet_lm.corpus.licences import licence_of
from micronet_lm.runtime.places import shipped_model, shipped_models

_EXAMPLE = """examples:
  micronet models
  micronet predict -m wikitext-2 "The history of"
  micronet inspect demo

Python opens them by name, too: micronet_lm.load("wikitext-2"). Perplexities are per token of each
model's own test split, so those of different texts cannot be compared. The licence is that of the
text that a model learned from.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    add_verb(
        verbs,
        "models",
        _run,
        help="list the models that ship with the package",
        description="List the models that ship with the package.",
        epilog=_EXAMPLE,
    )


def _run(arguments: Arguments) -> int:
    models = {name: _summary(name) for name in shipped_models()}
    return print_report(models, _shown(models), as_json=arguments.json)


def _summary(name: str) -> dict[str, Any]:
    """Return what is told of a model that ships."""
    path = shipped_model(name)
    card = read_card(path)
    corpus = card["corpus"]
    return {
        "bytes": path.stat().st_size,
        "words": corpus["words"],
        "text": corpus["source"],
        "tokenizer": corpus["tokenizer"],
        "licence": licence_of(corpus["source"]),
        "perplexity": card["perplexity"],
        "made_by": card["made_by"],
    }


def _shown(models: Mapping[str, Mapping[str, Any]]) -> Iterator[RenderableType]:
    table = make_table("model", "size", "words", "test perplexity", "text", "licence", "made by")
    for name, model in models.items():
        test = model["perplexity"].get("test")
        table.add_row(
            Text(name),
            size(model["bytes"]),
            f"{model['words']:,}",
            "" if test is None else f"{test:.2f}",
            model["text"],
            model["licence"] or "",
            model["made_by"],
        )
    yield table
