"""The recipe of `micronet run TEXT`: chosen once, then kept in the pipeline's folder."""

import glob
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from micronet_lm.cli.output import tell
from micronet_lm.cli.parsers import Arguments
from micronet_lm.config import dump_recipe, load_recipe, preset_names
from micronet_lm.corpus.manifest import is_corpus
from micronet_lm.corpus.textfiles import expanded, left_out
from micronet_lm.errors import PipelineError, UsageError
from micronet_lm.files import check_folder, write_text
from micronet_lm.runs import is_run
from micronet_lm.runs.files import STAGES

if TYPE_CHECKING:
    from micronet_lm.config import Recipe
    from micronet_lm.pipeline import Recipes
    from micronet_lm.pipeline.speed import Speed

CHOSEN = "own-text.yaml"
"""The chosen recipe, in the pipeline's folder."""


def is_text(name: str) -> bool:
    """Return whether a word names text instead of a preset or the file of a recipe."""
    if name in preset_names() or f"{name}/micronet" in preset_names():
        return False
    if Path(name).suffix in (".yaml", ".yml"):
        return False
    return expanded(name).exists() or glob.has_magic(name)


def own_folder(arguments: Arguments) -> Path:
    """Return the pipeline's folder; refuse what is not text, and a folder inside the text."""
    text, path = arguments.recipe, expanded(arguments.recipe)
    if is_run(path) or (path / STAGES).is_dir() or is_corpus(path):
        raise UsageError(
            f"{text} is a run, a pipeline or a corpus, not text; a corpus is for a recipe: "
            f"micronet run RECIPE --corpus {text}"
        )
    if arguments.out is None and glob.has_magic(text):
        raise UsageError(f"give a folder for the model of {text}: --out mine")
    root: Path = arguments.out or Path("runs") / path.resolve().name
    if path.is_dir() and root.resolve().is_relative_to(path.resolve()):
        raise UsageError(f"{root} is inside the text {text}; choose another --out")
    return root


def own_recipes(arguments: Arguments, root: Path) -> "Recipes":
    """Return the recipes for the text that the command line names; choose them the first time."""
    from micronet_lm.pipeline import take_apart

    text, file = arguments.recipe, root / CHOSEN
    for option, given in (("--corpus", arguments.corpus), ("--from", arguments.from_path)):
        if given is not None:
            raise UsageError(f"{option} is for recipes; {text} is the text itself")
    check_folder(root)
    with TemporaryDirectory() as temporary:
        if file.is_file():
            kept = load_recipe(str(file)).corpus.source
            if kept != text:
                raise PipelineError(
                    f"{root} holds a model of {kept}, not of {text}; choose another --out"
                )
            again = "; remove it to choose again" if "--minutes" in arguments.given else ""
            tell(f"The recipe is {file}, as it was chosen before{again}.")
        else:
            if arguments.dry_run:  # writes nothing
                file = Path(temporary) / CHOSEN
            _choose(text, file, arguments.minutes)
        recipes = take_apart(str(file), arguments.overrides)
    name = root.resolve().name
    return replace(recipes, name=name, asked=f"{text} --out {name}")


def check_not_own(recipe: str, root: Path) -> None:
    """Refuse to make another recipe's model in the folder of a model of somebody's own text."""
    file = root / CHOSEN
    if file.is_file() and Path(recipe).resolve() != file.resolve():
        kept = load_recipe(str(file)).corpus.source
        raise PipelineError(
            f"{root} holds a model of {kept}, not of the recipe {recipe}; choose another --out"
        )


def tell_left_out(text: str) -> None:
    """Say how many files of a folder of text are not read, if any."""
    if sentence := left_out(text):
        tell(f"{sentence}.")


def _choose(text: str, file: Path, minutes: float) -> None:
    """Choose a recipe for a text, print the reasons, and write it."""
    tell(f"Reading {text}.")  # before torch is imported: that takes seconds
    tell_left_out(text)
    from micronet_lm.config import merge_recipe
    from micronet_lm.pipeline.own_text import choose, read_facts
    from micronet_lm.pipeline.speed import speed_of

    def measured(recipe: "Recipe") -> "Speed":
        model = recipe.model
        layers = "1 layer" if model.layers == 1 else f"{model.layers} layers"
        tell(f"Measuring the pace of {layers} of width {model.width} on this machine.")
        return speed_of(merge_recipe(recipe, {"model.vocabulary": recipe.corpus.max_vocabulary}))

    choice = choose(read_facts(text), minutes, measured)
    for reason in choice.reasons:
        tell(f"- {reason}")
    lines = [f"# Chosen by micronet run for {minutes:g} minutes:", *choice.reasons]
    # Chosen once and then read, so that a resumed run is the same on a busier machine.
    write_text(file, "\n# ".join(lines) + "\n" + dump_recipe(choice.recipe))
