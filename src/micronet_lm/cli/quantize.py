"""`micronet quantize`: a trained run becomes one of integers."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micronet_lm.cli.output import print_json, print_text
from micronet_lm.cli.parsers import Noted, add_parser, refuse_options
from micronet_lm.cli.runs import INTERRUPTED, Job, conclude
from micronet_lm.config import load_recipe, merge_recipe
from micronet_lm.errors import UsageError

if TYPE_CHECKING:
    from micronet_lm.compression.quantization.sweep import Measured
    from micronet_lm.compression.softlabels import SoftLabels
    from micronet_lm.training import Run

_EXAMPLE = """examples:
  micronet quantize runs/pruned/searched-3000 --bits 9 --out runs/integers
  micronet quantize runs/small --bits 4 --steps 200 --learned --out runs/four
  micronet quantize runs/small --bits 8 --steps 0 --out runs/calibrated
  micronet quantize runs/small --recipe paper/quantized-text --out runs/text
  micronet quantize runs/small --bits 9 --quantize.table_bits 6 --out runs/mixed
  micronet quantize runs/small --sweep 10,9,8,6,5,4,3 --methods calibrated,trained,learned \\
      --steps 200 --out runs/sweep
  micronet quantize --resume runs/four

--steps 0 calibrates and trains nothing; the paper takes one step. --learned learns the scales
too. --places code quantizes the activations that the authors' code does, text those of the paper's
text, none no activations; a list of places does what it says (docs/quantization.md draws them).
--recipe takes the section quantize of a preset or recipe. Any key can be set as --section.key
VALUE; --quantize.table_bits 6 gives the embedding tables a width of their own, 32 leaves them in
fp32. Masks of a pruned run, the cache's size and its parameters are kept. Training is in float32.

A sweep writes sweep.json and sweep.md with all points of its folder; points that are there already
are not done again. Its methods are calibrated and fitted (no training: largest magnitudes, least
squared error), trained and learned. --labels needs a section distill, and something that is
trained. Ctrl-C saves; the same command or --resume goes on.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "quantize",
        help="turn a trained model into integers",
        description=(
            "Quantize weights and activations to integers of 2 to 16 bits, by quantization-aware "
            "training or by calibration alone."
        ),
        epilog=_EXAMPLE,
        usage=(
            "micronet quantize [RUN] --out DIR [--bits B] [--steps N] [--places WHICH] [--learned] "
            "[--sweep B,B,...] [--json] [--section.key VALUE ...]"
        ),
    )
    parser.add_argument("target", type=Path, nargs="?", metavar="RUN", help="a trained run")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the quantized run")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="go on with this quantized run")
    parser.add_argument("--bits", type=int, metavar="B", help="width (quantize.bits, default: 9)")
    parser.add_argument(
        "--steps", type=int, metavar="N", help="training steps (quantize.steps, default: 1)"
    )
    parser.add_argument(
        "--places", metavar="WHICH", help="code, text, none, or places with commas (default: code)"
    )
    parser.add_argument("--learned", action="store_true", help="learn the scales (LSQ)")
    parser.add_argument("--recipe", metavar="NAME", help="whose section quantize is taken")
    parser.add_argument("--labels", type=Path, metavar="DIR", help="distil from these soft labels")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="where the corpus is now")
    parser.add_argument("--sweep", metavar="B,B,...", help="a table of these widths")
    parser.add_argument(
        "--methods",
        action=Noted,
        default="calibrated,trained",
        metavar="M,M,...",
        help="with --sweep: calibrated, fitted, trained, learned (default: %(default)s)",
    )
    parser.add_argument(
        "--tokens",
        action=Noted,
        type=int,
        default=4096,
        metavar="N",
        help="with --sweep: validation tokens that the divergence is measured on (default: 4096)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.set_defaults(run=_run, overrides={})


def _run(arguments: argparse.Namespace) -> int:
    if arguments.sweep is None:
        refuse_options(arguments, "is for a table of widths: --sweep", "--methods", "--tokens")
    if arguments.resume is not None:
        if arguments.target or arguments.out or arguments.sweep:
            raise UsageError("--resume DIR takes everything from the run; leave out RUN and --out")
        _refuse(
            arguments,
            ("bits", "steps", "places", "learned", "recipe"),
            "--resume DIR takes what is quantized and how from the run",
            "--train.steps N changes how long it is trained",
        )
        return _go_on(arguments)
    if not (arguments.target and arguments.out):
        raise UsageError("say what to quantize and where: micronet quantize RUN --out DIR")
    changes = _changes(arguments)
    if arguments.sweep is not None:
        return _sweep(arguments, changes)

    from micronet_lm.compression.quantization.run import quantize, quantized_recipe
    from micronet_lm.training import Run

    source, run = Run.open(arguments.target), Run(arguments.out)
    corpus = source.corpus(arguments.corpus)
    labels = _labels(arguments.labels)
    recipe = quantized_recipe(source.recipe(), changes, distilled=labels is not None)
    outcome = quantize(run, recipe, corpus, source=source, labels=labels)
    if outcome.step == 0 and outcome.finished:
        return _conclude_calibration(run, outcome.best_loss, as_json=arguments.json)
    return conclude(Job(run, recipe, corpus), outcome, as_json=arguments.json)


def _changes(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the command line says about the recipe, the later over the earlier."""
    changes: dict[str, Any] = {}
    if arguments.recipe is not None:
        config = load_recipe(arguments.recipe).quantize
        if config is None:
            raise UsageError(f"--recipe {arguments.recipe} has no section quantize")
        changes |= {f"quantize.{k}": v for k, v in config.model_dump(mode="json").items()}
    if arguments.bits is not None:
        changes["quantize.bits"] = arguments.bits
    if arguments.steps is not None:
        changes["quantize.steps"] = arguments.steps
    if arguments.places is not None:
        names = arguments.places.split(",")
        changes["quantize.places"] = names if len(names) > 1 else names[0]
    if arguments.learned:
        changes["quantize.learned"] = True
    return {**changes, **arguments.overrides}


def _go_on(arguments: argparse.Namespace) -> int:
    from micronet_lm.compression.quantization.run import quantize
    from micronet_lm.training import Run

    run = Run.open(arguments.resume)
    run.check_trainable()
    recipe = merge_recipe(run.recipe(), arguments.overrides)
    corpus = run.corpus(arguments.corpus)
    labels = _labels(arguments.labels or (run.input("labels").path if recipe.distill else None))
    outcome = quantize(run, recipe, corpus, labels=labels, amend=True)
    return conclude(Job(run, recipe, corpus), outcome, as_json=arguments.json)


def _sweep(arguments: argparse.Namespace, changes: dict[str, Any]) -> int:
    from micronet_lm.compression.quantization.sweep import METHODS, Menu, as_json, sweep, table
    from micronet_lm.training import Run

    try:
        widths = [int(bits) for bits in arguments.sweep.split(",")]
    except ValueError:
        raise UsageError(
            f"--sweep {arguments.sweep} must be widths with commas, such as 10,9,8,6,5,4,3"
        ) from None
    methods = arguments.methods.split(",")
    if unknown := [method for method in methods if method not in METHODS]:
        raise UsageError(f"--methods has no {unknown[0]}; it knows {', '.join(METHODS)}")
    if arguments.tokens < 1:
        raise UsageError(f"--tokens {arguments.tokens} must be at least 1 token")
    why = "--sweep names the widths, and --methods says whether scales are learned"
    _refuse(arguments, ("bits", "learned", "quantize.bits", "quantize.learned"), why)
    source = Run.open(arguments.target)
    corpus = source.corpus(arguments.corpus)
    menu = Menu(bits=widths, methods=methods, tokens=arguments.tokens, changes=changes)
    swept = sweep(arguments.out, source, corpus, menu, labels=_labels(arguments.labels), tell=_tell)
    if not swept.finished:
        return INTERRUPTED
    if arguments.json:
        print_json(as_json(source, menu, swept.points))
    else:
        print_text(table(menu, swept.points), end="")
    return 0


def _refuse(
    arguments: argparse.Namespace, options: Sequence[str], why: str, instead: str = ""
) -> None:
    """Refuse options that would be ignored; those with a point are keys of the recipe."""
    for option in options:
        value = getattr(arguments, option, None)
        if option in arguments.overrides or (value is not None and value is not False):
            rest = f"; {instead}" if instead else ""
            raise UsageError(f"{why}; leave out --{option}{rest}")


def _tell(point: "Measured") -> None:
    sys.stderr.write(
        f"{point.method}, {point.bits} bits: perplexity {point.perplexity:,.2f}, "
        f"divergence {point.divergence:.5f}, storage {point.storage:,.0f} "
        f"({point.seconds:.0f} s)\n"
    )


def _labels(path: Path | None) -> "SoftLabels | None":
    if path is None:
        return None
    from micronet_lm.compression import SoftLabels

    return SoftLabels.open(path)


def _conclude_calibration(run: "Run", loss: float, *, as_json: bool) -> int:
    from micronet_lm.training import perplexity

    if as_json:
        report = {"run": str(run.path), "steps": 0, "validation_perplexity": perplexity(loss)}
        print_json(report)
    else:
        print_text(
            f"Calibrated. Validation perplexity {perplexity(loss):,.2f}.\n"
            f"Next: micronet evaluate {run.path} --split test"
        )
    return 0
