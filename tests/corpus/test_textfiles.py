"""Text files of a user: each read once, and names that cannot be used refused in a sentence."""

from pathlib import Path

import pytest

from micronet_lm.corpus.textfiles import find_files, left_out
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


def test_files_that_are_left_out_are_counted(tmp_path: Path) -> None:
    """A folder of `.rst` files with one `.txt` was taken for its one file, without a word."""
    (tmp_path / "deep").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("a.txt", "b.MD", ".hidden", ".git/config"):
        (tmp_path / name).write_text("text\n")
    assert left_out(str(tmp_path)) == ""
    assert left_out(str(tmp_path / "a.txt")) == ""
    (tmp_path / "c.jpg").write_text("x")
    assert left_out(f"{tmp_path}/").startswith("1 other file is left out: of a folder, *.txt and")
    for name in ("d.rst", "deep/e.rst"):
        (tmp_path / name).write_text("text\n")
    told = left_out(str(tmp_path))
    assert told.startswith("3 other files are left out")
    assert told.endswith(f"'{tmp_path}/**/*.rst'")
    assert [file.name for file in find_files(f"{tmp_path}/**/*.rst")] == ["d.rst", "e.rst"]
