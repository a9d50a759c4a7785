"""Parts of reports about the text: the corpus, a baseline on it, and samples of the model."""

from pathlib import Path

from micronet_lm.corpus import Corpus
from micronet_lm.corpus.splits import SPLITS
from micronet_lm.report import samples
from micronet_lm.report.document import Section, Table, Text
from micronet_lm.report.samples import Sample, Suggested, Suggestions
from micronet_lm.report.trigram import Trigram

_LARGEST = 2**63
"""Numbers of trigrams stay below it."""


def corpus_section(corpus: Corpus) -> Section:
    """Show the size of each split and its share of unknown words."""
    manifest = corpus.manifest
    rows = [
        [
            split,
            f"{manifest.tokens[split]:,}",
            f"{manifest.unknown[split]:,}",
            f"{manifest.unknown[split] / max(1, manifest.tokens[split]):.2%}",
        ]
        for split in SPLITS
    ]
    return Section(
        title="Text",
        blocks=[
            Text(
                text=f"The vocabulary has {manifest.words:,} words. Every other word is <unk>, "
                "which is easy to predict if it is frequent: compare perplexities only "
                "between texts with similar shares."
            ),
            Table(head=["split", "tokens", "unknown words", "share"], rows=rows),
        ],
    )


def baseline_section(
    corpus: Corpus, *, validation: float | None, test: float, what: str
) -> Section | None:
    """Compare a model with a trigram; None if the text is too short or has too many words."""
    words = corpus.manifest.words
    if corpus.tokens("train") < 3 or words**3 >= _LARGEST:
        return None
    trigram = Trigram(corpus.split("train"), words)
    least = [trigram.perplexity(corpus.split(split)) for split in ("valid", "test")]
    own = ["" if value is None else f"{value:,.2f}" for value in (validation, test)]
    part = ""
    if trigram.tokens < corpus.tokens("train"):
        part = f"the first {trigram.tokens:,} tokens of "
    return Section(
        title="Baseline",
        blocks=[
            Text(
                text="For comparison, a trigram model on the same text, with "
                "interpolated modified Kneser-Ney smoothing, counted on "
                f"{part}the train split ({trigram.ngrams:,} different n-grams). All tokens after "
                "the first are predicted, as by the model."
            ),
            Table(
                head=["", "validation perplexity", "test perplexity"],
                rows=[["trigram", *(f"{value:,.2f}" for value in least)], [what, *own]],
                strong=1,
            ),
        ],
    )


def samples_section(packed: Path, corpus: Corpus) -> Section:
    """Show what the model writes and suggests, compared with the text."""
    written = samples.write_samples(packed, corpus)
    blocks: list[Text | Table] = [
        Text(
            text="Beginnings of evenly chosen lines of the test split, how the text continues, and "
            f"how the model continues (temperature {samples.TEMPERATURE}, the {samples.TOP_K} "
            f"likeliest words). The model has read {samples.BEFORE} tokens before each line."
        ),
        Table(
            head=["beginning", "the text continues", "the model writes"],
            rows=[_sample(sample) for sample in written],
            texts=3,
            wraps=True,
        ),
    ]
    if suggestions := samples.suggest_words(packed, corpus):
        blocks += [
            Text(text=_hits(suggestions)),
            Table(
                head=["text", "next word", "suggestions", "found"],
                rows=[_suggested(own) for own in suggestions.shown],
                texts=3,
                wraps=True,
            ),
        ]
    return Section(title="Samples", blocks=blocks)


def _sample(sample: Sample) -> list[str]:
    return [sample.beginning + " …", "… " + sample.true, "… " + sample.written]


def _hits(suggestions: Suggestions) -> str:
    shares = [hits / suggestions.asked for hits in suggestions.hits]
    return (
        f"Next words: for {suggestions.asked:,} consecutive words of the test split, without "
        f"unknown words and line ends, the true word is the first suggestion in {shares[0]:.0%}, "
        f"among the first three in {shares[2]:.0%}, and among the first {len(shares)} in "
        f"{shares[-1]:.0%}. Some of these places, evenly spread:"
    )


def _suggested(own: Suggested) -> list[str]:
    words = " · ".join(f"{word.word} {word.probability:.0%}" for word in own.words)
    return ["… " + own.before, own.true, words, f"{own.place}." if own.place else "–"]
