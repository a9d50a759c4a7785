"""The source that needs no download: the English documentation inside every CPython.

It consists of the help topics of `pydoc` and the docstrings of the standard library, one document
per topic and per module. Sources are parsed, never imported. Each version of Python gives another
text, so a corpus of this source can be reproduced only with the same version.
"""

import ast
import inspect
import re
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from micronet_lm.corpus.blocks import Block
from micronet_lm.corpus.splits import SPLITS, Ratio, Splitting, split_of
from micronet_lm.errors import CorpusError
from micronet_lm.progress import bar

# Tests are written for developers, site-packages is not CPython, codecs repeat one sentence.
_SKIPPED = {"test", "tests", "idle_test", "site-packages", "dist-packages", "encodings"}
_SKIPPED |= {"__pycache__", "lib-dynload", "pydoc_data", "ensurepip"}

_WRAPPED = 50  # a line at least this long was probably wrapped at the margin
_RULE = re.compile(r"(\W)\1+")  # a line that is only an underline


class PythonDocs:
    """Documents in a fixed order; the hash of a document's name decides its split."""

    name = "python-docs"
    default_tokenizer = "word"
    # More than half of the distinct words occur once or twice, mostly names in examples; without
    # them the vocabulary is 7 thousand words instead of 17 and still covers 97 % of the text.
    default_min_count = 3
    splitting: Splitting | None = "names"

    def __init__(self, ratio: Ratio) -> None:
        self.ratio = ratio

    @property
    def size(self) -> int:
        """Number of bytes of all documents."""
        return sum(len(text.encode()) for _, text in self._texts)

    @property
    def documents(self) -> Mapping[str, int]:
        """Number of documents in each split."""
        counts = Counter(split for split, _ in self._texts)
        return {split: counts[split] for split in SPLITS}

    def blocks(self) -> Iterator[Block]:
        """Yield one block per document; a document is small."""
        for split, text in self._texts:
            yield Block(split, text, len(text.encode()))

    @cached_property
    def _texts(self) -> list[tuple[str, str]]:
        """Split and text of each document: two megabytes, collected in a few seconds."""
        texts = [
            (split_of(name, self.ratio), "\n".join(lines) + "\n") for name, lines in _documents()
        ]
        if not texts:
            raise CorpusError(
                "this Python has neither help topics nor sources: give a text file as source"
            )
        return texts

    def check(self, tokenizer: str, tokens: Mapping[str, int], words: int) -> None:
        """Accept any text: it depends on the version of Python."""


def _documents() -> Iterator[tuple[str, list[str]]]:
    """Yield each document's name and lines; a text that occurs twice is yielded once."""
    seen: set[str] = set()
    for name, texts in (*_topics(), *_modules()):
        lines: list[str] = []
        for text in texts:
            if text not in seen:
                seen.add(text)
                lines += tidy(text)
        if lines:
            yield name, lines


def _topics() -> Iterator[tuple[str, list[str]]]:
    try:
        from pydoc_data.topics import topics  # a large module: loaded only when it is needed
    except ImportError:
        return
    for name, text in sorted(topics.items()):
        yield f"topic {name}", [text]


def _modules() -> Iterator[tuple[str, list[str]]]:
    library = Path(sysconfig.get_path("stdlib"))
    paths = sorted(_sources(library), key=lambda path: path.as_posix())
    with bar("Reading modules", len(paths)) as advance:
        for path in paths:
            yield f"module {path.relative_to(library).as_posix()}", _docstrings(path)
            advance(1)


def _sources(folder: Path) -> Iterator[Path]:
    """Find source files without entering the skipped folders, which can be huge."""
    for path in folder.iterdir():
        if path.suffix == ".py":
            yield path
        elif path.is_dir() and path.name not in _SKIPPED and not path.name.startswith("config-"):
            yield from _sources(path)


def _docstrings(path: Path) -> list[str]:
    """Return the docstrings of a source file in order."""
    with warnings.catch_warnings():
        # Invalid escapes in the sources only warn; as errors they would drop the whole module.
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):  # a template or a sample of wrong code
            return []
    return [text for node in _documented(tree) if (text := ast.get_docstring(node))]


_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _documented(node: ast.AST) -> Iterator[_Documented]:
    """Yield every node that may have a docstring; only statements contain such nodes."""
    if isinstance(node, _Documented):
        yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _documented(child)


def tidy(text: str) -> list[str]:
    """Return one line per paragraph: wrapped lines joined, examples and underlines left out."""
    lines: list[str] = []
    previous = ""  # the line before, unchanged; empty when the next line starts a new paragraph
    example = False
    for line in inspect.cleandoc(text).splitlines():
        words = " ".join(line.split())
        example = bool(words) and (example or words.startswith(">>>"))
        if not words or example or _RULE.fullmatch(words):
            previous = ""
        elif len(previous.strip()) >= _WRAPPED and _indent(previous) == _indent(line):
            lines[-1] += " " + words
            previous = line
        else:
            lines.append(words)
            previous = line
    return lines


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
