"""`micronet soft-labels`: what a teacher expects after each token of the training split."""

from pathlib import Path

from micronet_lm.cli import parsers
from micronet_lm.cli.output import print_report, tell
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.cli.runs import INTERRUPTED, in_each_process
from micronet_lm.machine import leads

_EXAMPLE = """examples:
  micronet soft-labels runs/teacher --out labels/top-30
  micronet soft-labels runs/teacher --top-k 10 --out labels/top-10 --json
  micronet soft-labels runs/teacher --samples 12 --seed 1 --out labels/sampled
  torchrun --nproc-per-node 2 -m micronet_lm soft-labels runs/teacher --out labels/top-30

Killed or interrupted, the same command resumes after the last finished shard, to the same bytes.
Under torchrun each process writes its own shards, to the same bytes as one process with as many
threads (OMP_NUM_THREADS) as each of them. Next: micronet distill.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = parsers.add_verb(
        verbs,
        "soft-labels",
        _run,
        help="write what a teacher expects after each token",
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
        "--top-k",
        type=parsers.whole(1),
        default=30,
        metavar="K",
        help="number of likeliest words per token (default: %(default)s)",
    )
    kind.add_argument(
        "--samples",
        type=parsers.whole(1),
        metavar="N",
        help="instead, draw N words per token from the whole distribution; a dozen will do",
    )
    parsers.add_number(parser, "--seed", type=parsers.whole(0), default=0, help="seed of the draws")
    parsers.add_checkpoint(parser)
    parsers.add_corpus(parser)
    parsers.add_number(
        parser, "--shard-tokens", type=parsers.whole(1), help="tokens per shard (default: 131072)"
    )


@in_each_process
def _run(arguments: Arguments) -> int:
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
            tell("\nInterrupted; the same command resumes after the last finished shard.")
        return INTERRUPTED
    if not leads():
        return 0
    sentences = [
        f"Labelled {report.tokens:,} tokens ({report.bytes / 1e6:,.1f} MB in {report.shards:,} "
        f"shards, {report.tokens_per_second:,.0f} tokens per second). The true word is among the "
        f"labels {report.hit_share:.1%} of the time; they cover {report.mass:.1%} of the teacher's "
        "probability.",
        f"Next: micronet distill RECIPE --labels {arguments.out} --out RUN",
    ]
    whole_report = {"labels": str(arguments.out), **report.as_json()}
    return print_report(whole_report, sentences, as_json=arguments.json)
