"""Requests and answers of the package's own questions, with examples for the OpenAPI document."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from micronet_lm.serve.settings import MOST_CANDIDATES, MOST_TEXTS


class Request(BaseModel):
    """A request's body: unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="after")
    def _has_whole_characters(self) -> Self:
        """Refuse halves of surrogate pairs, which JSON may hold and UTF-8 may not."""
        for key in self.model_fields_set:
            value = getattr(self, key)
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str) and not text.isascii():
                    try:
                        text.encode()
                    except UnicodeEncodeError as error:
                        raise ValueError(f"{key} has half a character at {error.start}") from None
        return self


class Answer(BaseModel):
    """An answer's body."""


ModelName = Annotated[
    str | None,
    Field(description="Name of a model, as GET /v1/models gives it; the first one where absent."),
]
Text = Annotated[str, Field(description="The text so far.", examples=["Return a new"])]
Count = Annotated[int, Field(ge=1, le=MOST_CANDIDATES, description="How many words.")]
Special = Annotated[
    bool, Field(description="Give the model's own tokens: <unk>, <eos> and spacing marks, too.")
]


class ErrorDetail(Answer):
    """What was refused."""

    message: str = Field(description="One sentence: the value, the limit and the remedy.")
    type: str
    param: str | None = None
    code: str | None = None


class ErrorAnswer(Answer):
    """Every refusal, in OpenAI's shape."""

    error: ErrorDetail


class Word(Answer):
    """A word that may come next."""

    word: str
    probability: float


class WordsAnswer(Answer):
    """Words, the likeliest first."""

    model: str
    words: list[Word]


Replaces = Annotated[
    str,
    Field(
        description="End of the text that a picked word takes the place of; empty for a new word."
    ),
]


class SuggestAnswer(WordsAnswer):
    """Words for someone who types, and what of the text they replace."""

    replaces: Replaces


class SuggestRequest(Request):
    """A text that someone is typing."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Return a ne", "k": 3}]})
    text: Text
    k: Count = 3
    model: ModelName = None


class NextRequest(Request):
    """A text whose next word is asked for."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Return a new", "k": 5}]})
    text: Text
    k: Count = 5
    special: Special = False
    model: ModelName = None


class CompleteRequest(NextRequest):
    """A text and the beginning of its next word."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Return a new", "prefix": "di", "k": 3}]}
    )
    prefix: str = Field(description="Letters that the word begins with.", examples=["di"])


class ScoreRequest(Request):
    """Texts to score, each on its own."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"texts": ["Return the file.", "Return file the."], "lines": True}]
        }
    )
    texts: Annotated[list[str], Field(max_length=MOST_TEXTS)]
    lines: bool = Field(
        default=False,
        description="Score each text as a line: all its words count, and its end.",
    )
    words: bool = Field(default=False, description="Tell every token's log-probability, too.")
    model: ModelName = None


class ScoredWord(Answer):
    """A token and its natural log-probability."""

    word: str
    log_probability: float


class TextScore(Answer):
    """The score of one text."""

    log_probability: float
    perplexity: float
    tokens: int = Field(description="Tokens that were predicted.")
    unknown: int = Field(description="How many of them are <unk>.")
    words: list[ScoredWord] | None = None


class ScoreAnswer(Answer):
    """The scores of the texts, in their order."""

    model: str
    scores: list[TextScore]


class ExplainRequest(Request):
    """A text to explain word by word."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Return a new list.\nReturn a new view."}]}
    )
    text: Text
    expected: int = Field(default=5, ge=0, le=20, description="Likeliest words to tell for each.")
    voters: int = Field(default=5, ge=0, le=20, description="Earlier words that the cache names.")
    model: ModelName = None


class Voter(Answer):
    """An earlier word of the text that the cache voted for."""

    place: int = Field(description="Number of the word in the text, from 0.")
    part: float = Field(description="Its part of all the cache's votes.")


class ExplainedToken(Answer):
    """One word of a text."""

    piece: str = Field(description="What it adds to the text, with its space or line end.")
    known: bool
    log_probability: float | None = Field(description="Null for the first word: it is only read.")
    without_cache: float | None = Field(description="The same without the cache.")
    share: float = Field(description="The cache's share of the probability at this place.")
    cache: float = Field(description="The cache's own probability of the word.")
    voters: list[Voter]
    expected: list[Word]


class ExplainAnswer(Answer):
    """A text, word by word, and what it amounts to."""

    model: str
    words: list[ExplainedToken]
    tokens: int = Field(description="Words that were predicted.")
    unknown: int = Field(description="How many of them the vocabulary lacks; they count as <unk>.")
    perplexity: float
    perplexity_without_cache: float
    bits_per_byte: float | None = Field(
        description="Of all characters, the first word's, too; null where a word is unknown and "
        "the model has no spelling model."
    )


class ModelObject(Answer):
    """A model in OpenAI's shape."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "micronet"


class ModelList(Answer):
    """All models of this server, the default first."""

    object: Literal["list"] = "list"
    data: list[ModelObject]


class TokenizerInfo(Answer):
    """What lm-evaluation-harness asks of a tokenizer; a line's end is the only special token."""

    tokenizer_class: str
    vocab_size: int
    eos_token: str = "\n"  # noqa: S105
    bos_token: str | None = None
    pad_token: str | None = None
    unk_token: str = "<unk>"  # noqa: S105
    chat_template: str | None = None


class TokenizeRequest(Request):
    """A text to split into tokens."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"prompt": "Return a new list."}]})
    prompt: str
    add_special_tokens: bool = Field(default=False, description="Changes nothing: there are none.")
    return_token_strs: bool = False
    model: ModelName = None


class TokenizeAnswer(Answer):
    """A text's tokens."""

    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None = None


class DetokenizeRequest(Request):
    """Tokens to put together to text."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tokens": [0, 1]}]})
    tokens: list[int]
    model: ModelName = None


class DetokenizeAnswer(Answer):
    """The text."""

    prompt: str


class Health(Answer):
    """Whether the server answers."""

    status: Literal["ok"] = "ok"
    version: str
    models: list[str]


class Card(Answer):
    """A model's card, what its file holds and what it costs."""

    model_config = ConfigDict(extra="allow")
    name: str
    engine: str
    file: dict[str, int] = Field(description="Bytes of the file by what they hold.")
    parts: dict[str, int] = Field(description="Bits of the tensors by part.")
    card: dict[str, Any]
    accounting: dict[str, Any] = Field(description="Storage, operations and score, by rules.")
