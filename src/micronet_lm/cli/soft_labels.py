"""`micronet soft-labels`: what a teacher expects after each token of the training split."""

import argparse
import sys
from pathlib import Path

from micronet_lm.cli.output import print_json, print_text
from micronet_lm.cli.parsers import add_parser
from micronet_lm.cli.runs import INTERRUPTED, leads
from micronet_lm.errors import UsageError

_EXAMPLE = """examples:
  micronet soft-labels runs/teacher --out labels/top-30
  micronet soft-labels runs/teacher --top-k 10 --out labels/top-10 --json
  micronet soft-labels runs/teacher --samples 12 --seed 1 --out labels/sampled
  torchrun --nproc-per-node 2 -m micronet_lm soft-labels runs/teacher --out labels/top-30

Killed or interrupted, the same command goes on after the last finished shard, to the same bytes.
Under torchrun each process writes its own shards, to the same bytes as one process with as many
threads (OMP_NUM_THREADS) as each of them. Next: micronet distill.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "soft-labels",
        help="write down what a teacher expects after each token",
        description=(
            "Let a trained model read the training split once, and keep the words that it expects "
            "after each token, with their probabilities, for a student to learn from."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument("teacher", type=Path, metavar="RUN", help="folder of the teacher's run")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="folder to write")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--top-k", type=int, default=30, metavar="K", help="likeliest words (default: %(default)s)"
    )
    kind.add_argument(
        "--samples",
        type=int,
        metavar="N",
        help="instead, words drawn from the whole distribution without bias; a dozen will do",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="what the draws follow from (default: %(default)s)"
    )
    parser.add_argument(
        "--checkpoint",
        choices=["best", "last"],
        default="best",
        help="which of the run's checkpoints (default: %(default)s)",
    )
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="where the corpus is now")
    parser.add_argument(
        "--shard-tokens", type=int, metavar="N", help="tokens a shard (default: 131072)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    for name in ("top_k", "samples", "shard_tokens"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name.replace('_', '-')} {value} must be at least 1")
    if arguments.seed < 0:
        raise UsageError(f"--seed {arguments.seed} must not be negative")

    from micronet_lm.compression import write_soft_labels
    from micronet_lm.compression.softlabels.writer import SHARD_TOKENS
    from micronet_lm.training import Run

    run = Run.open(arguments.teacher)
    sampled = arguments.samples is not None
    try:
        report = write_soft_labels(
            run.model(arguments.checkpoint),
            run.corpus(arguments.corpus),
            arguments.out,
            method="sampled" if sampled else "top-k",
            count=arguments.samples if sampled else arguments.top_k,
            seed=arguments.seed,
            shard_tokens=arguments.shard_tokens or SHARD_TOKENS,
        )
    except KeyboardInterrupt:
        if leads():
            sys.stderr.write(
                "\nInterrupted; the same command goes on after the last finished shard.\n"
            )
        return INTERRUPTED
    if not leads():
        return 0
    if arguments.json:
        print_json({"labels": str(arguments.out), **report.as_json()})
    else:
        print_text(
            f"Labelled {report.tokens:,} tokens ({report.bytes / 1e6:,.1f} MB in {report.shards:,} "
            f"shards, {report.tokens_per_second:,.0f} tokens a second). The true word is among "
            f"the labels {report.hit_share:.1%} of the time; they cover {report.mass:.1%} of the "
            f"teacher's probability.\n"
            f"Next: micronet distill RECIPE --labels {arguments.out} --out RUN"
        )
    return 0
