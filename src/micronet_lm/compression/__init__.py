"""Compression techniques: distillation, pruning, cache search and quantization."""

from micronet_lm.compression.cache_search import Point, Search, Surface, search_cache
from micronet_lm.compression.distillation import Distillation, distill
from micronet_lm.compression.searched_run import write_searched_run
from micronet_lm.compression.softlabels import SoftLabels, write_soft_labels

__all__ = [
    "Distillation",
    "Point",
    "Search",
    "SoftLabels",
    "Surface",
    "distill",
    "search_cache",
    "write_searched_run",
    "write_soft_labels",
]
