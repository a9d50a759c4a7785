"""Read the command line, run a verb, and turn errors into one sentence."""

import argparse
import os
import sys
from collections.abc import Sequence

import micronet_lm
from micronet_lm.cli import (
    account,
    bench,
    corpus,
    distill,
    doctor,
    evaluate,
    generate,
    inspection,
    models,
    ngrams,
    pack,
    page,
    personal,
    predict,
    presets,
    prune,
    quantize,
    report,
    reproduce,
    run,
    score,
    search_cache,
    sensitivity,
    serve,
    soft_labels,
    train,
    verify,
)
from micronet_lm.cli.parsers import OneSentenceParser, refuse_unknown
from micronet_lm.cli.runs import INTERRUPTED
from micronet_lm.config import split_overrides
from micronet_lm.errors import MicronetError, UsageError, install_extra
from micronet_lm.machine import let_waiting_threads_sleep

_EXTRAS = {
    "torch": "train",
    "tensorboard": "train",
    "matplotlib": "report",
    "submitit": "cluster",
    **dict.fromkeys(("fastapi", "starlette", "uvicorn"), "serve"),
}
"""Packages that come with an extra, and which."""


_BEFORE_A_VERB = ("-h", "--help", "--version")

DEBUG = "MICRONET_DEBUG"
"""Environment variable; set to 1, an unexpected error shows its traceback."""


def main(words: Sequence[str] | None = None) -> int:
    """Run `micronet` with the given words, or with those of the process; return the exit code."""
    let_waiting_threads_sleep()
    try:
        given = sys.argv[1:] if words is None else words
        plain, overrides = split_overrides(given)
        if plain and plain[0].startswith("-") and plain[0] not in _BEFORE_A_VERB:
            raise UsageError(f"'{plain[0]}' must come after the verb: micronet VERB {plain[0]} ...")
        arguments, unknown = _parser().parse_known_args(plain)
        if overrides and not hasattr(arguments, "overrides"):
            unknown.append(f"--{next(iter(overrides))}")
        if unknown:
            refuse_unknown(arguments.parser, unknown[0])
        arguments.overrides, arguments.is_program = overrides, words is None
        arguments.given = {word.partition("=")[0] for word in given}
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except MicronetError as error:
        _complain(str(error))
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in _EXTRAS:
            return _unexpected(error)
        _complain(f"this verb needs {package}: {install_extra(_EXTRAS[package])}")
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _complain(f"{place}{error.strerror or error}")
        return 1
    except Exception as error:
        return _unexpected(error)
    return code


def _unexpected(error: Exception) -> int:
    """Turn an unexpected error into one sentence, or show its traceback on request."""
    if os.environ.get(DEBUG, "") not in ("", "0"):
        raise error
    if isinstance(error, MemoryError):
        _complain(
            f"there is not enough memory; take less text or a smaller model ({DEBUG}=1 shows where)"
        )
        return 1
    told = " ".join(str(error).split())
    what = type(error).__name__ + (f": {told}" if told else "")
    what = what if len(what) <= 300 else what[:297] + "..."
    _complain(
        f"unexpected {what}; nothing more was done: set {DEBUG}=1 to see where, and report it"
    )
    return 1


def _complain(sentence: str) -> None:
    rank = os.environ.get("RANK", "0")  # under torchrun, several processes may speak
    sys.stderr.write(f"micronet{'' if rank == '0' else f' [rank {rank}]'}: {sentence}\n")


def _parser() -> argparse.ArgumentParser:
    parser = OneSentenceParser(
        prog="micronet",
        description=micronet_lm.__doc__,
        epilog="'micronet VERB --help' explains a verb and gives an example.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"micronet {micronet_lm.__version__}"
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for verb in (
        *(run, corpus, presets, train, soft_labels, distill, sensitivity, prune, search_cache),
        *(quantize, evaluate, account),
        *(pack, ngrams, inspection, models, predict, generate, score, personal, page, bench),
        *(serve, reproduce, report, doctor, verify),
    ):
        verb.add(verbs)
    return parser
