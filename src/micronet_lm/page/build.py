"""Put page, engine and model together to one HTML file."""

import base64
import html
import re
from pathlib import Path

from micronet_lm.artifact import open_packed
from micronet_lm.errors import ArtifactError, UsageError
from micronet_lm.files import open_regular, write_text

_HERE = Path(__file__).parent
_MODULES = ("module.js", "index.js")
_SHARED = ("dom.js", "picking.js")
"""Modules of the server's page that this page has, too."""
_LARGEST = 64 << 20
"""Bytes of a model at most: browsers refuse pages that are much larger."""


def page(model: Path) -> str:
    """Return the page for a packed model as text."""
    packed = open_packed(model)  # refuses what the engine in the page would refuse
    with open_regular(model) as file:
        content = file.read()
    if len(content) > _LARGEST:
        raise UsageError(
            f"{model} has {len(content):,} bytes and a page takes at most {_LARGEST:,}: quantize "
            "or prune the model, or serve it"
        )
    folder = engine_folder()
    name = str(packed.model.card.get("name") or "unnamed")
    parts = {
        "title": html.escape(f"micronet-lm: {name}"),
        "engine": _base64((folder / "dist" / "micronet.wasm").read_bytes()),
        "model": _base64(content),
        "library": "\n".join(_inlined(folder / "src" / module) for module in _MODULES),
        "shared": "\n".join(_inlined(_HERE.parent / "serve" / "page" / one) for one in _SHARED),
        "transport": (_HERE / "transport.js").read_text(encoding="utf-8"),
        "page": (_HERE / "page.js").read_text(encoding="utf-8"),
    }
    template = (_HERE / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def write_page(model: Path, path: Path) -> int:
    """Write the page for a packed model; return the number of its bytes."""
    text = page(model)
    write_text(path, text)
    return len(text.encode())


def engine_folder() -> Path:
    """Return the folder of the engine for browsers: in wheels beside this file, else in web/."""
    for folder in (_HERE / "web", _HERE.parents[2] / "web"):
        if (folder / "dist" / "micronet.wasm").is_file():
            return folder
    raise ArtifactError(
        "this installation lacks the engine for browsers: install micronet-lm from a wheel, or run "
        "'make web' in a clone"
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _inlined(module: Path) -> str:
    """Return a module's text as a part of one script: nothing is imported or exported."""
    text = module.read_text(encoding="utf-8")
    text = re.sub(
        r"^(?:import .*? from \"\./.*?\"|export \{.*?\});\n", "", text, flags=re.MULTILINE
    )
    return re.sub(r"^export (?=async|class|function|const)", "", text, flags=re.MULTILINE)
