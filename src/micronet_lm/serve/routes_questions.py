"""The package's own questions: suggest, next, complete, score and explain."""

from collections.abc import Callable, Sequence

from fastapi import APIRouter

from micronet_lm.errors import InferenceError
from micronet_lm.evaluation import perplexity
from micronet_lm.runtime.explanation import ExplainedWord, explain
from micronet_lm.runtime.model import LM
from micronet_lm.runtime.scores import Scored, Scores
from micronet_lm.runtime.state import State
from micronet_lm.runtime.suggestions import Candidate, Suggestions
from micronet_lm.serve.batching import Ids
from micronet_lm.serve.completions import check_amount
from micronet_lm.serve.service import Service
from micronet_lm.serve.settings import Limits
from micronet_lm.serve.shapes import (
    CompleteRequest,
    ExplainAnswer,
    ExplainedToken,
    ExplainRequest,
    NextRequest,
    ScoreAnswer,
    ScoredWord,
    ScoreRequest,
    SuggestAnswer,
    SuggestRequest,
    TextScore,
    Voter,
    Word,
    WordsAnswer,
)
from micronet_lm.serve.workers import Deadline


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["Questions"])
    limits, workers = service.settings.limits, service.workers

    async def words(
        model: str | None, text: str, ask: Callable[[State], list[Candidate]]
    ) -> WordsAnswer:
        opened = service.shelf.get(model)

        def work(_: object) -> tuple[int, list[Word]]:
            check_text_amount(opened.lm, text, limits)
            state = opened.lm.after(text)
            return state.tokens, as_words(ask(state))

        tokens, found = await workers.run(work)
        service.metrics.tokens["read"] += tokens
        return WordsAnswer(model=opened.name, words=found)

    @router.post("/v1/suggest")
    async def suggest_words(asked: SuggestRequest) -> SuggestAnswer:
        """Suggest words to someone who types: endings of an unfinished word, else next words."""
        opened = service.shelf.get(asked.model)

        def work(_: object) -> Suggestions:
            check_text_amount(opened.lm, asked.text, limits)
            return opened.lm.suggest(asked.text, asked.k)

        found = await workers.run(work)
        service.metrics.tokens["read"] += found.tokens
        return SuggestAnswer(model=opened.name, words=as_words(found), replaces=found.replaces)

    @router.post("/v1/next")
    async def next_words(asked: NextRequest) -> WordsAnswer:
        """Give the likeliest words after a text."""
        return await words(asked.model, asked.text, lambda at: at.top_k(asked.k, asked.special))

    @router.post("/v1/complete")
    async def complete_word(asked: CompleteRequest) -> WordsAnswer:
        """Give the likeliest words after a text that begin with some letters."""
        return await words(
            asked.model,
            asked.text,
            lambda at: at.complete(asked.prefix, asked.k, asked.special),
        )

    @router.post("/v1/score")
    async def score_texts(asked: ScoreRequest) -> ScoreAnswer:
        """Score texts, each on its own; requests that come at once share batches."""
        opened = service.shelf.get(asked.model)
        lm = opened.lm
        ids = await workers.run(lambda _: texts_to_score(lm, asked, limits))
        found = await service.batcher(opened).score(ids)
        service.metrics.tokens["read"] += sum(map(len, ids))
        scores = [
            as_score(lm, own, one.tolist(), asked.words)
            for own, one in zip(ids, found, strict=True)
        ]
        return ScoreAnswer(model=opened.name, scores=scores)

    @router.post("/v1/explain")
    async def explain_text(asked: ExplainRequest) -> ExplainAnswer:
        """Tell of every word how likely it was, what was expected, and what the cache gave."""
        opened = service.shelf.get(asked.model)

        def work(deadline: Deadline) -> ExplainAnswer:
            check_text_amount(opened.lm, asked.text, limits)
            found = explain(opened.lm, asked.text, asked.expected, asked.voters, deadline.check)
            return as_explanation(opened.name, found, bits_per_byte(opened.lm, asked.text))

        answer = await workers.run(work)
        service.metrics.tokens["read"] += len(answer.words)
        return answer

    return router


def check_text_amount(lm: LM, text: str, limits: Limits) -> None:
    """Refuse more text than a request may have read; no text has more tokens than characters."""
    if len(text) > limits.prompt:
        check_amount(len(lm.encoder.tokens(text)), limits)


def texts_to_score(lm: LM, asked: ScoreRequest, limits: Limits) -> list[Ids]:
    """Return the ids of texts or lines; refuse those that have nothing to predict."""
    texts = [f"\n{text}\n" for text in asked.texts] if asked.lines else asked.texts
    ids = [lm.encoder.ids(text) for text in texts]
    check_amount(sum(map(len, ids)), limits)
    for number, (text, own) in enumerate(zip(asked.texts, ids, strict=True)):
        if asked.lines and ("\n" in text or "\r" in text):
            raise InferenceError(
                f"line {number} has a newline inside: split texts at line ends, or leave lines out"
            )
        if len(own) < 2:
            raise InferenceError(
                f"text {number} has {len(own)} tokens and nothing to predict: it needs 2 or more; "
                "leave it out, or ask with lines"
            )
    return ids


def as_score(lm: LM, ids: Ids, scores: list[float], words: bool) -> TextScore:
    """Return one text's score."""
    named = map(lm.engine.word, ids[1:].tolist())
    own = Scores(Scored(*pair) for pair in zip(named, scores, strict=True))
    return TextScore(
        log_probability=own.log_probability,
        perplexity=own.perplexity,
        tokens=own.tokens,
        unknown=own.unknown,
        words=[ScoredWord(word=word, log_probability=score) for word, score in own]
        if words
        else None,
    )


def as_words(found: Sequence[Candidate | tuple[str, float]]) -> list[Word]:
    """Return candidates as they are sent."""
    return [Word(word=word, probability=chance) for word, chance in found]


def bits_per_byte(lm: LM, text: str) -> float | None:
    """Return the bits per byte of a text, where every word of it has a probability."""
    if not lm.can_spell and lm.encoder.unknown in lm.encoder.ids(text):
        return None
    return lm.bits_per_byte(text)


def as_explanation(
    model: str, found: Sequence[ExplainedWord], per_byte: float | None
) -> ExplainAnswer:
    """Return an explained text as it is sent."""
    predicted = found[1:]
    losses = [-(word.log_probability or 0.0) for word in predicted]
    alone = [-(word.without_cache or 0.0) for word in predicted]
    words = [
        ExplainedToken(
            piece=word.piece,
            known=word.known,
            log_probability=word.log_probability,
            without_cache=word.without_cache,
            share=word.share,
            cache=word.cache,
            voters=[Voter(place=place, part=part) for place, part in word.voters],
            expected=as_words(word.expected),
        )
        for word in found
    ]
    return ExplainAnswer(
        model=model,
        words=words,
        tokens=len(predicted),
        unknown=sum(not word.known for word in predicted),
        perplexity=perplexity(sum(losses) / len(losses)),
        perplexity_without_cache=perplexity(sum(alone) / len(alone)),
        bits_per_byte=per_byte,
    )
