"""`micronet score`: how likely a text is, token by token."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from micronet_lm.cli.output import harmless, print_report
from micronet_lm.cli.packed import (
    open_model,
    open_report,
    open_sentence,
    read_text,
    tell_model,
    unknown_sentence,
    unknown_share,
)
from micronet_lm.cli.parsers import Arguments, Verbs, add_model, add_threads, add_verb
from micronet_lm.errors import CorpusError
from micronet_lm.evaluation import perplexity

if TYPE_CHECKING:
    from micronet_lm.runtime.scores import LineScore, Scores

TAB = "\t"

_EXAMPLE = """examples:
  micronet score story.txt -m model.safetensors
  echo "the cat sat on the mat" | micronet score - --json
  micronet score sentences.txt --lines --threads 2   # log-probability, perplexity, line

Every token after the first has a natural log-probability, from all tokens before it. With --lines
every line is a separate text that begins after a line end: all its words count, and its end.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "score",
        _run,
        help="measure how likely a text is, token by token",
        description="Print the log-probability of every token of a text, and its perplexity.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("file", metavar="FILE", help="a UTF-8 text file; - is standard input")
    add_model(parser)
    parser.add_argument("--lines", action="store_true", help="score every line as a separate text")
    add_threads(parser)


def _run(arguments: Arguments) -> int:
    text = read_text(arguments.file)
    lm = open_model(arguments.model, arguments.engine)
    report: dict[str, Any]
    if arguments.lines:
        lines = text.removesuffix("\n").split("\n") if text else []  # as the tokenizers end lines
        if not lines:
            raise CorpusError(f"{arguments.file} has no line to score; give at least one")
        each = lm.score_lines(lines, arguments.threads)
        found = [{"text": own.text, **_summary(own)} for own in each]
        shown = [
            f"{own.log_probability:.4f}\t{own.perplexity:.2f}\t{harmless(own.text, kept=TAB)}"
            for own in each
        ]
        report = {**_total(each), "lines": found}
    else:
        scored = lm.score(text, arguments.threads)
        shown = [f"{score:.4f}\t{harmless(word)}" for word, score in scored]
        tokens = [{"word": word, "log_probability": score} for word, score in scored]
        report = {
            **_summary(scored),
            **open_report(lm, text, arguments.threads),
            "scores": tokens,
        }
    tell_model(lm, arguments)
    return print_report(report, [*shown, *_sentences(report)], as_json=arguments.json)


def _summary(scored: "Scores | LineScore") -> dict[str, Any]:
    return {
        "tokens": scored.tokens,
        "log_probability": scored.log_probability,
        "perplexity": scored.perplexity,
        **unknown_share(scored.unknown, scored.tokens),
    }


def _total(lines: "Sequence[LineScore]") -> dict[str, Any]:
    tokens = sum(line.tokens for line in lines)
    total = math.fsum(line.log_probability for line in lines)
    return {
        "tokens": tokens,
        "log_probability": total,
        "perplexity": perplexity(-total / tokens),
        **unknown_share(sum(line.unknown for line in lines), tokens),
    }


def _sentences(summary: Mapping[str, Any]) -> list[str]:
    return [
        f"{summary['tokens']:,} tokens, log-probability {summary['log_probability']:,.4f}, "
        f"perplexity {summary['perplexity']:,.2f}",
        *unknown_sentence(summary),
        *open_sentence(summary),
    ]
