"""Documented, frozen types for every stage; strict loading; dotted overrides."""

from micronet_lm.config.loading import (
    changed_keys,
    dump_recipe,
    load_recipe,
    merge_recipe,
    parse_recipe,
    preset_names,
    preset_summary,
)
from micronet_lm.config.overrides import split_overrides
from micronet_lm.config.places import CODE_PLACES, PLACEMENTS, TEXT_PLACES, Place
from micronet_lm.config.quantization import QuantizeConfig
from micronet_lm.config.reference import describe_keys
from micronet_lm.config.sections import (
    CacheConfig,
    CorpusConfig,
    DistillConfig,
    HebbianConfig,
    ModelConfig,
    PruneConfig,
    Recipe,
    TrainConfig,
)

__all__ = [
    "CODE_PLACES",
    "PLACEMENTS",
    "TEXT_PLACES",
    "CacheConfig",
    "CorpusConfig",
    "DistillConfig",
    "HebbianConfig",
    "ModelConfig",
    "Place",
    "PruneConfig",
    "QuantizeConfig",
    "Recipe",
    "TrainConfig",
    "changed_keys",
    "describe_keys",
    "dump_recipe",
    "load_recipe",
    "merge_recipe",
    "parse_recipe",
    "preset_names",
    "preset_summary",
    "split_overrides",
]
