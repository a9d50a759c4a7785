"""`micronet pack`: one small file of a run."""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from micronet_lm.cli.output import print_json
from micronet_lm.cli.packed import DEFAULT, add_engine, opened
from micronet_lm.cli.parsers import add_checkpoint, add_parser
from micronet_lm.errors import UsageError
from micronet_lm.progress import bar

_EXAMPLE = """examples:
  micronet pack runs/demo -o demo.safetensors
  micronet pack runs/demo -o demo.safetensors --name "Python's documentation" --measure test
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "pack",
        help="make one small file of a run, ready to run anywhere",
        description=(
            "Pack a run's model into one file: integers at their true width, zeros as a bit mask, "
            "the vocabulary, and a card that says what the model is and what it costs. "
            "docs/format.md describes the file."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument("target", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument(
        *("-o", "--out"),
        type=Path,
        default=DEFAULT,
        metavar="FILE",
        help="the file to write (default: %(default)s)",
    )
    add_checkpoint(parser)
    parser.add_argument("--name", help="the model's name on its card (default: the folder's)")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="where the corpus is now")
    parser.add_argument(
        "--measure",
        action="append",
        choices=["valid", "test"],
        default=[],
        help="measure the packed model's perplexity on this split for its card; may be repeated",
    )
    add_engine(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from micronet_lm.artifact.packing import pack_run

    if arguments.out.is_dir():
        raise UsageError(
            f"-o {arguments.out} is a folder; name a file, such as {arguments.out / DEFAULT.name}"
        )
    begin = time.perf_counter()
    given: dict[str, Any] = {
        "corpus": arguments.corpus,
        "checkpoint": arguments.checkpoint,
        "name": arguments.name,
    }
    measured = _measured(arguments, given) if arguments.measure else {}
    model = pack_run(arguments.target, arguments.out, **given, perplexities=measured)
    seconds = time.perf_counter() - begin
    size = arguments.out.stat().st_size
    accounting = model.card["accounting"]["challenge"]
    if arguments.json:
        report = {"file": str(arguments.out), "bytes": size, "seconds": seconds, "card": model.card}
        print_json(report)
        return 0
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"{arguments.out}: [bold]{size:,}[/bold] bytes; the model takes "
        f"{accounting['storage'] * 4:,.0f} of them, its {len(model.words):,} words and the card "
        "the rest"
    )
    for split, value in model.card["perplexity"].items():
        console.print(f"perplexity on {split}: {value:,.2f}")
    return 0


def _measured(arguments: argparse.Namespace, given: dict[str, Any]) -> dict[str, float]:
    """Measure the model in a file of its own: what is not measured never has the final name."""
    from micronet_lm.artifact.packing import corpus_of_run, pack_run
    from micronet_lm.runtime.evaluation import evaluate_engine

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / DEFAULT.name
        pack_run(arguments.target, file, **given)
        corpus = corpus_of_run(arguments.target, arguments.corpus)
        engine = opened(file, arguments.engine).engine
        for split in dict.fromkeys(arguments.measure):
            with bar(f"Evaluating {split}", total=None):
                found[split] = evaluate_engine(engine, corpus.split(split)).perplexity
    return found
