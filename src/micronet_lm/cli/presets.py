"""`micronet presets`: the recipes that ship with the package."""

import argparse
import json

from rich.console import Console
from rich.table import Table
from rich.text import Text

from micronet_lm.cli.output import print_json, print_text
from micronet_lm.cli.parsers import add_parser
from micronet_lm.config import dump_recipe, load_recipe, preset_family, preset_names, preset_summary

_EXAMPLE = """example:
  micronet presets
  micronet presets paper/student > my-student.yaml
  micronet presets paper/context-129

A name that ends in -... is a family: paper/context-65, paper/context-97 and so on.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "presets",
        help="list the recipes that ship with the package, or print one",
        description="List the recipes that ship with the package, or print one in full.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("name", nargs="?", help="print this recipe, with all its defaults")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.name:
        recipe = load_recipe(arguments.name)
        text = json.dumps(recipe.model_dump(mode="json")) if arguments.json else dump_recipe(recipe)
        print_text(text.rstrip("\n"))
        return 0
    summaries = {name: preset_summary(name) for name in preset_names()}
    if arguments.json:
        print_json(summaries)
        return 0
    table = Table(box=None, header_style="bold")
    table.add_column("preset", no_wrap=True)
    table.add_column("what it is")
    families: dict[str, list[str]] = {}
    for name in summaries:
        family, variant = preset_family(name)
        families.setdefault(family, []).extend([variant] if variant else [])
    for family, variants in families.items():
        name = f"{family}-..." if variants else family
        listed = f" One of: {', '.join(variants)}." if variants else ""
        table.add_row(Text(name), Text(preset_summary(family) + listed))
    Console().print(table)
    return 0
