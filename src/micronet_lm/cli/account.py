"""`micronet account`: what a model costs, exactly."""

import argparse
import difflib
from fractions import Fraction
from pathlib import Path

from micronet_lm.accounting import Plan, Target, carry_out, choose_rules, count, describe, examine
from micronet_lm.accounting.figure import check_form, plot
from micronet_lm.accounting.recipe_target import known_shares
from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.accounting.summary import as_json, formulas_as_json
from micronet_lm.artifact import read_packed
from micronet_lm.artifact.card import card_shares
from micronet_lm.artifact.packed_target import target_of
from micronet_lm.artifact.packing import corpus_of_run
from micronet_lm.cli.account_tables import print_account, print_formulas
from micronet_lm.cli.output import print_json
from micronet_lm.cli.parsers import Noted, add_parser, refuse_options
from micronet_lm.config import FULL, PLACEMENTS, Recipe, load_recipe, merge_recipe, preset_names
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError, CorpusError, UsageError
from micronet_lm.runs import check_run, run_recipe

_EXAMPLE = """examples:
  micronet account paper/student --cache.size 2000
  micronet account paper/student --cache.size 3000 --density 0.642 --bits 9 --rules challenge
  micronet account runs/demo --rules challenge --freebie --json
  micronet account model.safetensors --rules challenge
  micronet account paper/student --model.context 129 --plot where.png
  micronet account --formulas

TARGET is a preset or a .yaml recipe (counted from its shape; any key can be set as --section.key
VALUE), the folder of a training run (its non-zeros are counted in the checkpoint; --cache.size
may be set; write ./demo for a folder with a preset's name), or a packed file (as it is). --density,
--bits, --activations, --embeddings and --scales plan for what is not quantized yet.
docs/counting.md explains every rule.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "account",
        help="count a model's parameters, operations and score",
        description=(
            "Count what a model stores and what a token costs, by the rules of the paper's "
            "authors or by those of the MicroNet challenge, part by part."
        ),
        epilog=_EXAMPLE,
        usage="micronet account TARGET [options] [--section.key VALUE ...]",
    )
    parser.add_argument("target", nargs="?", metavar="TARGET", help="a preset, recipe, run or file")
    _add_rules(parser)
    _add_compression(parser)
    parser.add_argument(
        "--corpus", type=Path, metavar="DIR", help="whose test split tells the bins' shares"
    )
    parser.add_argument(
        "--shares", metavar="N,N,...", help="test tokens in each bin, instead of a corpus"
    )
    parser.add_argument(
        "--checkpoint",
        action=Noted,
        choices=["best", "last"],
        default="best",
        help="which of a run's checkpoints (default: %(default)s)",
    )
    parser.add_argument("--details", action="store_true", help="a line for each operation")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw where it all goes")
    parser.add_argument("--formulas", action="store_true", help="print the formulas")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run, overrides={})


def _add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rules",
        choices=["paper", "challenge"],
        default="paper",
        help="count as the authors' code does, or as the challenge's text has it; the latter "
        "names every difference (default: %(default)s)",
    )
    parser.add_argument(
        "--adds",
        choices=["fp32", "tree"],
        default="fp32",
        help="rules challenge: all adds as 32-bit, or sums of integers by the widths of an adder "
        "tree (default: %(default)s)",
    )
    parser.add_argument(
        "--freebie",
        action="store_true",
        help="rules challenge: the 16-bit allowance of models that are not quantized",
    )


def _add_compression(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--density",
        metavar="X",
        help="share of non-zeros in every prunable matrix (default: as they are)",
    )
    parser.add_argument(
        "--bits", type=int, metavar="B", help="quantize to B bits (default: do not)"
    )
    parser.add_argument(
        "--activations",
        choices=list(PLACEMENTS),
        help="with --bits: quantize the activations that the authors' code does, those of the "
        "paper's text, or none (default: code)",
    )
    parser.add_argument(
        "--embeddings",
        choices=["quantized", "full"],
        help="with --bits: whether the embedding tables are quantized (default: quantized)",
    )
    parser.add_argument(
        "--scales",
        choices=["tensor", "row"],
        help="with --bits: one scale a matrix or a row (default: tensor)",
    )


def _run(arguments: argparse.Namespace) -> int:
    if arguments.target is None:
        if not arguments.formulas:
            raise UsageError("say what to count: micronet account TARGET")
        if arguments.json:
            print_json({"formulas": formulas_as_json()})
        else:
            print_formulas()
        return 0
    rules = choose_rules(arguments.rules, adds=arguments.adds, freebie=arguments.freebie)
    if arguments.plot:
        check_form(arguments.plot)
    target = _target(arguments)
    account = count(carry_out(_plan(arguments), target), rules)
    if arguments.plot:
        plot(account, arguments.plot)
    if arguments.json:
        more = {"formulas": formulas_as_json()} if arguments.formulas else {}
        print_json({**as_json(account), **more})
        return 0
    print_account(account, details=arguments.details)
    if arguments.formulas:
        print_formulas()
    return 0


def _plan(arguments: argparse.Namespace) -> Plan:
    density = None
    if arguments.density is not None:
        try:
            density = Fraction(arguments.density)
        except (ValueError, ZeroDivisionError):
            raise UsageError(
                f"--density {arguments.density} is not a number; give a share like 0.642"
            ) from None
    for option in ("activations", "embeddings", "scales"):
        if arguments.bits is None and getattr(arguments, option) is not None:
            raise UsageError(f"--{option} says how to quantize; say also to how many --bits")
    return Plan(
        density=density,
        bits=FULL if arguments.bits is None else arguments.bits,
        activations=arguments.activations or "code",
        embeddings=arguments.embeddings != "full",
        scale_a_row=arguments.scales == "row",
    )


def _refuse_plan(arguments: argparse.Namespace, what: str) -> None:
    """Refuse to plan for a finished model: the plan would replace what it really holds."""
    for option in ("density", "bits", "activations", "embeddings", "scales"):
        if getattr(arguments, option) is not None:
            raise UsageError(
                f"--{option} {getattr(arguments, option)} is a plan, but {what}, which is counted "
                f"as it is; leave out --{option}, or count the recipe or run that it was made from"
            )


def _target(arguments: argparse.Namespace) -> Target:
    """Describe what the command line names: a preset, a recipe or a run."""
    name, path = arguments.target, Path(arguments.target)
    if not path.is_dir():
        refuse_options(arguments, "is for the folder of a run", "--checkpoint")
    if name in preset_names() or (path.suffix in {".yaml", ".yml"} and not path.is_dir()):
        return _recipe_target(arguments, load_recipe(name, arguments.overrides))
    if path.is_file() or (path.suffix == ".safetensors" and not path.is_dir()):
        _refuse_plan(arguments, f"{path} is a packed file")
        return _packed_target(arguments, path)
    if path.is_dir():
        check_run(path)
        return _run_target(arguments, path)
    near = difflib.get_close_matches(name, preset_names(), n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    raise UsageError(
        f"'{name}' is neither a preset{hint} nor a .yaml recipe nor the folder of a run nor a "
        "packed file; 'micronet presets' lists the presets"
    )


def _recipe_target(arguments: argparse.Namespace, recipe: Recipe) -> Target:
    name, shares = arguments.target, _given_shares(arguments)
    if arguments.corpus is None:
        return describe(recipe, name, shares)
    corpus = Corpus.open(arguments.corpus)
    size, wanted = len(corpus.vocabulary), recipe.model.vocabulary
    if wanted is not None and wanted != size:
        raise ConfigError(
            f"model.vocabulary is {wanted:,} but {corpus.path} has {size:,} words; "
            "name the corpus that the recipe is made for, or leave --corpus out"
        )
    recipe = merge_recipe(recipe, {"model.vocabulary": size})
    if shares:
        return describe(recipe, name, shares)
    return describe(
        recipe, name, counted_shares(corpus.split("test"), recipe.model), _origin(corpus)
    )


def _run_target(arguments: argparse.Namespace, path: Path) -> Target:
    for key in arguments.overrides:
        if not key.startswith("cache."):
            raise UsageError(
                f"--{key} cannot be set for a run: its shape is that of its checkpoint; "
                "only --cache.size can, or count the run's recipe"
            )
    recipe = merge_recipe(run_recipe(path), arguments.overrides)
    if recipe.quantize is not None:
        _refuse_plan(arguments, f"{path} is a quantized run")
    shares, origin = _given_shares(arguments), "given"
    if shares is None:
        corpus = corpus_of_run(path, arguments.corpus)
        shares, origin = counted_shares(corpus.split("test"), recipe.model), _origin(corpus)
    return examine(path, recipe, shares, shares_from=origin, checkpoint=arguments.checkpoint)


def _packed_target(arguments: argparse.Namespace, path: Path) -> Target:
    if arguments.overrides:
        key = next(iter(arguments.overrides))
        raise UsageError(f"--{key} cannot be set for a packed file: it is counted as it is")
    model = read_packed(path)
    shares, origin = _given_shares(arguments), "given"
    if shares is None and arguments.corpus is not None:
        corpus = Corpus.open(arguments.corpus)
        if tuple(model.words) != corpus.vocabulary.words:
            raise CorpusError(
                f"{corpus.path} has another vocabulary than {path}; name the corpus that the model "
                "was made with, or give --shares"
            )
        shares, origin = counted_shares(corpus.split("test"), model.shape), _origin(corpus)
    elif shares is None:
        shares, origin = card_shares(model.card, model.shape), "the card"
    if shares is None:
        shares, origin = known_shares(model.shape)
    return target_of(model, str(path), shares, shares_from=origin)


def _origin(corpus: Corpus) -> str:
    return f"the test split of {corpus.path}"


def _given_shares(arguments: argparse.Namespace) -> tuple[int, ...] | None:
    if arguments.shares is None:
        return None
    try:
        return tuple(int(number) for number in arguments.shares.split(","))
    except ValueError:
        raise UsageError(
            f"--shares {arguments.shares} are not numbers; give the test tokens of each bin, like "
            "198232,35479,11858"
        ) from None
