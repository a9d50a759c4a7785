"""A teacher's soft labels on disk: a few words with probabilities for every training token.

Label i is the teacher's prediction after token i of the training split, given all tokens up to it;
so a text of n tokens has n − 1 labels, and those of a training window begin at its first input.
`K` is the number of labels per token.
"""

from micronet_lm.compression.softlabels.manifest import Settings
from micronet_lm.compression.softlabels.store import SoftLabels
from micronet_lm.compression.softlabels.writer import Report, write_soft_labels

__all__ = ["Report", "Settings", "SoftLabels", "write_soft_labels"]
