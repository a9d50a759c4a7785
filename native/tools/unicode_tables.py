"""Write native/src/unicode_tables.hpp: what the tokenizers know of characters, in few bytes.

The classes of the tokenizer `word` come from corpus/scripts.py, everything else from the
`unicodedata` of the Python that runs this, so that C++ and that Python agree on every text. Run it
with Python 3.11, the oldest one served: newer ones know more characters.

    python native/tools/unicode_tables.py            write the file
    python native/tools/unicode_tables.py --check    exit with 1 where it is stale
"""

import sys
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path

from micronet_lm.corpus import scripts

TARGET = Path(__file__).parents[1] / "src" / "unicode_tables.hpp"
EVERY = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
SIGMA, FINAL_SIGMA = "\N{GREEK CAPITAL LETTER SIGMA}", "\N{GREEK SMALL LETTER FINAL SIGMA}"


def varint(number: int) -> list[int]:
    """Return a number as bytes of 7 bits, the lowest first; all but the last have the top bit."""
    out = []
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return [*out, number]


def zigzag(number: int) -> int:
    """Return a number that may be negative as one that is not."""
    return 2 * number if number >= 0 else -2 * number - 1


def runs(values: Iterable[tuple[int, int]]) -> list[int]:
    """Encode values by code point: gap, length, and value of each run.

    A run has code points one or two apart (length · 2 + 1 for two) that share a value.
    """
    pairs = sorted(values)
    out: list[int] = []
    end, place = 0, 0
    while place < len(pairs):
        start, value = pairs[place]
        best, stride = 1, 1
        for step in (1, 2):
            count = 1
            while place + count < len(pairs) and pairs[place + count] == (
                start + step * count,
                value,
            ):
                count += 1
            if count > best:
                best, stride = count, step
        out += varint(start - end) + varint(2 * (best - 1) + (stride == 2)) + varint(zigzag(value))
        end = start + stride * (best - 1) + 1
        place += best
    return out


def members(codes: Iterable[int]) -> list[int]:
    """Encode a set as the places where it begins and ends, each as its distance from the last."""
    out: list[int] = []
    last, previous = 0, -2
    for code in sorted(codes):
        if code != previous + 1:
            if previous >= 0:
                out += varint(previous + 1 - last)
                last = previous + 1
            out += varint(code - last)
            last = code
        previous = code
    return out + (varint(previous + 1 - last) if previous >= 0 else [])


def listed(table: str) -> set[int]:
    """Return the code points of a table in corpus/scripts.py."""
    found: set[int] = set()
    for entry in table.split():
        first, _, last = entry.partition("-")
        found.update(range(int(first, 16), int(last or first, 16) + 1))
    return found


def having(predicate: Callable[[str], bool]) -> set[int]:
    """Return the code points of characters with a property."""
    return {code for code in EVERY if predicate(chr(code))}


def mapped(change: Callable[[str], str]) -> tuple[list[tuple[int, int]], list[tuple[int, str]]]:
    """Return what a change of case does: distances to single characters, and longer results."""
    single, several = [], []
    for code in EVERY:
        result = change(chr(code))
        if len(result) > 1:
            several.append((code, result))
        elif ord(result) != code:
            single.append((code, ord(result) - code))
    return single, several


def sequences(entries: list[tuple[int, str]]) -> list[int]:
    """Encode longer results: gap, length, code points."""
    out: list[int] = []
    last = 0
    for code, result in entries:
        out += varint(code - last) + varint(len(result))
        for sign in result:
            out += varint(ord(sign))
        last = code
    return out


def decompositions() -> dict[str, list[int]]:
    """Encode canonical decompositions, column by column: they compress better so.

    Gaps between the characters; changes of the first part, doubled, and one more where it is never
    put together again; second parts, 0 where there is none.
    """
    columns: dict[str, list[int]] = {"kDecomposed": [], "kFirstParts": [], "kSecondParts": []}
    last, last_first = 0, 0
    for code in EVERY:
        text = unicodedata.decomposition(chr(code))
        if not text or text.startswith("<"):
            continue
        first, second = (*(int(part, 16) for part in text.split()), 0)[:2]
        never = unicodedata.normalize("NFC", chr(code)) != chr(code)
        columns["kDecomposed"] += varint(code - last)
        columns["kFirstParts"] += varint(2 * zigzag(first - last_first) + never)
        columns["kSecondParts"] += varint(second)
        last, last_first = code, first
    return columns


def tables() -> dict[str, list[int]]:
    """Return all tables by the name that they have in C++."""
    final_after = {
        before: having(
            lambda sign, before=before: (before + sign + SIGMA).lower()[-1] == FINAL_SIGMA
        )
        for before in "1A"
    }
    lower, lower_long = mapped(str.lower)
    upper, upper_long = mapped(str.upper)
    title, title_long = mapped(str.title)
    special_title = [entry for entry in title if entry not in set(upper)]
    # A character whose capital is several characters may still have one alone as its title case.
    kept = [(code, 0) for code, _ in upper if code not in dict(title) | dict(title_long)]
    return {
        "kAlphanumeric": members(having(str.isalnum)),
        "kNumeric": members(having(lambda sign: sign.isalnum() and not sign.isalpha())),
        "kDecimal": members(having(str.isdecimal)),
        "kMarks": members(listed(scripts._MARKS)),
        "kWithoutSpaces": members(listed(scripts._WITHOUT_SPACES)),
        "kKatakana": members(listed(scripts._KATAKANA)),
        "kWidePunctuation": members(listed(scripts._WIDE_PUNCTUATION)),
        "kUppercase": runs((code, 0) for code in having(str.isupper)),
        "kLowerOrTitle": runs(
            (code, 0)
            for code in having(lambda sign: sign.islower() or unicodedata.category(sign) == "Lt")
        ),
        "kCasedBeforeSigma": members(final_after["1"]),
        "kIgnoredBeforeSigma": members(final_after["A"] - final_after["1"]),
        "kToLower": runs(lower),
        "kToUpper": runs(upper),
        "kToTitle": runs([*special_title, *kept]),
        "kToLowerLong": sequences(lower_long),
        "kToUpperLong": sequences(upper_long),
        "kToTitleLong": sequences(title_long),
        "kCombiningClass": runs(
            (code, unicodedata.combining(chr(code)))
            for code in EVERY
            if unicodedata.combining(chr(code))
        ),
        **decompositions(),
    }


def source() -> str:
    """Return the text of the file."""
    lines = [
        "// Written by native/tools/unicode_tables.py; do not edit. unicode.cpp reads it.",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "namespace micronet::unicode_tables {",
        "",
        f'constexpr char kVersion[] = "{unicodedata.unidata_version}";',
    ]
    for name, table in tables().items():
        lines += ["", f"constexpr uint8_t {name}[] = {{"]
        for place in range(0, len(table), 96):
            lines.append("    " + ",".join(map(str, table[place : place + 96])) + ",")
        lines.append("};")
    return "\n".join([*lines, "", "}  // namespace micronet::unicode_tables", ""])


def main() -> int:
    """Write or check the file."""
    if "--check" in sys.argv[1:]:
        same = TARGET.read_text(encoding="utf-8") == source()
        if not same:
            print(f"{TARGET.name} is stale: run native/tools/unicode_tables.py with Python 3.11")
        return not same
    TARGET.write_text(source(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
