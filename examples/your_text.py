"""Make a model of your own text with one command, and ask it."""

import argparse
import subprocess
import sys

import micronet_lm as mn
from micronet_lm.errors import MicronetError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", help="a file, a folder or a pattern")
    parser.add_argument("--out", default="mine")
    parser.add_argument("--minutes", default="10")
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "micronet_lm", "run", arguments.text, "--out", arguments.out]
    done = subprocess.run([*command, "--minutes", arguments.minutes], check=False)
    if done.returncode:  # the command has said why
        sys.exit(done.returncode)
    lm = mn.load(arguments.out)
    print("A line may begin with:", *(word for word, _ in lm.top_k("", k=5)))
    print("It writes:", "".join(lm.generate(max_tokens=30, temperature=0.7)))


if __name__ == "__main__":
    try:
        main()
    except (OSError, MicronetError) as error:
        sys.exit(str(error))
