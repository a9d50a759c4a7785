"""What the verbs that run a packed file share: opening it, and what is said of unknown words."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micronet_lm.cli.output import tell
from micronet_lm.cli.parsers import DEFAULT

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM

SHOWN = 5
"""Unknown words that are named at most."""


def open_model(path: Path, engine: str) -> "LM":
    """Open a packed file with an engine; the demo model if the default file does not exist."""
    from micronet_lm.runtime.demo import demo_model
    from micronet_lm.runtime.model import load

    if path == DEFAULT and not path.is_file():
        path = demo_model()
    return load(path, engine)  # type: ignore[arg-type]  # argparse lets only these pass


def warn_of_unknown_words(lm: "LM", text: str) -> None:
    """Name the words of a text that the model does not know: all are one word to it."""
    unknown = lm.encoder.unknown_words(text)
    if unknown:
        distinct = list(dict.fromkeys(unknown))
        named = ", ".join(map(repr, distinct[:SHOWN])) + (", ..." if distinct[SHOWN:] else "")
        number = len(lm.encoder.tokenizer.tokens(text))
        tell(
            f"micronet: {len(unknown)} of {number} tokens are not in the model's vocabulary and "
            f"are read as <unk>: {named}"
        )


def unknown_share(unknown: int, tokens: int) -> dict[str, float]:
    """Return how many of the predicted tokens are `<unk>`, for a report."""
    return {"unknown": unknown, "unknown_share": unknown / tokens}


def unknown_sentence(report: Mapping[str, Any]) -> list[str]:
    """Say how much of a perplexity is that of `<unk>`; nothing where no token is."""
    if not report["unknown"]:
        return []
    return [
        f"{report['unknown']:,} of these tokens ({report['unknown_share']:.1%}) are <unk>: which "
        "word stands there was not asked, so the perplexity is lower than that of the text itself"
    ]
