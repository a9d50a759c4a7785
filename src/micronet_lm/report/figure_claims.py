"""Whether the paper's claims about the cache figures hold (section 5.2)."""

import math
from collections.abc import Mapping

from micronet_lm.report.claims import ERRORS, Claim, Judgement, Verdict

_RARE = "words of rank above 1000"

MOST_RARE = "most is lost on rare words"
"""The quantity that is above zero if rare words have more than half of the difference."""


def judged_figure(
    claim: Claim,
    sums: Mapping[str, Mapping[str, float]] | None,
    shares: Mapping[str, float],
    noise: float,
) -> Judgement:
    """Judge a claim about the figures from their sums and the share of each kind of token.

    A model is one seed: with another, all its tokens' losses would change by the noise. A kind of
    tokens has its share of that.
    """
    if sums is None or claim.positive is None:
        return Judgement(verdict=Verdict.MISSING)
    quantity, model = claim.positive
    own, error = sums[model], ERRORS * math.sqrt(2) * noise
    if quantity == MOST_RARE:
        value, error = own[_RARE] - own["all tokens"] / 2, error * abs(shares[_RARE] - 0.5)
        text = f"{own[_RARE]:+.4f} of {own['all tokens']:+.4f} nats per token"
    else:
        kind = quantity.removeprefix("minus ")
        value, error = own[kind], error * shares[kind]
        text = f"{value:+.4f} ± {error:.4f} nats per token"
        value = -value if quantity.startswith("minus ") else value
    if abs(value) <= error:
        return Judgement(verdict=Verdict.UNTOLD, ours=text)
    return Judgement(verdict=Verdict.HOLDS if value > 0 else Verdict.FAILS, ours=text)
