"""`micronet account`: what a model costs, exactly."""

import argparse
from collections.abc import Mapping
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

from micronet_lm.accounting import Account, Plan, Target, carry_out, choose_rules, count
from micronet_lm.accounting.figure import check_form, plot
from micronet_lm.accounting.summary import as_json, formulas_as_json, number
from micronet_lm.artifact.counted_target import (
    check_run_keys,
    packed_target,
    recipe_targets,
    run_target,
)
from micronet_lm.cli import parsers
from micronet_lm.cli.account_tables import account_shown, formulas_shown, stages_shown
from micronet_lm.cli.output import print_report
from micronet_lm.cli.packed import pipeline_file
from micronet_lm.cli.parsers import Arguments, Parser, Verbs
from micronet_lm.config import FULL, PLACEMENTS, merge_recipe, preset_names
from micronet_lm.errors import UsageError, nearest
from micronet_lm.runs import check_run, run_recipe

_EXAMPLE = """examples:
  micronet account paper/student --cache.size 2000
  micronet account paper/student --cache.size 3000 --density 0.642 --bits 9 --rules challenge
  micronet account paper/micronet --quantize.bits 8 --stages
  micronet account runs/train/demo --rules challenge --freebie --json
  micronet account model.safetensors --rules challenge
  micronet account paper/student --model.context 129 --plot where.png
  micronet account --formulas

TARGET is a preset or a .yaml recipe (counted as the model that it ends with, pruned, searched and
quantized as its sections say; any key can be set as --section.key VALUE), the folder of a training
run (its non-zeros are counted in the checkpoint; --cache.size may be set; write ./demo for a folder
with a preset's name), a packed file (counted as stored), or the folder of a pipeline (its packed
file). --density, --bits, --activations, --embeddings and --scales plan for what is not pruned or
quantized yet.
docs/counting.md explains every rule.
"""


_PLANNED = ("--density", "--bits", "--activations", "--embeddings", "--scales")
"""Options that count a model as if it were pruned or quantized."""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = parsers.add_verb(
        verbs,
        "account",
        _run,
        help="count a model's parameters, operations and score",
        description=(
            "Count a model's storage and its operations per token, by the rules of the paper's "
            "authors or by those of the MicroNet challenge, part by part."
        ),
        epilog=_EXAMPLE,
        usage="micronet account TARGET [options] [--section.key VALUE ...]",
        keys=True,
    )
    parser.add_argument("target", nargs="?", metavar="TARGET", help="a preset, recipe, run or file")
    _add_rules(parser)
    _add_compression(parser)
    parsers.add_corpus(parser, "corpus whose test split tells how many tokens fall into each bin")
    parser.add_argument(
        "--shares",
        type=parsers.listed(parsers.whole(0)),
        metavar="N,N,...",
        help="test tokens in each bin, instead of a corpus, like 198232,35479,11858",
    )
    parsers.add_checkpoint(parser)
    parser.add_argument("--details", action="store_true", help="print a line for each operation")
    parser.add_argument(
        "--stages",
        action="store_true",
        help="of a recipe: print a line for the model after each stage",
    )
    parsers.add_folder(parser, "--plot", "draw where it all goes", metavar="FILE.png")
    parser.add_argument("--formulas", action="store_true", help="print the formulas")


def _add_rules(parser: Parser) -> None:
    parsers.add_choice(
        parser,
        "--rules",
        ["paper", "challenge"],
        "count as the authors' code does, or as the challenge's text has it and name every "
        "difference",
    )
    parsers.add_choice(
        parser,
        "--adds",
        ["fp32", "tree"],
        "rules challenge: all adds as 32-bit, or sums of integers by the widths of an adder tree",
    )
    parser.add_argument(
        "--freebie",
        action="store_true",
        help="rules challenge: the 16-bit allowance of models that are not quantized",
    )


def _add_compression(parser: Parser) -> None:
    parser.add_argument(
        "--density",
        type=_fraction,
        metavar="X",
        help="share of non-zeros in every matrix but position tables (default: as they are)",
    )
    parser.add_argument(
        "--bits", type=int, metavar="B", help="quantize to B bits (default: do not)"
    )
    parsers.add_choice(
        parser,
        "--activations",
        list(PLACEMENTS),
        "with --bits: quantize the activations that the authors' code does, those of the paper's "
        "text, or none",
        default="code",
    )
    tables, scales = ["quantized", "full"], ["tensor", "row"]
    parsers.add_choice(parser, "--embeddings", tables, "with --bits: the embedding tables")
    parsers.add_choice(parser, "--scales", scales, "with --bits: one scale per matrix or per row")


def _fraction(word: str) -> Fraction:
    try:
        if len(word) > 40 or abs(int([*word.lower().split("e"), "0"][1])) > 400:
            raise ValueError  # 1e-999999999 would be computed to its last digit
        return Fraction(word)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"must be a share like 0.642, got {word!r}") from None


def _run(arguments: Arguments) -> int:
    formulas = {"formulas": formulas_as_json()} if arguments.formulas else {}
    shown = formulas_shown() if arguments.formulas else iter(())
    if arguments.target is None:
        if not arguments.formulas:
            raise UsageError("give what to count: micronet account TARGET")
        return print_report(formulas, shown, as_json=arguments.json)
    rules = choose_rules(arguments.rules, adds=arguments.adds, freebie=arguments.freebie)
    if arguments.plot:
        check_form(arguments.plot)
    targets = _targets(arguments)
    target = list(targets.values())[-1]
    if arguments.bits is None:
        parsers.refuse(
            arguments, "is about quantization: give the number of --bits too", *_PLANNED[2:]
        )
    plan = Plan(
        density=arguments.density,
        bits=FULL if arguments.bits is None else arguments.bits,
        activations=arguments.activations,
        embeddings=arguments.embeddings != "full",
        scale_a_row=arguments.scales == "row",
    )
    account = count(carry_out(plan, target), rules)
    by_stage: dict[str, Any] = {}
    if arguments.stages:
        stages = {stage: count(own, rules) for stage, own in targets.items()}
        by_stage = _stages(stages)
        shown = chain(stages_shown(arguments.target, stages), shown)
    if arguments.plot:
        plot(account, arguments.plot)
    return print_report(
        {**as_json(account), **formulas, **by_stage},
        chain(account_shown(account, details=arguments.details), shown),
        as_json=arguments.json,
    )


def _stages(stages: Mapping[str, Account]) -> dict[str, Any]:
    """Return what the model costs after each stage as plain values."""
    return {
        "stages": [
            {
                "stage": stage,
                "parameters": own.target.parameters,
                "storage": number(own.storage),
                "operations": number(own.operations),
                "score": float(own.score),
            }
            for stage, own in stages.items()
        ]
    }


def _targets(arguments: Arguments) -> dict[str, Target]:
    """Describe what the command line names; a recipe's models by stage, the final one last."""
    name, path = arguments.target, Path(arguments.target)
    if name in preset_names() or (path.suffix in {".yaml", ".yml"} and not path.is_dir()):
        parsers.refuse(arguments, "is for the folder of a run", "--checkpoint")
        own = arguments.overrides, arguments.corpus, arguments.shares
        targets = recipe_targets(name, *own)
        for stage, section, options in (
            ("prune", "prune.sparsity", _PLANNED[:1]),
            ("quantize", "quantize.bits", _PLANNED[1:]),
        ):
            if stage in targets:
                parsers.refuse(
                    arguments,
                    f"is a plan, but {name} has a section {stage}, which is counted; leave it out, "
                    f"or set --{section}",
                    *options,
                )
        return targets
    parsers.refuse(arguments, "is for recipes, which have stages", "--stages")
    return {"model": _target(arguments)}


def _target(arguments: Arguments) -> Target:
    """Describe a run or a packed file."""
    name = arguments.target
    path = pipeline_file(Path(name))
    corpus, shares, overrides = arguments.corpus, arguments.shares, arguments.overrides
    if path.is_dir():
        check_run(path)
        check_run_keys(overrides)
        recipe = merge_recipe(run_recipe(path), overrides)
        if recipe.quantize is not None:
            _refuse_plan(arguments, f"{path} is a quantized run")
        return run_target(path, recipe, corpus, shares, checkpoint=arguments.checkpoint)
    parsers.refuse(arguments, "is for the folder of a run", "--checkpoint")
    if path.is_file() or path.suffix == ".safetensors":
        _refuse_plan(arguments, f"{path} is a packed file")
        keys = (f"--{key}" for key in overrides)
        parsers.refuse(arguments, "cannot be set for a packed file: it is counted as stored", *keys)
        return packed_target(path, corpus, shares)
    raise UsageError(
        f"'{name}' is neither a preset{nearest(name, preset_names())} nor a .yaml recipe nor the "
        "folder of a run nor a packed file; 'micronet presets' lists the presets"
    )


def _refuse_plan(arguments: Arguments, what: str) -> None:
    """Refuse to plan for a finished model: the plan would replace what it really holds."""
    parsers.refuse(
        arguments,
        f"plans a compression, but {what}, which is counted as stored: leave it out, or count the "
        "recipe or run that it was made from",
        *_PLANNED,
    )
