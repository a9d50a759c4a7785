"""Recipes: documented, frozen section types, strict loading, dotted overrides."""

from micronet_lm.config.cluster import ClusterConfig, JobConfig
from micronet_lm.config.compression import (
    DistillConfig,
    PruneConfig,
    SearchConfig,
    TrainChanges,
)
from micronet_lm.config.identity import identifying
from micronet_lm.config.loading import (
    changed_keys,
    dump_recipe,
    flat_keys,
    load_recipe,
    merge_recipe,
    own_text_command,
    parse_recipe,
    preset_family,
    preset_names,
    preset_summary,
    with_train_changes,
)
from micronet_lm.config.ngrams import NgramsConfig
from micronet_lm.config.overrides import split_overrides
from micronet_lm.config.packing import PackConfig
from micronet_lm.config.places import CODE_PLACES, PLACEMENTS, TEXT_PLACES, Place
from micronet_lm.config.quantization import FULL, QuantizeConfig
from micronet_lm.config.reference import describe_keys
from micronet_lm.config.scaling import load_scaled, scaled_to_steps, scaling_sentence
from micronet_lm.config.sections import (
    LARGEST_SIZE,
    CacheConfig,
    CorpusConfig,
    HebbianConfig,
    ModelConfig,
    Recipe,
    TrainConfig,
)
from micronet_lm.config.spelling import SpellingConfig

__all__ = [
    "CODE_PLACES",
    "FULL",
    "LARGEST_SIZE",
    "PLACEMENTS",
    "TEXT_PLACES",
    "CacheConfig",
    "ClusterConfig",
    "CorpusConfig",
    "DistillConfig",
    "HebbianConfig",
    "JobConfig",
    "ModelConfig",
    "NgramsConfig",
    "PackConfig",
    "Place",
    "PruneConfig",
    "QuantizeConfig",
    "Recipe",
    "SearchConfig",
    "SpellingConfig",
    "TrainChanges",
    "TrainConfig",
    "changed_keys",
    "describe_keys",
    "dump_recipe",
    "flat_keys",
    "identifying",
    "load_recipe",
    "load_scaled",
    "merge_recipe",
    "own_text_command",
    "parse_recipe",
    "preset_family",
    "preset_names",
    "preset_summary",
    "scaled_to_steps",
    "scaling_sentence",
    "split_overrides",
    "with_train_changes",
]
