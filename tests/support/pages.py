"""Pages of the documentation: what they show, and whether it is what is printed."""

import re
from itertools import pairwise


def blocks(language: str, page: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


def console(page: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a page's consoles, and the lines that it shows under each."""
    found: list[tuple[str, list[str]]] = []
    for line in "".join(blocks("console", page)).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line:  # an empty one parts two commands
            found[-1][1].append(line)
    return found


def without_digits(lines: list[str]) -> list[str]:
    """Return lines as their words, every number as 0: machines differ in last digits."""
    return [re.sub(r"\d[\d.,]*\d|\d", "0", " ".join(line.split())) for line in lines]


def assert_prints(printed: list[str], page: list[str]) -> None:
    """Check that the lines of the page follow each other; `...` stands for lines left out."""
    printed, rest = without_digits(printed), [*page, ""]
    at = 0
    for line, after in pairwise(without_digits(rest)):
        if line == "...":
            at = printed.index(after, at) if after else len(printed)
        else:
            assert printed[at] == line
            at += 1
    assert at == len(printed)
