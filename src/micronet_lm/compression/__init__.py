"""What makes a trained model smaller, or better at its size."""

from micronet_lm.compression.cache_search import Point, Search, Surface, search_cache
from micronet_lm.compression.searched_run import write_searched_run

__all__ = ["Point", "Search", "Surface", "search_cache", "write_searched_run"]
