"""`micronet presets`: the recipes that ship with the package."""

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from micronet_lm.cli.output import print_report
from micronet_lm.cli.parsers import Arguments, Verbs, add_verb
from micronet_lm.config import dump_recipe, load_recipe, preset_family, preset_names, preset_summary

_EXAMPLE = """example:
  micronet presets
  micronet presets paper/student > my-student.yaml
  micronet presets paper/context-129

A name that ends in -... is a family: paper/context-65, paper/context-97 and so on.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "presets",
        _run,
        help="list the recipes that ship with the package, or print one",
        description="List the recipes that ship with the package, or print one in full.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("name", nargs="?", help="print this recipe, with all its defaults")


def _run(arguments: Arguments) -> int:
    if arguments.name:
        recipe = load_recipe(arguments.name)
        text = dump_recipe(recipe).rstrip("\n")
        return print_report(recipe.model_dump(mode="json"), [text], as_json=arguments.json)
    summaries = {name: preset_summary(name) for name in preset_names()}
    return print_report(summaries, _shown(summaries), as_json=arguments.json)


def _shown(names: Iterable[str]) -> Iterator[RenderableType]:
    table = Table(box=None, header_style="bold")
    table.add_column("preset", no_wrap=True)
    table.add_column("what it is")
    families: dict[str, list[str]] = {}
    for name in names:
        family, variant = preset_family(name)
        families.setdefault(family, []).extend([variant] if variant else [])
    for family, variants in families.items():
        name = f"{family}-..." if variants else family
        variant_list = f" One of: {', '.join(variants)}." if variants else ""
        table.add_row(Text(name), Text(preset_summary(family) + variant_list))
    yield table
