"""Models of recipes, quantized or not."""

from micronet_lm.config import Recipe
from micronet_lm.layout import widths
from micronet_lm.model import LanguageModel
from micronet_lm.model.quantizers import Scheme


def scheme_of(recipe: Recipe) -> Scheme | None:
    """Return what a recipe quantizes, or None."""
    config = recipe.quantize
    if config is None:
        return None
    return Scheme(
        weights={n: (w.bits, w.scales) for n, w in widths(config, recipe.model).items()},
        places=config.chosen_places,
        activation_bits=config.width_of_activations,
        learned_rate=config.learned_rate if config.learned else None,
    )


def build_model(recipe: Recipe) -> LanguageModel:
    """Return the model of a recipe, with fresh weights."""
    return LanguageModel(recipe.model, recipe.cache, scheme_of(recipe))
