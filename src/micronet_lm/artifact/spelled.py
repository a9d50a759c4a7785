"""The spelling model of a packed file, estimated from the rare words of a corpus."""

from micronet_lm.config import SpellingConfig
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.manifest import DROPPED
from micronet_lm.corpus.vocabulary import EOS, UNK
from micronet_lm.errors import CorpusError
from micronet_lm.files import open_regular
from micronet_lm.spelling import Spelling, estimate


def spelling_of(corpus: Corpus, config: SpellingConfig, file_bytes: int) -> Spelling:
    """Estimate the spelling model of a file that has so many bytes without it."""
    vocabulary = corpus.vocabulary
    words = left_out(corpus)
    for word, count in zip(vocabulary.words, vocabulary.counts, strict=True):
        if count <= config.max_count:
            words.append(word)
    rare = (set(words) - {UNK, EOS}) or (set(vocabulary.words) - {UNK, EOS})
    # `<unk>` stands for words outside the vocabulary; in a text it is spelled like any other.
    known = [word for word in vocabulary.words if word != UNK]
    budget = int(config.budget * file_bytes)
    return estimate(rare, known, order=config.order, budget=budget)


def left_out(corpus: Corpus) -> list[str]:
    """Return the words of the train split that the vocabulary leaves out, if they are known."""
    corpus.check_dropped()
    path = corpus.path / DROPPED
    if not path.is_file():  # a corpus of an earlier version
        return []
    with open_regular(path) as file:
        data = file.read()
    try:
        lines = data.decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError:
        raise CorpusError(f"{path} is not UTF-8: build the corpus again with --force") from None
    return [line.partition("\t")[2] for line in lines]
