"""`micronet personal`: what a model has learned of one person, and how it forgets."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from micronet_lm.cli.output import harmless, make_table, print_report
from micronet_lm.cli.packed import open_model, read_text
from micronet_lm.cli.parsers import Arguments, Parser, Verbs, add_model, add_verb
from micronet_lm.errors import UsageError
from micronet_lm.files import open_regular

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM
    from micronet_lm.runtime.personal import Personal

_ACTIONS = {
    "learn": "learn text files; - is standard input",
    "words": "list the words that it has learned, the most frequent first",
    "forget": "forget words: nothing of them remains in the file",
    "clear": "forget everything",
    "export": "print the words as JSON, for merge with any model",
    "merge": "add exported words, or the memory of another file",
    "show": "tell what the file holds",
}
_WITH_WORDS = {"learn": "text files", "forget": "words", "merge": "files"}

_EXAMPLE = """examples:
  micronet personal me.personal learn letters.txt diary.txt
  micronet personal me.personal words
  micronet predict "Dear" --personal me.personal --incognito
  micronet personal me.personal forget Zorblax
  micronet personal me.personal export > words.json
  micronet personal new.personal merge words.json -m another.safetensors

actions:
""" + "".join(f"  {name:8} {what}\n" for name, what in _ACTIONS.items())


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "personal",
        _run,
        help="what a model has learned of you: learn, show, forget",
        description="Learn a person's texts into a private file, show its words, forget them.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the personal memory")
    parser.add_argument("action", choices=_ACTIONS, metavar="ACTION", help=", ".join(_ACTIONS))
    parser.add_argument("names", nargs="*", metavar="NAME", help="text files, words or files")
    add_model(parser)


def add_personal(parser: Parser) -> None:
    """Add the options of verbs that suggest words."""
    parser.add_argument(
        "--personal",
        type=Path,
        metavar="FILE",
        help="a personal memory ('micronet personal'), which also learns the text",
    )
    parser.add_argument(
        "--incognito", action="store_true", help="use --personal, but learn nothing"
    )


def open_personal(lm: "LM", arguments: Arguments) -> "Personal | None":
    """Open the memory that the options name, if any."""
    if arguments.personal is None:
        if arguments.incognito:
            raise UsageError("--incognito is for --personal FILE, without which nothing is learned")
        return None
    return lm.personal(arguments.personal, incognito=arguments.incognito)


def _run(arguments: Arguments) -> int:
    action, names = arguments.action, arguments.names
    if action in _WITH_WORDS and not names:
        raise UsageError(f"'{action}' needs {_WITH_WORDS[action]}: name one or more")
    if action not in _WITH_WORDS and names:
        raise UsageError(f"'{action}' takes no more words, got {names[0]!r}")
    if action != "learn" and action != "merge" and not arguments.file.exists():
        raise UsageError(f"there is no file {arguments.file}: 'learn' makes one")
    lm = open_model(arguments.model, arguments.engine)
    personal = lm.personal(arguments.file)
    report: dict[str, Any] = {"file": str(arguments.file), "action": action}
    if action == "learn":
        report["tokens"] = sum(personal.learn(read_text(name)) for name in names)
    elif action == "forget":
        report["forgotten"] = {name: personal.forget(name) for name in names}
    elif action == "clear":
        personal.clear()
    elif action == "export":
        return _export(personal)
    elif action == "merge":
        report["merged"] = sum(_merge(lm, personal, name) for name in names)
    words = personal.words()
    report |= {"states": personal.states, "bytes": _size(arguments.file), "words": words}
    return print_report(report, _shown(report), as_json=arguments.json)


def _export(personal: "Personal") -> int:
    sys.stdout.write(personal.export())
    return 0


def _merge(lm: "LM", personal: "Personal", name: str) -> int:
    from micronet_lm.runtime.personal_file import MAGIC

    path = Path(name)
    if not path.is_file():
        raise UsageError(f"there is no file {name} to merge: give exported words or a memory")
    with open_regular(path) as file:
        is_memory = file.read(len(MAGIC)) == MAGIC
    return personal.merge(lm.personal(path) if is_memory else read_text(name))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _shown(report: dict[str, Any]) -> Iterator[RenderableType]:
    words: dict[str, int] = report["words"]
    if report["action"] == "words":
        if words:
            table = make_table("word", "times")
            for word, times in words.items():
                table.add_row(Text(harmless(word)), f"{times:,}")
            yield table
        else:
            yield "no words outside the vocabulary"
        return
    if "tokens" in report:
        yield f"{report['tokens']:,} tokens learned"
    if "merged" in report:
        yield f"{report['merged']:,} words merged"
    for word, found in report.get("forgotten", {}).items():
        yield f"{harmless(word)}: {'forgotten' if found else 'nothing was known of it'}"
    yield (
        f"{report['file']}: {len(words):,} words outside the vocabulary, {report['states']:,} "
        f"states, {report['bytes']:,} bytes"
    )
