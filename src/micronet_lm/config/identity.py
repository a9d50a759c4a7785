"""Which values of a recipe identify what is made from it.

Fingerprints are hashes of a recipe's values. A key that is added to a section would change the
fingerprints of everything made before, although at its first value it changes nothing. So newer
keys take part only with other values than that.
"""

from typing import Any

from micronet_lm.config.section import Section

NEWER: dict[str, Any] = {
    "model.dropout_places": "sublayers",
    "model.scale_embedding": False,
    "cache.trained": True,
    "cache.fade": 0,
    "train.prefix": 0,
    "train.optimizer": "adam",
    "search.fade": None,
    "prune.weights": "matrices",
    "quantize.batch": None,
}
"""Keys that were added to their sections, with the value that changes nothing."""


def identifying(section: Section, lead: str = "") -> dict[str, Any]:
    """Return a section's plain values without newer keys at the value that changes nothing.

    `lead` is the section's name, `model.`; a whole recipe has none.
    """
    return _without(section.model_dump(mode="json"), lead)


def _without(tree: dict[str, Any], lead: str) -> dict[str, Any]:
    found = {}
    for key, value in tree.items():
        name = lead + key
        if name in NEWER and NEWER[name] == value:
            continue
        found[key] = _without(value, f"{name}.") if isinstance(value, dict) else value
    return found
