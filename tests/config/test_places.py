"""The places of activation quantizers: the documentation's table and drawing against the code."""

from pathlib import Path

from micronet_lm.config import CODE_PLACES, PLACEMENTS, TEXT_PLACES, Place, load_recipe

PAGE = (Path(__file__).parents[2] / "docs" / "quantization.md").read_text(encoding="utf-8")


def test_the_table_of_the_documentation_is_that_of_the_code() -> None:
    lines = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    table = {
        Place(cells[0].strip(" `")): (bool(cells[2].strip()), bool(cells[3].strip()))
        for cells in lines
        if cells[0].strip(" `") in set(Place)
    }
    assert table == {place: (place in CODE_PLACES, place in TEXT_PLACES) for place in Place}


def test_the_drawing_has_every_place_once() -> None:
    drawing = PAGE.split("## Places")[1].split("```")[1]
    for place in Place:
        assert drawing.split().count(place.value) == 1, place
    assert drawing.count("◆") == len(Place)


def test_the_papers_two_placements() -> None:
    """Seven places per layer and one more are 57 quantizers in eight layers; the text has fewer."""
    code, text = (load_recipe(f"paper/quantized-{name}") for name in ("code", "text"))
    for recipe, count, wide in ((code, 57, 9), (text, 33, 32)):
        config = recipe.quantize
        assert config is not None
        assert (config.bits, config.steps, config.position_bits) == (9, 1, 32)
        assert sum(recipe.model.quantizers(place) for place in config.chosen_places) == count
        assert (config.table_bits or config.bits, config.tail_bits or config.bits) == (wide, wide)
    assert set(PLACEMENTS) == {"code", "text", "none"}
