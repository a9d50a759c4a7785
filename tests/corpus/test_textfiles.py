"""Text files of a user: each read once, and names that cannot be used refused in a sentence."""

from pathlib import Path

import pytest

from micronet_lm.corpus.textfiles import find_files
from micronet_lm.errors import CorpusError


def test_a_file_that_is_reached_twice_is_read_once(tmp_path: Path) -> None:
    """A loop of links gave each file forty times, with a pattern."""
    text = tmp_path / "text"
    (text / "deep").mkdir(parents=True)
    (text / "b.txt").write_text("b\n")
    (text / "deep" / "c.txt").write_text("c\n")
    (text / "a.txt").symlink_to("b.txt")
    (text / "d.txt").hardlink_to(text / "b.txt")
    (text / "deep" / "loop").symlink_to(text)
    expected = [text / "b.txt", text / "deep" / "c.txt"]
    assert find_files(str(text)) == expected
    assert find_files(f"{text}/**/*.txt") == expected


def test_a_user_that_does_not_exist_is_named() -> None:
    with pytest.raises(CorpusError, match="no user of the path ~nobody-here"):
        find_files("~nobody-here/text.txt")


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    """The corpus was built, and then its manifest could not be written."""
    path = tmp_path / "text\udcff.txt"
    path.write_text("some text\n")
    with pytest.raises(CorpusError, match="is not UTF-8"):
        find_files(str(path))
