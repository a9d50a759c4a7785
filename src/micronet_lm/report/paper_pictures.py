"""The pictures beside the page of what holds: the paper's pipeline figure and its cache figures."""

from pathlib import Path

from micronet_lm.files import write_text
from micronet_lm.report.everything import Everything
from micronet_lm.report.stack import stack_svg

PIPELINE = "pipeline"


def write_pictures(made: Everything, page: Path) -> dict[str, str]:
    """Draw the figures that have data beside a page; return their file names, by figure."""
    found = {}
    stacks = made.tables[PIPELINE].stacks()
    layers = [layer for _, own in stacks for layer in own]
    if any(value is not None for layer in layers for value in layer.values.values()):
        found[PIPELINE] = f"{page.stem}-{PIPELINE}.svg"
        write_text(page.with_name(found[PIPELINE]), stack_svg(stacks))
    if effects := made.figures():
        from micronet_lm.report.cache_figure import draw_cache_effect

        for what, effect in effects.items():
            found[what] = f"{page.stem}-{what}.png"
            subject = f"{made.corpus.settings['source']} validation split"
            draw_cache_effect(effect, page.with_name(found[what]), subject=subject)
    return found
