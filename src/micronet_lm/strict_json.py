"""Parse JSON strictly: one value for each name, finite numbers, Unicode text.

Python's own parser accepts more than JSON has, and some of it does harm: a name that stands twice
silently loses a value, `NaN` and `1e999` become numbers that no other reader takes. All of that is
a ValueError here whose message says what is wrong.
"""

import json
import math
from typing import Any, NoReturn

LONGEST_NUMBER = 400
"""Most characters of a number: no finite one needs more."""
FINITE_POWER = 308
"""Every number below 10 to this power is finite as a double."""


def parse_json(text: str | bytes, what: str, *, power: int = FINITE_POWER) -> Any:
    """Parse JSON; refuse duplicate names, numbers from 10 to `power` on, and half characters.

    `what` begins the message of an error, as in 'line 3 is not JSON'.
    """

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in items:
            if name in found:
                raise _RefusedError(f"{what} names {short(name)} twice")
            found[name] = value
        return found

    def constant(name: str) -> NoReturn:
        raise _RefusedError(f"{what} has the number {name}")

    def checked(digits: str) -> str:
        if len(digits) > LONGEST_NUMBER:
            raise _RefusedError(
                f"{what} has a number of {len(digits):,} characters, at most {LONGEST_NUMBER} are "
                "allowed"
            )
        if _power(digits) >= power:
            raise _RefusedError(
                f"{what} has the number {short(digits)}, which is not below 1e{power}"
            )
        return digits

    def whole(digits: str) -> int | float:
        # −0 is a number, but not one of the whole ones that sizes and offsets are.
        return -0.0 if digits == "-0" else int(checked(digits))

    try:
        text = text if isinstance(text, str) else text.decode("utf-8")
        found = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_constant=constant,
            parse_int=whole,
            parse_float=lambda digits: float(checked(digits)),
        )
        if "\\u" in text or not text.isascii():
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{what} is not UTF-8") from None
    except UnicodeEncodeError:
        raise ValueError(f"{what} has text with half of a surrogate pair") from None
    except RecursionError:
        raise ValueError(f"{what} has values within values without end") from None
    except _RefusedError:
        raise
    except ValueError as error:
        raise ValueError(f"{what} is not JSON: {error}") from None
    return found


def short(value: Any) -> str:
    """Return a value as short text on one line, for a message."""
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class _RefusedError(ValueError):
    """JSON that is not strict; its message is complete."""


def _power(digits: str) -> float:
    """Return the power of ten of a number's first digit that is not 0, by its text.

    How a number is rounded must not decide whether a file is accepted.
    """
    mantissa, _, exponent = digits.lower().lstrip("-").partition("e")
    before, _, after = mantissa.partition(".")
    if first := before.lstrip("0"):
        power = len(first) - 1
    elif first := after.lstrip("0"):
        power = len(first) - len(after) - 1
    else:
        return -math.inf
    return power + int(exponent or "0")
