"""`micronet score`: how likely a text is, token by token."""

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micronet_lm.cli.output import print_json
from micronet_lm.cli.packed import (
    add_model,
    add_threads,
    check_count,
    opened,
    unknown_sentence,
    unknown_share,
)
from micronet_lm.cli.parsers import add_parser
from micronet_lm.cli.terminal import harmless
from micronet_lm.corpus.vocabulary import UNK
from micronet_lm.errors import CorpusError
from micronet_lm.evaluation import perplexity

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM
    from micronet_lm.runtime.scores import Scores

_EXAMPLE = """examples:
  micronet score story.txt -m model.safetensors
  echo "the cat sat on the mat" | micronet score - --json
  micronet score sentences.txt --lines --threads 2

Every token after the first has a natural log-probability, from all tokens before it. With --lines
every line is a text of its own that begins after a line's end: all its words count, and its end.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "score",
        help="tell how likely a text is, token by token",
        description="Tell the log-probability of every token of a text, and its perplexity.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("file", metavar="FILE", help="a UTF-8 text file; - is standard input")
    add_model(parser)
    parser.add_argument("--lines", action="store_true", help="every line is a text of its own")
    add_threads(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_count("--threads", arguments.threads)
    text = read_text(arguments.file)
    lm = opened(arguments.model, arguments.engine)
    if arguments.lines:
        return _lines(lm, text, arguments)
    scored = lm.score(text, arguments.threads)
    summary = _summary(scored)
    if arguments.json:
        tokens = [{"word": word, "log_probability": score} for word, score in scored]
        print_json({**summary, "scores": tokens})
        return 0
    for word, score in scored:
        sys.stdout.write(f"{score:.4f}\t{harmless(word)}\n")
    sys.stdout.write(_sentence(summary))
    return 0


def _lines(lm: "LM", text: str, arguments: argparse.Namespace) -> int:
    lines = text.split("\n")  # as the tokenizers end lines, and nowhere else
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise CorpusError(f"{arguments.file} has no line to score")
    scored = lm.score_batch([f"\n{line}\n" for line in lines], arguments.threads)
    summaries = [_summary(own) for own in scored]
    everything = _summary(Scores(item for own in scored for item in own))
    if arguments.json:
        found = [{"text": line, **own} for line, own in zip(lines, summaries, strict=True)]
        print_json({**everything, "lines": found})
        return 0
    for line, own in zip(lines, summaries, strict=True):
        sys.stdout.write(f"{own['log_probability']:.4f}\t{line}\n")
    sys.stdout.write(_sentence(everything))
    return 0


def _summary(scored: "Scores") -> dict[str, Any]:
    total = math.fsum(score for _, score in scored)
    return {
        "tokens": len(scored),
        "log_probability": total,
        "perplexity": perplexity(-total / len(scored)),
        **unknown_share(sum(word == UNK for word, _ in scored), len(scored)),
    }


def _sentence(summary: dict[str, Any]) -> str:
    return (
        f"{summary['tokens']:,} tokens, log-probability {summary['log_probability']:,.4f}, "
        f"perplexity {summary['perplexity']:,.2f}\n{unknown_sentence(summary)}"
    )


def read_text(file: str) -> str:
    """Read a text file, or standard input for `-`."""
    try:
        if file == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        return Path(file).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        name = "standard input" if file == "-" else file
        raise CorpusError(
            f"{name} is not UTF-8 text (byte {error.start}); convert it first"
        ) from None
