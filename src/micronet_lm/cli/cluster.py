"""Options of the verbs whose stages may run as jobs of a SLURM cluster."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from micronet_lm.cli import parsers
from micronet_lm.cli.parsers import Arguments, Parser
from micronet_lm.errors import UsageError

if TYPE_CHECKING:
    from micronet_lm.pipeline.pool import Pool

HELP = """
--executor slurm submits each stage as a job of its own, with the time and memory of the plan's
estimate and a margin; --time and --memory set them for all stages, or for one: --time
teacher=1-12:00:00. --nodes teacher=4 --gpus teacher=8 trains on 4 nodes with 8 GPUs each, with one
process per GPU. A recipe's section cluster says the same of its stages. A job that reaches its
limit, is preempted or loses its node saves if it can and resumes. A parent that was killed finds
its jobs again: run the same command. See docs/cluster.md.
"""

OPTIONS = {
    "--time": "[STAGE=]LIMIT",
    "--memory": "[STAGE=]SIZE",
    "--gpus": "[STAGE=]N",
    "--nodes": "[STAGE=]N",
    "--partition": "NAME",
    "--account": "NAME",
    "--qos": "NAME",
    "--constraint": "FEATURES",
    "--setup": "COMMAND",
    "--python": "COMMAND",
    "--slurm": "KEY=VALUE",
}

_HELP = {
    "--time": "time limit, such as 90, 4:00:00 or 1-12:00:00; may be repeated",
    "--memory": "memory, such as 16G; may be repeated",
    "--gpus": "GPUs per node (default: none); may be repeated",
    "--nodes": "nodes per job, where processes can share the work (default: 1); may be repeated",
    "--partition": "partition of the cluster",
    "--account": "account that is charged",
    "--qos": "quality of service",
    "--constraint": "features that a node must have",
    "--setup": "line of shell before the work, such as 'module load cuda'; may be repeated",
    "--python": "what starts Python in a job, such as 'apptainer exec IMAGE python'",
    "--slurm": "any other option of sbatch, such as exclude=node7; may be repeated",
}

_REPEATED = ("--time", "--memory", "--gpus", "--nodes", "--setup", "--slurm")


def add_cluster(parser: Parser) -> None:
    """Add where stages run and what their jobs ask for."""
    parsers.add_choice(parser, "--executor", ["local", "slurm"], "where stages run")
    parsers.add_number(
        parser, "--jobs", type=parsers.whole(1), help="jobs at a time (default: as many as fit)"
    )
    parsers.add_number(
        parser,
        *("--threads", "--cpus"),
        type=parsers.whole(1),
        default=1,
        help="threads per job, and processors that it asks for",
    )
    for name, metavar in OPTIONS.items():
        repeated: dict[str, Any] = {"action": "append", "default": []} if name in _REPEATED else {}
        parser.add_argument(name, metavar=metavar, help=_HELP[name], **repeated)


def asked_pool(arguments: Arguments) -> "Pool":
    """Return the pool that the command line asks for; refuse a cluster's options without one."""
    from micronet_lm.pipeline.pool import Pool
    from micronet_lm.pipeline.resources import Resources, read_memory, read_minutes

    if arguments.executor != "slurm":
        parsers.refuse(arguments, "is for a cluster: add --executor slurm", *OPTIONS)
    return Pool(
        executor=arguments.executor,
        jobs=arguments.jobs,
        threads=arguments.threads,
        resources=Resources(
            minutes=_by_stage(arguments.time, read_minutes),
            memory=_by_stage(arguments.memory, read_memory),
            gpus=_by_stage(arguments.gpus, partial(_count, "--gpus", 0)),
            nodes=_by_stage(arguments.nodes, partial(_count, "--nodes", 1)),
            partition=arguments.partition,
            account=arguments.account,
            qos=arguments.qos,
            constraint=arguments.constraint,
            setup=tuple(arguments.setup),
            python=arguments.python,
            more=dict(_pair(word) for word in arguments.slurm),
        ),
    )


def wants_estimate(pool: "Pool") -> bool:
    """Return whether the jobs' time or memory comes from an estimate."""
    own = pool.resources
    return pool.executor == "slurm" and not ("" in own.minutes and "" in own.memory)


def _by_stage(words: list[str], read: Callable[[str], int]) -> Mapping[str, int]:
    """Return values by the stage's name, or under an empty name for all others."""
    return {stage: read(value) for stage, _, value in (word.rpartition("=") for word in words)}


def _count(option: str, least: int, text: str) -> int:
    try:
        return parsers.whole(least)(text)
    except ArgumentTypeError as error:
        raise UsageError(f"{option} {error}") from None


def _pair(word: str) -> tuple[str, str]:
    key, equal, value = word.removeprefix("--").partition("=")
    if not equal or not key:
        raise UsageError(f"--slurm must be KEY=VALUE, such as exclude=node7, got {word}")
    return key, value
