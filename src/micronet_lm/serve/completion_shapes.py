"""OpenAI's completions: requests and answers."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from micronet_lm.serve.settings import MOST_CHOICES, MOST_LOGPROBS
from micronet_lm.serve.shapes import Answer, ModelName, Request


def _told_as(sentence: str) -> WrapValidator:
    """Refuse what is of none of a field's types with one sentence, not one for each type."""

    def validated(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise ValueError(sentence) from None

    return WrapValidator(validated)


Prompt = str | list[str] | list[int] | list[list[int]]
_PROMPT = _told_as("prompt must be a text, a list of texts, a list of ids, or a list of such lists")
_STOP = _told_as("stop must be a text or a list of texts")


class StreamOptions(Request):
    """What a stream tells besides."""

    include_usage: bool = False


class CompletionRequest(Request):
    """A text to continue, as OpenAI's and llama.cpp's servers take it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"prompt": "Return a new", "max_tokens": 12, "temperature": 0.5, "seed": 0},
                {"prompt": ["Return", "Raise"], "max_tokens": 8, "stop": ["."], "logprobs": 2},
            ]
        }
    )
    prompt: Annotated[
        Prompt, _PROMPT, Field(description="A text, ids of tokens, or a list of either.")
    ] = ""
    model: ModelName = None
    max_tokens: Annotated[int | None, Field(ge=0)] = 16
    temperature: Annotated[
        float | None, Field(ge=0, description="0 always takes the likeliest word.")
    ] = 1.0
    top_p: Annotated[float | None, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int | None, Field(ge=0, description="0 means all words.")] = 0
    seed: Annotated[int | None, Field(ge=-(2**63), lt=2**63)] = None
    stop: Annotated[str | list[str] | None, _STOP, Field(description="Texts that end it.")] = None
    n: Annotated[int | None, Field(ge=1, le=MOST_CHOICES)] = 1
    echo: bool | None = False
    logprobs: Annotated[int | None, Field(ge=0, le=MOST_LOGPROBS)] = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    user: str | None = None
    best_of: Annotated[int | None, Field(description="Refused unless it equals n.")] = None
    suffix: Annotated[str | None, Field(description="Refused: the model only writes on.")] = None
    presence_penalty: Annotated[float | None, Field(description="Refused unless 0.")] = 0
    frequency_penalty: Annotated[float | None, Field(description="Refused unless 0.")] = 0
    logit_bias: Annotated[dict[str, float] | None, Field(description="Refused unless empty.")] = (
        None
    )


class LogProbs(Answer):
    """Tokens with their natural log-probabilities, whatever the temperature was."""

    tokens: list[str] = Field(description="What each token adds to the text: joined, the text.")
    token_logprobs: list[float | None] = Field(description="Null for a text's first token.")
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int] = Field(description="Where each token begins, in characters.")


class Choice(Answer):
    """One continuation."""

    index: int
    text: str
    logprobs: LogProbs | None = None
    finish_reason: Literal["stop", "length"] | None = None


class Usage(Answer):
    """Tokens that were read and written."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionAnswer(Answer):
    """The continuations."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | None = None
    system_fingerprint: str | None = None


def as_event(answer: Any) -> str:
    """Return one server-sent event."""
    return f"data: {answer}\n\n"
