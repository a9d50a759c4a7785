"""Continue texts as OpenAI's completions do; runs in worker threads."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from micronet_lm.runtime.model import LM
from micronet_lm.runtime.questions import check_text
from micronet_lm.runtime.state import State, TextToken
from micronet_lm.runtime.stopping import StopStrings
from micronet_lm.serve.completion_shapes import Choice, CompletionRequest, LogProbs, Prompt, Usage
from micronet_lm.serve.refusals import Refusal, TooLarge
from micronet_lm.serve.settings import MOST_CHOICES, Limits
from micronet_lm.serve.workers import Deadline


class Read(NamedTuple):
    """A prompt: its text, where it came as text, and its tokens."""

    text: str | None
    tokens: list[str]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A request whose values are checked and complete."""

    lm: LM
    prompts: list[Read]
    choices: int
    max_tokens: int
    temperature: float
    top_k: int
    top_p: float
    seed: int
    stop: tuple[str, ...]
    echo: bool
    logprobs: int | None

    def usage(self, written: int) -> Usage:
        """Return the tokens that were read and written."""
        read = sum(len(prompt.tokens) for prompt in self.prompts)
        return Usage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)


@dataclass
class Part:
    """What one token adds to a choice: text, and the token with its log-probabilities."""

    index: int
    text: str = ""
    tokens: list[TextToken] = field(default_factory=list)
    begin: int = 0
    """Where the first of the tokens begins in the choice's text."""
    finish: Literal["stop", "length"] | None = None
    written: int = 0


def make_job(lm: LM, asked: CompletionRequest, limits: Limits) -> Job:
    """Check a request against the model and the limits."""
    _refuse_unknown_ways(asked)
    prompts = [_read(lm, prompt, number) for number, prompt in enumerate(_each(asked.prompt))]
    choices = asked.n or 1
    if not 1 <= len(prompts) * choices <= MOST_CHOICES:
        raise TooLarge(
            f"{len(prompts)} prompts with {choices} choices each are asked for: 1 to "
            f"{MOST_CHOICES} are allowed; send several requests"
        )
    check_amount(sum(len(prompt.tokens) for prompt in prompts), limits)
    most = 16 if asked.max_tokens is None else asked.max_tokens
    if most > limits.written:
        raise TooLarge(f"max_tokens must be at most {limits.written:,}, got {most:,}")
    stop = (asked.stop,) if isinstance(asked.stop, str) else tuple(asked.stop or ())
    StopStrings(stop)  # refuses empty ones
    return Job(
        lm=lm,
        prompts=prompts,
        choices=choices,
        max_tokens=most,
        temperature=1.0 if asked.temperature is None else asked.temperature,
        top_k=asked.top_k or 0,
        top_p=1.0 if asked.top_p is None else asked.top_p,
        seed=secrets.randbits(32) if asked.seed is None else asked.seed % 2**64,
        stop=stop,
        echo=bool(asked.echo),
        logprobs=asked.logprobs,
    )


def check_amount(tokens: int, limits: Limits) -> None:
    """Refuse more text than a request may have read."""
    if tokens > limits.prompt:
        raise TooLarge(
            f"the request has {tokens:,} tokens to read: at most {limits.prompt:,} are allowed; "
            "send it in parts"
        )


def parts(job: Job, deadline: Deadline) -> Iterator[Part]:
    """Continue every prompt, part by part; the last part of each choice says why it ends."""
    for number, prompt in enumerate(job.prompts):
        echoed = list(_echo(job, prompt, deadline)) if job.echo else []
        begun = _begun(job.lm, prompt, keep_space=not job.echo)
        for choice in range(job.choices):
            index = number * job.choices + choice
            length = 0
            if echoed:
                text = "".join(step.piece for step in echoed)
                length = len(text)
                yield Part(index, text, echoed)
            yield from _continued(job, begun.fork(), index, length, deadline)


def whole_choices(job: Job, deadline: Deadline) -> tuple[list[Choice], Usage]:
    """Continue every prompt to its end."""
    texts: dict[int, list[Part]] = {}
    for part in parts(job, deadline):
        texts.setdefault(part.index, []).append(part)
    choices = [
        Choice(
            index=index,
            text="".join(part.text for part in own),
            logprobs=told(job, own),
            finish_reason=own[-1].finish,
        )
        for index, own in sorted(texts.items())
    ]
    return choices, job.usage(sum(part.written for own in texts.values() for part in own))


def told(job: Job, own: Sequence[Part]) -> LogProbs | None:
    """Return the log-probabilities of a choice's parts, where they are asked for."""
    if job.logprobs is None:
        return None
    found = LogProbs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
    tops: list[dict[str, float] | None] = []
    for part in own:
        place = part.begin
        for each in part.tokens:
            found.tokens.append(each.piece)
            found.token_logprobs.append(each.log_probability)
            found.text_offset.append(place)
            tops.append(None if each.log_probability is None else each.alternatives)
            place += len(each.piece)
    found.top_logprobs = tops if job.logprobs else None
    return found


def _continued(
    job: Job, state: State, index: int, length: int, deadline: Deadline
) -> Iterator[Part]:
    written = state.write_tokens(
        job.max_tokens,
        job.temperature,
        job.top_k,
        job.top_p,
        (job.seed + index % job.choices) % 2**64,
        alternatives=job.logprobs,
    )
    stopping = StopStrings(job.stop)
    shown = length
    for each in written:
        deadline.check()
        text = stopping.take(each.piece)
        shown += len(text)
        cut = stopping.found and shown <= length  # the stop text begins before this token
        yield Part(index, text, [] if cut else [each], length, written=1)
        length += len(each.piece)
        if stopping.found:
            break
    finish: Literal["stop", "length"] = "stop" if stopping.found else "length"
    yield Part(index, stopping.rest(), [], length, finish)


def _echo(job: Job, prompt: Read, deadline: Deadline) -> Iterator[TextToken]:
    if job.logprobs is None:
        for token, piece in zip(prompt.tokens, job.lm.screen.pieces(prompt.tokens), strict=True):
            yield TextToken(token, piece, None, {})
        return
    for each in job.lm.start().read_tokens(prompt.tokens, job.logprobs):
        deadline.check()
        yield each


def _begun(lm: LM, prompt: Read, *, keep_space: bool) -> State:
    """Return a state that has read a prompt; a space at its end stands before the first word."""
    if prompt.text is not None and keep_space:
        return lm.begun(prompt.text)
    if not prompt.tokens:
        return lm.begun("")
    state = lm.start()
    state.feed_words(prompt.tokens)
    return state


def _each(prompt: Prompt) -> list[str | list[int]]:
    """Return the prompts of a request one by one."""
    if isinstance(prompt, str):
        return [prompt]
    if prompt and all(isinstance(token, int) for token in prompt):
        return [prompt]  # type: ignore[list-item]  # all are ids
    return list(prompt)  # type: ignore[arg-type]  # texts, or lists of ids


def _read(lm: LM, prompt: str | list[int], number: int) -> Read:
    if isinstance(prompt, str):
        return Read(prompt, lm.encoder.tokens(prompt))
    if not prompt:
        raise Refusal(f"prompt {number} is an empty list of ids: give one id or more, or a text")
    return Read(None, words_of(lm, prompt))


def words_of(lm: LM, ids: list[int]) -> list[str]:
    """Return the tokens of ids; refuse ids outside the vocabulary."""
    if any(not -(2**31) <= number < 2**31 for number in ids):
        raise Refusal(f"ids must be from 0 to {lm.engine.vocabulary_size - 1}")
    check_text(ids, lm.engine.vocabulary_size, least=0)
    return [lm.engine.word(number) for number in ids]


def _refuse_unknown_ways(asked: CompletionRequest) -> None:
    """Refuse what would change the answer and is not done here."""
    refused = {
        "best_of": asked.best_of not in (None, asked.n or 1),
        "suffix": bool(asked.suffix),
        "presence_penalty": bool(asked.presence_penalty),
        "frequency_penalty": bool(asked.frequency_penalty),
        "logit_bias": bool(asked.logit_bias),
    }
    for name, is_set in refused.items():
        if is_set:
            raise Refusal(f"{name} is not supported here: leave it out")
