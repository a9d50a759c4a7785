"""Why a text surprised a model: word by word what was expected, and what the cache gave."""

from collections.abc import Callable
from dataclasses import dataclass

from micronet_lm.errors import InferenceError
from micronet_lm.runtime.model import LM


@dataclass(frozen=True, kw_only=True)
class ExplainedWord:
    """One token of a text."""

    piece: str
    """What it adds to the text, its space or line end included."""
    known: bool
    """Whether the vocabulary has it."""
    log_probability: float | None = None
    """Natural log-probability; None for the first token, which is only read."""
    without_cache: float | None = None
    """The same without the cache."""
    share: float = 0.0
    """λ, the cache's share at this place."""
    cache: float = 0.0
    """The cache's own probability of the token."""
    voters: tuple[tuple[int, float], ...] = ()
    """Earlier tokens with the largest votes of the cache: their number and part of all votes."""
    expected: tuple[tuple[str, float], ...] = ()
    """The likeliest words and their probabilities."""


def explain(
    lm: LM,
    text: str,
    expected: int = 5,
    voters: int = 5,
    check: Callable[[], None] = lambda: None,
) -> list[ExplainedWord]:
    """Explain every token of a text; `expected` and `voters` bound what is named of each.

    `check` is called before each token: it may raise, to end long work.
    """
    tokens = lm.encoder.tokens(text)
    ids = lm.encoder.ids_of(tokens)
    if len(ids) < 2:
        raise InferenceError(
            f"a text of {len(ids)} tokens has nothing to predict: it needs 2 or more"
        )
    pieces = lm.screen.pieces(tokens)
    numbers = ids.tolist()
    known = [number != lm.encoder.unknown for number in numbers]
    words = [ExplainedWord(piece=pieces[0], known=known[0])]
    # The state learns words that the vocabulary lacks; the session reads what is scored.
    state, session = lm.start(), lm.engine.start()
    scores = lm.engine.score(ids).tolist()
    for place, number in enumerate(numbers[1:], start=1):
        check()
        session.feed(numbers[place - 1])
        influence = session.influence(number, voters)
        likeliest = []
        if expected:
            state.feed_words([tokens[place - 1]])
            likeliest = state.top_k(expected)
        words.append(
            ExplainedWord(
                piece=pieces[place],
                known=known[place],
                log_probability=scores[place - 1],
                without_cache=influence.without_cache,
                share=influence.share,
                cache=influence.cache,
                voters=influence.voters,
                expected=tuple((word, chance) for word, chance in likeliest),
            )
        )
    return words
