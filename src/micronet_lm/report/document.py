"""A report as a list of sections, written as one self-contained HTML page or as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True, kw_only=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Code:
    """Commands or generated text, verbatim."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells; the first column is text, the others are numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    strong: int | None = None
    """Number of the most important row."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A drawing as SVG."""

    name: str
    """Name of its file beside the Markdown."""
    caption: str
    svg: str


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A few large numbers with their names."""

    entries: Sequence[tuple[str, str]]


Block = Text | Code | Table | Picture | Numbers


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading and its contents."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, kw_only=True)
class Document:
    """A whole report."""

    title: str
    subtitle: str
    sections: Sequence[Section] = field(default_factory=tuple)

    @property
    def pictures(self) -> list[Picture]:
        """All drawings, in order."""
        blocks = [block for section in self.sections for block in section.blocks]
        return [block for block in blocks if isinstance(block, Picture)]


_STYLE = """
:root { --ink: #1c2430; --soft: #5b6675; --line: #dfe4ea; --panel: #f6f8fa; --accent: #2f6690; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 2.2rem 1.4rem 4rem; }
header { border-bottom: 3px solid var(--accent); padding-bottom: 1rem; margin-bottom: 1.4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
header p { color: var(--soft); margin: 0; }
nav { font-size: .92rem; margin: 0 0 1.8rem; }
nav a { color: var(--accent); margin-right: 1.1rem; text-decoration: none; white-space: nowrap; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .8rem; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(240px, 1fr)); gap: .8rem; }
.numbers div { background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  padding: .8rem .9rem; }
.numbers b { display: block; font-size: 1.45rem; line-height: 1.2; }
.numbers span { color: var(--soft); font-size: .86rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .38rem .6rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
tr.strong td { font-weight: 650; background: #eef5fa; }
figure { margin: 1.2rem 0; }
figure svg { max-width: 100%; height: auto; display: block; margin: 0 auto; }
figcaption { color: var(--soft); font-size: .88rem; text-align: center; margin-top: .4rem; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  padding: .9rem 1rem; overflow-x: auto; white-space: pre-wrap;
  font: .88rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; border-top: 1px solid var(--line);
  padding-top: .8rem; }
@media print { nav { display: none; } main { max-width: none; } }
"""


def to_html(document: Document) -> str:
    """Return one self-contained page: no network, no other files."""
    links = " ".join(
        f'<a href="#s{number}">{escape(section.title)}</a>'
        for number, section in enumerate(document.sections)
    )
    body = "".join(
        f'<section id="s{number}"><h2>{escape(section.title)}</h2>'
        + "".join(_html(block) for block in section.blocks)
        + "</section>"
        for number, section in enumerate(document.sections)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(document.title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<header><h1>{escape(document.title)}</h1><p>{escape(document.subtitle)}</p></header>"
        f"<nav>{links}</nav>{body}"
        "<footer>Made by micronet-lm. This page is complete in itself.</footer>"
        "</main></body></html>\n"
    )


def to_markdown(document: Document, folder: str = "figures") -> str:
    """Return the same as Markdown; pictures are files in `folder`."""
    parts = [f"# {document.title}", document.subtitle]
    for section in document.sections:
        parts.append(f"## {section.title}")
        parts += [_markdown(block, folder) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def _html(block: Block) -> str:
    match block:
        case Text(text=text):
            return f"<p>{escape(text)}</p>"
        case Code(text=text):
            return f"<pre>{escape(text)}</pre>"
        case Numbers(entries=entries):
            cells = (f"<div><b>{escape(v)}</b><span>{escape(k)}</span></div>" for k, v in entries)
            return f'<div class="numbers">{"".join(cells)}</div>'
        case Table(head=head, rows=rows, strong=strong):
            top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
            lines = (
                f"<tr{' class=strong' if number == strong else ''}>"
                + "".join(f"<td>{escape(cell)}</td>" for cell in row)
                + "</tr>"
                for number, row in enumerate(rows)
            )
            body = "".join(lines)
            return (
                f'<div class="wide"><table><thead><tr>{top}</tr></thead>'
                f"<tbody>{body}</tbody></table></div>"
            )
        case Picture(caption=caption, svg=svg):
            drawn = svg[svg.index("<svg") :]  # without the declaration of a separate file
            return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def _markdown(block: Block, folder: str) -> str:
    match block:
        case Text(text=text):
            return text
        case Code(text=text):
            return f"```\n{text}\n```"
        case Numbers(entries=entries):
            return "\n".join(f"- {key}: **{value}**" for key, value in entries)
        case Table(head=head, rows=rows):
            lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
            return "\n".join(f"| {' | '.join(_cell(c) for c in line)} |" for line in lines)
        case Picture(name=name, caption=caption):
            return f"![{caption}]({folder}/{name}.svg)"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
