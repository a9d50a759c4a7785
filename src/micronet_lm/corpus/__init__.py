"""Text to ids: sources, tokenizers, the vocabulary and the store on disk."""

from micronet_lm.corpus.build import build_corpus
from micronet_lm.corpus.store import Corpus
from micronet_lm.corpus.tokenizers import tokenizer
from micronet_lm.corpus.vocabulary import Vocabulary

__all__ = ["Corpus", "Vocabulary", "build_corpus", "tokenizer"]
