"""`micronet quantize`: make a run of integers from a trained one."""

from typing import TYPE_CHECKING, Any

from micronet_lm.cli import parsers, runs
from micronet_lm.cli.output import print_report, tell
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.config import load_recipe
from micronet_lm.errors import UsageError

if TYPE_CHECKING:
    from micronet_lm.compression.quantization.sweep import Measured

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

A sweep writes sweep.json and sweep.md with all points of its folder; points that it already has
are not measured again. Its methods are calibrated and fitted (no training: largest magnitudes,
least squared error), trained and learned. --labels needs a section distill, and something that is
trained. Ctrl-C saves; the same command or --resume resumes.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = parsers.add_verb(
        verbs,
        "quantize",
        _run,
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
        keys=True,
    )
    runs.add_derived(parser, "quantized")
    parser.add_argument("--bits", type=int, metavar="B", help="width (quantize.bits, default: 9)")
    parser.add_argument(
        "--steps", type=int, metavar="N", help="training steps (quantize.steps, default: 1)"
    )
    parser.add_argument(
        "--places", metavar="WHICH", help="code, text, none, or places with commas (default: code)"
    )
    parser.add_argument("--learned", action="store_true", help="learn the scales (LSQ)")
    parser.add_argument("--recipe", metavar="NAME", help="take this recipe's section quantize")
    parser.add_argument(
        "--sweep",
        type=parsers.listed(parsers.whole(1)),
        metavar="B,B,...",
        help="measure a table of these widths",
    )
    parser.add_argument(
        "--methods",
        type=parsers.listed(str),
        default="calibrated,trained",
        metavar="M,M,...",
        help="with --sweep: calibrated, fitted, trained, learned (default: %(default)s)",
    )
    parsers.add_number(
        parser,
        "--tokens",
        type=parsers.whole(1),
        default=4096,
        help="with --sweep: validation tokens on which the divergence is measured",
    )


@runs.in_each_process
def _run(arguments: Arguments) -> int:
    if arguments.sweep is None:
        parsers.refuse(arguments, "is for a table of widths: --sweep", "--methods", "--tokens")
    runs.check_place(arguments, "quantize", arguments.target, "micronet quantize RUN --out DIR")

    from micronet_lm.compression.quantization.run import quantize, quantized_recipe
    from micronet_lm.training import Run, perplexity

    if arguments.resume is not None:
        parsers.refuse(arguments, "measures new runs; omit --resume", "--sweep")
        parsers.refuse(
            arguments,
            "is for a new run: --resume takes what is quantized and how from the run; omit it, or "
            "change how long the run is trained with --train.steps N",
            *("--bits", "--steps", "--places", "--learned", "--recipe"),
        )
        job = runs.resumed_job(arguments)
        outcome = quantize(job.run, job.recipe, job.corpus, labels=job.labels, amend=True)
        return runs.finish_training(job, outcome, as_json=arguments.json)
    if arguments.sweep is not None:
        return _sweep(arguments)
    source, run = Run.open(arguments.target), Run(arguments.out)
    corpus, labels = source.corpus(arguments.corpus), runs.open_labels(arguments.labels)
    recipe = quantized_recipe(source.recipe(), _changes(arguments), distilled=labels is not None)
    outcome = quantize(run, recipe, corpus, source=source, labels=labels)
    if outcome.step == 0 and outcome.finished:
        found = perplexity(outcome.best_loss)
        report = {"steps": 0, "validation_perplexity": found}
        sentence = f"Calibrated. Validation perplexity {found:,.2f}."
        return runs.finish_run(run, report, [sentence], as_json=arguments.json)
    return runs.finish_training(runs.Job(run, recipe, corpus), outcome, as_json=arguments.json)


def _changes(arguments: Arguments) -> dict[str, Any]:
    """Return the changes of the recipe that the command line asks for, the strongest last."""
    changes: dict[str, Any] = {}
    if arguments.recipe is not None:
        config = load_recipe(arguments.recipe).quantize
        if config is None:
            raise UsageError(f"--recipe {arguments.recipe} has no section quantize; choose another")
        changes |= {f"quantize.{k}": v for k, v in config.model_dump(mode="json").items()}
    places = arguments.places.split(",") if arguments.places is not None else []
    named = {
        "quantize.bits": arguments.bits,
        "quantize.steps": arguments.steps,
        "quantize.places": places[0] if len(places) == 1 else places or None,
        "quantize.learned": arguments.learned or None,
    }
    changes |= {key: value for key, value in named.items() if value is not None}
    return {**changes, **arguments.overrides}


def _sweep(arguments: Arguments) -> int:
    from micronet_lm.compression.quantization.sweep import METHODS, Menu, as_json, sweep, table
    from micronet_lm.training import Run

    methods = list(arguments.methods)
    if unknown := [method for method in methods if method not in METHODS]:
        raise UsageError(f"--methods must be some of {', '.join(METHODS)}, got {unknown[0]}")
    parsers.refuse(
        arguments,
        "is for one run: --sweep names the widths, and --methods whether scales are learned; "
        "leave it out",
        *("--bits", "--learned", "--quantize.bits", "--quantize.learned"),
    )
    source, widths, changes = Run.open(arguments.target), list(arguments.sweep), _changes(arguments)
    corpus, labels = source.corpus(arguments.corpus), runs.open_labels(arguments.labels)
    menu = Menu(bits=widths, methods=methods, tokens=arguments.tokens, changes=changes)
    swept = sweep(arguments.out, source, corpus, menu, labels=labels, tell=_tell)
    if not swept.finished:
        return runs.INTERRUPTED
    shown = table(menu, swept.points).removesuffix("\n")
    return print_report(as_json(source, menu, swept.points), [shown], as_json=arguments.json)


def _tell(point: "Measured") -> None:
    tell(
        f"{point.method}, {point.bits} bits: perplexity {point.perplexity:,.2f}, "
        f"divergence {point.divergence:.5f}, storage {point.storage:,.0f} ({point.seconds:.0f} s)"
    )
