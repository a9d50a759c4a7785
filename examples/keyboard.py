"""Type a text with three suggestions at hand, and count the keys that they save."""

import argparse
import sys

import micronet_lm as mn
from micronet_lm.errors import MicronetError


def type_with_suggestions(lm: mn.LM, text: str, slots: int = 3) -> int:
    """Type a text, taking a suggestion as soon as it is the right word; return the keys pressed."""
    state = lm.start()
    keys = 0
    for word in text.split():
        typed = ""
        while typed != word:
            offered = [candidate.word for candidate in state.suggest(slots)]
            print(f"{typed + '|':<20}{'   '.join(offered)}")
            keys += 1
            if word in offered:  # one key takes it, with the space after it
                state.feed(word.removeprefix(typed))
                break
            typed = word[: len(typed) + 1]
            state.feed(typed[-1])
        else:
            keys += 1  # the space
        state.feed(" ")
    return keys


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", nargs="?", default="Return a new string with the first character")
    parser.add_argument("--model", default="demo")
    arguments = parser.parse_args()
    keys = type_with_suggestions(mn.load(arguments.model), arguments.text)
    letters = len(arguments.text) + 1  # a space at the end, as after every word
    print(f"{keys} keys for {letters} characters: {100 * (letters - keys) / letters:.0f} % saved")


if __name__ == "__main__":
    try:
        main()
    except (OSError, MicronetError) as error:
        sys.exit(str(error))
