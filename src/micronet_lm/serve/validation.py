"""Turn what pydantic says of a wrong request into one sentence."""

from collections.abc import Mapping, Sequence
from typing import Any


def sentence_of(errors: Sequence[Mapping[str, Any]] | Sequence[Any]) -> str:
    """Name the place of the first error and what is wrong there, without the value itself."""
    if not errors:
        return "the request is not of the form that GET /openapi.json describes"
    first = errors[0]
    path = [str(part) for part in first.get("loc", ()) if part not in {"body", "query", "path"}]
    message = str(first.get("msg", "is not valid"))
    if first.get("type") == "extra_forbidden":
        message = "is not a key here"
    elif first.get("type") == "missing":
        message = "is missing"
    elif first.get("type") == "json_invalid":
        return f"the body is not JSON: {first.get('ctx', {}).get('error', 'it cannot be read')}"
    elif first.get("type") == "model_attributes_type" and not path:  # as curl -d sends it
        return "the body must be a JSON object, sent with the header Content-Type: application/json"
    elif first.get("type") == "value_error":  # our own sentence
        return message.removeprefix("Value error, ")
    elif message.startswith("Input should be"):
        message = "must be" + message.removeprefix("Input should be")
    place = ".".join(path)[:200] or "the body"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place} {message[:1].lower()}{message[1:]}{more}; GET /openapi.json describes it"
