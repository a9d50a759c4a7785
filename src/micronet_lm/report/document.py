"""A report as a list of sections, written as one self-contained HTML page or as Markdown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from micronet_lm.report.palette import themed, variables


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
    """Rows of cells: first columns of text, then columns of numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    """How many columns are text."""
    wraps: bool = False
    """Whether the columns of text hold sentences, which take several lines."""
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
    made: str = ""
    """When, with what and by which command it was made, in one line."""
    sections: Sequence[Section] = field(default_factory=tuple)

    @property
    def pictures(self) -> list[Picture]:
        """All drawings, in order."""
        blocks = [block for section in self.sections for block in section.blocks]
        return [block for block in blocks if isinstance(block, Picture)]


_STYLE = (
    variables()
    + """
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 2.2rem 1.4rem 4rem; }
header { border-bottom: 3px solid var(--accent); padding-bottom: 1rem; margin-bottom: 1.4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
header p { color: var(--soft); margin: 0; overflow-wrap: anywhere; }
header p.made { font-size: .88rem; margin-top: .3rem; }
nav { font-size: .92rem; margin: 0 0 1.8rem; }
nav a { color: var(--accent); margin-right: 1.1rem; text-decoration: none; white-space: nowrap; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .8rem; }
.numbers { display: grid; gap: .8rem;
  grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr)); }
.numbers div { background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  padding: .8rem .9rem; }
.numbers b { display: block; font-size: 1.45rem; line-height: 1.2; }
.numbers span { color: var(--soft); font-size: .88rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; min-width: 50%; font-size: .92rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .38rem .6rem; text-align: right; vertical-align: top; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; border-bottom-width: 2px; vertical-align: bottom; }
th:first-child, td:first-child, .text { text-align: left; }
table.wraps { width: 100%; }
.wraps td:first-child, .wraps td.text { white-space: normal; overflow-wrap: anywhere;
  min-width: 8rem; }
tr.strong td { font-weight: 650; background: var(--strong); }
figure { margin: 1.2rem 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; display: block; margin: 0 auto; }
figcaption { color: var(--soft); font-size: .9rem; text-align: center; margin-top: .4rem; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  padding: .9rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere;
  font: .88rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; border-top: 1px solid var(--line);
  padding-top: .8rem; }
@media (max-width: 700px) { figure svg { min-width: 560px; } }
@media print {
  nav { display: none; }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  figure, tr, pre, .numbers { break-inside: avoid; }
  figure, .wide { overflow: visible; }
  th, td { padding: .25rem .35rem; font-size: 8.5pt; }
  .numbers { grid-template-columns: repeat(3, 1fr); }
}
"""
)


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
    made = f'<p class="made">{escape(document.made)}</p>' if document.made else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(document.title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<header><h1>{escape(document.title)}</h1><p>{escape(document.subtitle)}</p>{made}"
        "</header>"
        f"<nav>{links}</nav>{body}"
        "<footer>Made by micronet-lm. This page is complete in itself.</footer>"
        "</main></body></html>\n"
    )


def to_markdown(document: Document, folder: str = "figures") -> str:
    """Write the same as Markdown; pictures are files in `folder`."""
    parts = [f"# {document.title}", document.subtitle, *[document.made][: bool(document.made)]]
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
        case Table(head=head, rows=rows, strong=strong, texts=texts, wraps=wraps):
            top = _html_cells("th", head, texts)
            body = "".join(
                f"<tr{' class=strong' if number == strong else ''}>"
                f"{_html_cells('td', row, texts)}</tr>"
                for number, row in enumerate(rows)
            )
            return (
                f'<div class="wide"><table{" class=wraps" if wraps else ""}>'
                f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
            )
        case Picture(caption=caption, svg=svg):
            drawn = svg[svg.index("<svg") :]  # without the declaration of a file of its own
            drawn = themed(re.sub(r'<g id="[^"]*"', "<g", drawn))  # the same in every drawing
            return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def _html_cells(tag: str, cells: Sequence[str], texts: int) -> str:
    return "".join(
        f"<{tag}{' class=text' if 0 < number < texts else ''}>{escape(cell)}</{tag}>"
        for number, cell in enumerate(cells)
    )


def _markdown(block: Block, folder: str) -> str:
    match block:
        case Text(text=text):
            return text
        case Code(text=text):
            return f"```\n{text}\n```"
        case Numbers(entries=entries):
            return "\n".join(f"- {key}: **{value}**" for key, value in entries)
        case Table(head=head, rows=rows, texts=texts):
            lines = [head, ["---"] * texts + ["---:"] * (len(head) - texts), *rows]
            return "\n".join(f"| {' | '.join(_cell(c) for c in line)} |" for line in lines)
        case Picture(name=name, caption=caption):
            return f"![{caption}]({folder}/{name}.svg)"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
