"""Tables of n-grams: counted, estimated, pruned to a budget, and looked up; never torch."""

from micronet_lm.ngrams.counting import CountedOrder, count_orders
from micronet_lm.ngrams.estimation import estimate_table
from micronet_lm.ngrams.lookup import Lookup
from micronet_lm.ngrams.table import NgramTable, TableOrder, word_bits

__all__ = [
    "CountedOrder",
    "Lookup",
    "NgramTable",
    "TableOrder",
    "count_orders",
    "estimate_table",
    "word_bits",
]
