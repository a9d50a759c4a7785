"""`micronet evaluate` on a packed file: the same contract, without torch."""

import argparse
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from micronet_lm.cli.packed import check_count, opened, unknown_share
from micronet_lm.cli.parsers import refuse_options
from micronet_lm.cli.score import read_text
from micronet_lm.corpus import Corpus
from micronet_lm.errors import CorpusError, UsageError
from micronet_lm.evaluation import Evaluation
from micronet_lm.progress import bar
from micronet_lm.runtime.engine import Ids

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM


def evaluate_packed(arguments: argparse.Namespace) -> tuple[Evaluation, dict[str, Any]]:
    """Measure a packed file's perplexity; also give what else there is to report."""
    from micronet_lm.runtime.evaluation import evaluate_engine

    if arguments.overrides:
        key = next(iter(arguments.overrides))
        raise UsageError(f"--{key} cannot be set for a packed file; evaluate the run it is made of")
    if arguments.chunk is not None:
        raise UsageError("--chunk is for runs; a packed file's engine chooses its own")
    if (arguments.text is None) == (arguments.corpus is None):
        raise UsageError(
            "say what a packed file is evaluated on: --corpus DIR with --split, or --text FILE"
        )
    refuse_options(arguments, "is for runs; a packed file holds one model", "--checkpoint")
    if arguments.text is not None:
        refuse_options(arguments, "is for a corpus; --text is one whole text", "--split")
    check_count("--threads", arguments.threads)
    lm = opened(arguments.target, arguments.engine)
    if arguments.text is not None:
        name = arguments.text
        ids: Ids = lm.encoder.ids(read_text(arguments.text))
    else:
        corpus = Corpus.open(arguments.corpus)
        _check_words(lm, corpus)
        name, ids = f"{arguments.split} split", corpus.split(arguments.split)
    with bar(f"Evaluating {name}", total=None):
        result = evaluate_engine(lm.engine, ids, arguments.threads)
    unknown = int(np.count_nonzero(ids[1:] == lm.encoder.unknown))
    cache = json.loads(lm.engine.metadata)["cache"]
    return result, {
        "model": str(arguments.target),
        "engine": lm.engine.name,
        "text": arguments.text,
        "split": None if arguments.text is not None else arguments.split,
        "cache": cache,
        **unknown_share(unknown, result.tokens),
    }


def _check_words(lm: "LM", corpus: Corpus) -> None:
    """Refuse a corpus whose ids mean other words."""
    own, words = lm.vocabulary, corpus.vocabulary.words
    if len(own) != len(words) or any(a != b for a, b in zip(own, words, strict=True)):
        raise CorpusError(
            f"{corpus.path} has another vocabulary ({len(words):,} words) than the model "
            f"({len(own):,}); name the corpus that the model was made with, or give --text"
        )
