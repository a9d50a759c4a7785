"""Licences of the texts that this project names; a model of a text is passed on under its terms."""

_LICENCES = {
    "python-docs": "PSF-2.0",
    "wikitext-2": "CC-BY-SA-3.0",
    "wikitext-103": "CC-BY-SA-3.0",
}


def licence_of(source: str) -> str | None:
    """Return the SPDX name of the licence of a corpus's source; None if it is not known."""
    return _LICENCES.get(source)
