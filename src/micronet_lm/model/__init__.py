"""The core language model.

Notation, the same in every file of this room:

====  ==========================================================================
`B`   sequences in a batch
`T`   time: tokens of a sequence that are computed at once
`N`   tokens of any sequences, in one line: B·T or a selection of them
`V`   words of the vocabulary, or of one bin of it
`D`   width of the hidden states (d_model)
`E`   width of a bin's embedding
`H`   attention heads
`K`   width of a head's queries and keys (d_k); for values d_v. In the softmax and the
      cache: words per token whose probabilities are computed
`C`   tokens that one layer attends to, the current one included
`M`   hidden states of a text in the cache so far, at most its size n
`P`   tokens before the current one that a layer attends to: C − 1
====  ==========================================================================
"""

from micronet_lm.model.cache import Cache, Memory
from micronet_lm.model.state import StreamState
from micronet_lm.model.transformer import LanguageModel

__all__ = ["Cache", "LanguageModel", "Memory", "StreamState"]
