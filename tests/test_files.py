"""Files appear by rename, complete or not at all; what cannot be made is said by its own name."""

from pathlib import Path

import pytest

from micronet_lm.files import locked, replacing, write_text


def test_a_file_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    write_text(path, "old")
    with pytest.raises(ValueError, match="no"), replacing(path) as temporary:
        temporary.write_text("new")
        raise ValueError("no")
    assert path.read_text() == "old"
    assert [file.name for file in path.parent.iterdir()] == ["file"]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="choose a file name") as caught:
        write_text(tmp_path, "text")
    assert caught.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    for folder in (file, file / "deeper"):
        with pytest.raises(NotADirectoryError, match="choose another path") as caught:
            write_text(folder / "new", "text")
        assert caught.value.filename == str(folder)
        with pytest.raises(NotADirectoryError, match="choose another path"), locked(folder):
            pass
    assert file.read_text() == "kept"
