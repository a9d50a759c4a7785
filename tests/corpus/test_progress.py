import io
import sys

import pytest
from rich.console import Console

from micronet_lm.progress import bar


def test_nothing_is_written_where_nobody_watches(capfd: pytest.CaptureFixture[str]) -> None:
    assert not sys.stderr.isatty()
    with bar("Counting words", total=10, unit="B") as advance:
        advance(10)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("unit", "amount"), [("B", "5/10 bytes"), ("", "5/10")])
def test_a_terminal_sees_a_bar(unit: str, amount: str) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    with bar("Counting words", total=10, unit=unit, console=screen) as advance:
        advance(5)
    assert isinstance(screen.file, io.StringIO)
    assert "Counting words" in screen.file.getvalue()
    assert amount in screen.file.getvalue()
