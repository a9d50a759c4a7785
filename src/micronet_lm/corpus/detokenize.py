"""WikiText's tokens to text as people write it: `did n't cost $ 1 @,@ 000` to `didn't cost $1,000`.

WikiText was split by a tokenizer that kept no spacing. These rules put the usual spacing back:
they are right for nearly all of English prose, and no more than that. A line that is a heading
(`= = History = =`) becomes its words alone. `<unk>` stays.
"""

import re

_JOINED = re.compile(r" @([-,.])@ ")  # WikiText's own mark for what stood inside a word
_HEADING = re.compile(r"((?:= )+)(.+?)((?: =)+)")
_SHORT = re.compile(r"(?:n['’]t|['’](?:s|t|re|ve|ll|d|m|S|T|RE|VE|LL|D|M))")
_NUMBER = re.compile(r"\d[\d.,]*")
_LEFT = frozenset([*",.;:!?)]}%”»…", "...", "...."])
"""Tokens that follow the word before them without a space."""
_RIGHT = frozenset("([{“«$£€₹¥#°")
"""Tokens that precede the word after them without a space."""
_BOTH = frozenset("/—⁄")


def detokenize(text: str) -> str:
    """Return lines of WikiText as ordinary text, line for line."""
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    line = " ".join(line.split())
    heading = _HEADING.fullmatch(line)
    if heading and heading[1].count("=") == heading[3].count("="):
        line = heading[2]
    words = _JOINED.sub(r"\1", line).split(" ")
    parts: list[str] = []
    quotes = {'"': False, "'": False}  # whether one is open
    close = True  # whether the next word follows without a space
    for place, word in enumerate(words):
        after = words[place + 1] if place + 1 < len(words) else ""
        before = words[place - 1] if place else ""
        left = word in _LEFT or _SHORT.fullmatch(word) is not None
        right = word in _RIGHT
        if word in _BOTH or (word in {"–", ":"} and _numbers(before, after)):
            left = right = True
        elif word in quotes and not (word == "'" and not quotes[word] and before.endswith("s")):
            left, right = quotes[word], not quotes[word]
            quotes[word] = right
        elif word == "'":
            left = True  # the players' own
        parts.append(word if close or left else " " + word)
        close = right
    return "".join(parts)


def _numbers(*words: str) -> bool:
    return all(map(_NUMBER.fullmatch, words))
