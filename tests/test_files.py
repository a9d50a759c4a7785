"""Files appear by rename, complete or not at all; what cannot be made is said by its own name."""

import os
import socket
from pathlib import Path

import pytest

from micronet_lm.files import locked, make_folder, replacing, write_text


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


@pytest.mark.parametrize("kind", ["fifo", "socket", "link"])
def test_what_is_not_a_regular_file_is_not_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":  # like a device, it is a node that only its own driver can make again
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    else:
        path.symlink_to("/dev/null")
    before = path.lstat()
    with pytest.raises(FileExistsError, match="not a regular file; choose another path") as caught:
        write_text(path, "text")
    assert caught.value.filename == str(path)
    assert path.lstat().st_ino == before.st_ino
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_to_a_regular_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("old")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").read_text() == "new"


def test_folders_are_made_where_the_parent_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / "one" / "file", "text")
    with pytest.raises(FileNotFoundError, match=r"the folder .*/new does not exist; make it first"):
        write_text(tmp_path / "new" / "folder" / "file", "text")
    with pytest.raises(FileNotFoundError, match="make it first"), locked(tmp_path / "new" / "run"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
    monkeypatch.chdir(tmp_path)
    write_text(
        Path("runs/demo/packed/file"), "text"
    )  # below the working directory as deep as asked
    make_folder(tmp_path / "data" / "mine")
    with pytest.raises(FileNotFoundError, match="make it first"):
        make_folder(Path("../new/folder"))
    monkeypatch.chdir("/")
    with pytest.raises(FileNotFoundError, match="the folder /new does not exist"):
        write_text(Path("/new/folder/file"), "text")
