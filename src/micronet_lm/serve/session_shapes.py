"""Requests and answers of sessions, and of the WebSocket for typing."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from micronet_lm.serve.settings import MOST_CANDIDATES
from micronet_lm.serve.shapes import Answer, Count, ModelName, Replaces, Request, Special, Word


class SessionRequest(Request):
    """A text to begin with."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Return a"}]})
    text: str = ""
    model: ModelName = None


class SessionAnswer(Answer):
    """A session. Its id is a secret: who knows it may read on."""

    id: str
    model: str
    created: int
    tokens: int = Field(description="Tokens that were read.")


class FeedRequest(Request):
    """More text: letters, words or pages, put together as they are."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": " new"}]})
    text: str


class AskRequest(Request):
    """A question about what comes next."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"what": "next", "k": 3}, {"what": "complete", "prefix": "di"}]
        }
    )
    what: Literal["suggest", "next", "complete"] = "suggest"
    k: Count = 3
    prefix: str = Field(default="", description="For complete: letters that the word begins with.")
    special: Special = False


class AskAnswer(Answer):
    """Words, the likeliest first."""

    tokens: int
    words: list[Word]
    replaces: Replaces = ""


class Deleted(Answer):
    """What was deleted."""

    id: str
    deleted: bool = True


class Keystroke(Request):
    """A message of someone who types: the first `keep` characters of the last text stay."""

    id: int = Field(default=0, description="Comes back with the answer.")
    keep: Annotated[int, Field(ge=0)] = 0
    text: str = ""
    k: Annotated[int, Field(ge=1, le=MOST_CANDIDATES)] = 3


class Suggested(Answer):
    """The answer to a keystroke."""

    id: int
    words: list[Word]
    replaces: Replaces = ""
    ms: float = Field(description="Time that the model took.")


class SocketError(Answer):
    """A message that was refused; the socket stays open."""

    id: int
    error: str
