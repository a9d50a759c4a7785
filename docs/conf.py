"""How Sphinx makes a site of the documents: `make docs`. Nothing is fetched from the network.

The source folder is the repository, not `docs/`: README, the changelog and the pages link to each
other by relative paths that work on a repository page and on the site alike.
"""

import re
from typing import Any

from sphinx.application import Sphinx

import micronet_lm

project = "micronet-lm"
author = "micronet-lm contributors"
version = release = micronet_lm.__version__

root_doc = "docs/index"
include_patterns = [
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("docs/**.md", "examples/README.md", "web/README.md"),
]
extensions = ["myst_parser", "sphinx.ext.autodoc"]

myst_heading_anchors = 3  # links such as quantization.md#places

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
python_use_unqualified_type_names = True
add_module_names = False

UNLISTED = [
    *(
        "Allocation",
        "BinLoss",
        "Confirmation",
        "Container",
        "CountedTable",
        "Curve",
        "Label",
        "Labels",
        "Manifest",
        "NgramTable",
        "Processes",
    ),
    *("Products", "Progress", "Reader", "Report", "Scheme", "Section", "Settings", "Setup"),
    *("Spelling", "Summary"),
]
nitpick_ignore_regex = [
    # Types of other projects: resolving them would need their sites.
    ("py:.*", r"(?!micronet_lm\.).*"),
    # Types of ours that signatures mention and the API reference leaves out.
    ("py:class", rf"micronet_lm\..*\.({'|'.join(UNLISTED)})"),
]

html_theme = "furo"
html_title = f"micronet-lm {release}"
html_extra_path = ["pictures/index.html"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2b6cb0", "color-brand-content": "#2b6cb0"},
    "dark_css_variables": {"color-brand-primary": "#90cdf4", "color-brand-content": "#90cdf4"},
}


def code_spans(
    app: Sphinx, what: str, name: str, thing: object, options: Any, lines: list[str]
) -> None:
    """Turn the `code spans` of docstrings, which are Markdown's, into those of reStructuredText.

    Bars around a symbol, as in |φ|, are no substitution; fields of named tuples have no docstring.
    """
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)(\w?)", _literal, "\n".join(lines))
    text = re.sub(r"\|(\w+)\|", r"\|\1\|", text)
    lines[:] = text.split("\n")


def _literal(span: re.Match[str]) -> str:
    code, letter = span.groups()
    return f"``{code}``" + (f"\\ {letter}" if letter else "")


def setup(app: Sphinx) -> None:
    """Connect what this file adds to Sphinx."""
    app.connect("autodoc-process-docstring", code_spans)
