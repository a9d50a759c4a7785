"""Choose among hypotheses, as a recognizer of speech, handwriting or spelling offers them."""

import argparse
import math
import sys
from collections.abc import Sequence

import micronet_lm as mn
from micronet_lm.errors import MicronetError

HYPOTHESES = [
    ("Return a knew list of the files in the directory.", -4.0),
    ("Return a new list of the files in the directory.", -4.5),
    ("Return a new lists of the file in the directory.", -4.2),
]
"""Texts with the recognizer's own log-probabilities."""

UNKNOWN = math.log(100_000)
"""What an unknown word costs beyond `<unk>`: it is one of very many words."""


def ranked(
    lm: mn.LM, hypotheses: Sequence[tuple[str, float]], weight: float = 0.7
) -> list[tuple[float, str]]:
    """Return hypotheses by the sum of both log-probabilities, the best first."""
    scored = lm.score_lines([text for text, _ in hypotheses])
    return sorted(
        (
            (own + weight * (line.log_probability - UNKNOWN * line.unknown), line.text)
            for (_, own), line in zip(hypotheses, scored, strict=True)
        ),
        reverse=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo")
    for score, text in ranked(mn.load(parser.parse_args().model), HYPOTHESES):
        print(f"{score:8.2f}  {text}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, MicronetError) as error:
        sys.exit(str(error))
