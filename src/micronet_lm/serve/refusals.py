"""Refusals of a server in HTTP: a status and one sentence."""

from typing import Any

from micronet_lm.errors import MicronetError


class Refusal(MicronetError):
    """A request that is not answered."""

    status = 400
    kind = "invalid_request_error"
    """OpenAI's name for the kind of error."""
    code: str | None = None
    headers: dict[str, str]

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.headers = {}


class NotAllowed(Refusal):
    """A client without the key."""

    status, kind, code = 401, "authentication_error", "invalid_api_key"

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.headers = {"www-authenticate": "Bearer"}


class WrongHost(Refusal):
    """A host name, or the origin of a WebSocket, that this server does not go by."""

    status, code = 421, "wrong_host"


class NotFound(Refusal):
    """A model, session or page that does not exist."""

    status, code = 404, "not_found"


class WrongMethod(Refusal):
    """A path that is asked in another way."""

    status, code = 405, "method_not_allowed"


class OtherModel(Refusal):
    """A saved session whose model's file has changed."""

    status, code = 409, "model_changed"


class TooLarge(Refusal):
    """A body, a prompt or an answer beyond the limits."""

    status, code = 413, "too_large"


class Busy(Refusal):
    """More requests than may wait, or more sessions than may be held."""

    status, kind, code = 429, "rate_limit_error", "busy"

    def __init__(self, sentence: str, retry_after: int = 1) -> None:
        super().__init__(sentence)
        self.headers = {"retry-after": str(retry_after)}


class TooSlow(Refusal):
    """A request that took longer than is allowed."""

    status, kind, code = 503, "server_error", "timeout"

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.headers = {"retry-after": "1"}


class SlowClient(Refusal):
    """A client that did not send its request in time."""

    status, code = 408, "timeout"


class Broken(Refusal):
    """An error of the server's own."""

    status, kind, code = 500, "server_error", "internal"


def as_json(refusal: Refusal) -> dict[str, Any]:
    """Return the body of an answer that refuses, in OpenAI's shape."""
    message = str(refusal).encode("utf-8", "replace").decode()  # half a surrogate is not UTF-8
    return {
        "error": {"message": message, "type": refusal.kind, "param": None, "code": refusal.code}
    }
