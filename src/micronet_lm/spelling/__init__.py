"""A small model of how words are spelled: the probability of any string outside a vocabulary."""

from micronet_lm.spelling.estimate import estimate
from micronet_lm.spelling.trie import LARGEST_ORDER, Spelling

__all__ = ["LARGEST_ORDER", "Spelling", "estimate"]
