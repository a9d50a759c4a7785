"""The verbs `micronet corpus build` and `micronet corpus info`."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from micronet_lm.cli.parsers import add_parser
from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.corpus.splits import SPLITS, parse_ratio
from micronet_lm.corpus.textfiles import SUFFIXES
from micronet_lm.corpus.tokenizers import TOKENIZERS

_BUILD_EXAMPLES = """\
examples:
  micronet corpus build --out corpora/python-docs
  micronet corpus build wikitext-2 --out corpora/wikitext-2
  micronet corpus build wikitext-2 --from downloads/wikitext-2-v1.zip --out corpora/wikitext-2
  micronet corpus build 'letters/**/*.txt' --out corpora/letters --max-vocabulary 20000
"""

_INFO_EXAMPLE = """\
example:
  micronet corpus info corpora/wikitext-2 --json
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb `corpus` with its own verbs to the command line."""
    corpus = verbs.add_parser("corpus", help="turn text into a corpus, or look at one")
    actions = corpus.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_build(actions)
    info = add_parser(
        actions,
        "info",
        help="show what a corpus holds",
        description="Show the splits, the vocabulary and the fingerprint of a corpus.",
        epilog=_INFO_EXAMPLE,
    )
    info.add_argument("folder", metavar="DIR", type=Path, help="a folder that build wrote")
    info.add_argument("--top", type=int, default=10, metavar="N", help="frequent words to show")
    info.add_argument("--json", action="store_true", help="print one JSON object")
    info.set_defaults(run=_info)


def _add_build(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    build = add_parser(
        actions,
        "build",
        help="turn text into a corpus on disk",
        description="Turn text into ids on disk with a vocabulary sorted by frequency.",
        epilog=_BUILD_EXAMPLES,
    )
    build.add_argument(
        "source",
        metavar="SOURCE",
        nargs="?",
        default="python-docs",
        help="python-docs (the default, needs no download), wikitext-2, wikitext-103, or UTF-8 "
        f"text: a file, a folder (its {' and '.join('*' + s for s in SUFFIXES)} files, "
        "subfolders included) or a pattern",
    )
    build.add_argument("--out", metavar="DIR", type=Path, required=True, help="folder to write")
    build.add_argument(
        "--tokenizer",
        metavar="|".join(TOKENIZERS),
        help="how text becomes words: wikitext splits at white space, word suits ordinary text "
        "(default: what suits the source)",
    )
    build.add_argument(
        "--from",
        dest="from_path",
        metavar="PATH",
        type=Path,
        help="folder, zip or tar of a wikitext corpus that is here already; without it, the "
        "archive is fetched beside DIR",
    )
    build.add_argument(
        "--min-count",
        metavar="N",
        type=int,
        help="rarer words become <unk> (default: 1 for wikitext, 3 for python-docs, else 2)",
    )
    build.add_argument(
        "--max-vocabulary",
        metavar="N",
        type=int,
        help="most entries of the vocabulary, <unk> and <eos> included (default: no limit)",
    )
    build.add_argument(
        "--split",
        metavar="A,B,C",
        help="shares of train, valid and test: of bytes for text files, of documents for "
        "python-docs (default: 0.9,0.05,0.05)",
    )
    build.add_argument("--force", action="store_true", help="replace a corpus that is in DIR")
    build.add_argument("--json", action="store_true", help="print one JSON object")
    build.set_defaults(run=_build)


def _build(arguments: argparse.Namespace) -> int:
    corpus = build_corpus(
        arguments.source,
        arguments.out,
        tokenizer=arguments.tokenizer,
        from_path=arguments.from_path,
        min_count=arguments.min_count,
        max_vocabulary=arguments.max_vocabulary,
        split=None if arguments.split is None else parse_ratio(arguments.split),
        force=arguments.force,
    )
    _show(corpus, top=10, as_json=arguments.json)
    return 0


def _info(arguments: argparse.Namespace) -> int:
    _show(Corpus.open(arguments.folder), top=max(arguments.top, 0), as_json=arguments.json)
    return 0


def _describe(corpus: Corpus, top: int) -> dict[str, Any]:
    """Give everything worth knowing about a corpus, ready for JSON."""
    manifest = asdict(corpus.manifest)
    del manifest["files"]
    share = {s: manifest["unknown"][s] / manifest["tokens"][s] for s in SPLITS}
    words = zip(corpus.vocabulary.words[:top], corpus.vocabulary.counts[:top], strict=True)
    return {
        "path": str(corpus.path),
        **manifest,
        "unknown_share": share,
        "most_frequent": [{"word": word, "count": count} for word, count in words],
    }


def _show(corpus: Corpus, *, top: int, as_json: bool) -> None:
    facts = _describe(corpus, top)
    if as_json:
        sys.stdout.write(json.dumps(facts, ensure_ascii=False) + "\n")
        return
    table = Table("split", *(("documents",) if facts["documents"] else ()), "bytes", "tokens")
    table.add_column("<unk>")
    for column in table.columns[1:]:
        column.justify = "right"
    for split in SPLITS:
        row = [facts["text_bytes"][split], facts["tokens"][split]]
        if facts["documents"]:
            row.insert(0, facts["documents"][split])
        share = f"{facts['unknown_share'][split]:.2%}"
        table.add_row(split, *(f"{number:,}" for number in row), share)
    lines = {
        "corpus": facts["path"],
        "source": facts["source"],
        "tokenizer": facts["tokenizer"],
        "vocabulary": f"{facts['words']:,} words, ids of type {facts['dtype']}",
        "frequent": "  ".join(entry["word"] for entry in facts["most_frequent"]),
        "fingerprint": facts["fingerprint"],
    }
    console = Console(highlight=False)
    for label, text in lines.items():
        console.print(f"{label:<12}{text}", markup=False, soft_wrap=True)
    console.print(table)
