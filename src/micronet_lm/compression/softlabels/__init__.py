"""A teacher's soft labels on disk: a few words with probabilities for every training token.

Label i is what the teacher expects after token i of the training split, having read all tokens up
to it; so a text of n tokens has n − 1 labels, and those of a training window are the ones from its
first input on. `K` is the number of labels a token.
"""

from micronet_lm.compression.softlabels.manifest import Settings
from micronet_lm.compression.softlabels.store import SoftLabels
from micronet_lm.compression.softlabels.writer import Report, write_soft_labels

__all__ = ["Report", "Settings", "SoftLabels", "write_soft_labels"]
