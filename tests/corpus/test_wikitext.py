"""The published corpora, from folders and archives of every kind."""

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.corpus import wikitext as wikitext_module
from micronet_lm.corpus.wikitext import PUBLISHED, Published
from micronet_lm.errors import CorpusError, UsageError

TEXTS = {
    "wiki.train.tokens": " \n = Title = \n a <unk> b \n" * 5,
    "wiki.valid.tokens": " a c \n",
    "wiki.test.tokens": " b \n \n",
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make WikiText-2 a corpus of a few lines, with all its checks."""
    sizes = [len(text) for text in TEXTS.values()]
    published = Published(
        address=PUBLISHED["wikitext-2"].address,
        bytes=dict(zip(("train", "valid", "test"), sizes, strict=True)),
        tokens={"train": 45, "valid": 3, "test": 3},
        words=6,
    )
    monkeypatch.setitem(PUBLISHED, "wikitext-2", published)


def write_folder(folder: Path, texts: dict[str, str] = TEXTS) -> Path:
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def write_tar(path: Path, names: dict[str, bytes], mode: str) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in names.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def write_zip(path: Path, names: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in names.items():
            archive.writestr(name, data)
    return path


def in_folder(name: str = "wikitext-2") -> dict[str, bytes]:
    return {f"{name}/{file}": text.encode() for file, text in TEXTS.items()}


def test_wikitext_2_is_the_published_one(wikitext_2: Corpus) -> None:
    # Merity et al. (2016), table 1, with `<eos>` for each line.
    assert wikitext_2.manifest.tokens == {"train": 2088628, "valid": 217646, "test": 245569}
    assert wikitext_2.vocabulary.size == 33278
    assert wikitext_2.split("train").dtype == np.uint16
    assert wikitext_2.vocabulary.words[:5] == ("the", ",", ".", "of", "<unk>")
    assert wikitext_2.vocabulary.counts[0] == 113161
    assert (
        wikitext_2.decode(wikitext_2.split("valid")[:9])
        == "\n= Homarus gammarus =\n\nHomarus gammarus"
    )


def test_wikitext_2_counts_are_those_of_the_ids(wikitext_2: Corpus) -> None:
    counted = np.bincount(wikitext_2.split("train"), minlength=wikitext_2.vocabulary.size)
    assert tuple(counted.tolist()) == wikitext_2.vocabulary.counts


@pytest.mark.usefixtures("tiny")
def test_every_kind_of_place(tmp_path: Path) -> None:
    members = in_folder()
    flat = {name.rpartition("/")[2]: data for name, data in members.items()}
    shuffled = dict(reversed(members.items()))
    foreign = {name: data.upper() for name, data in in_folder("wikitext-103").items()}
    packed = tmp_path / "packed"
    packed.mkdir()
    write_tar(packed / "wikitext-2.tar.gz", members, "w:gz")
    write_zip(packed / "wikitext-103-v1.zip", {"other": b""})
    places = [
        write_folder(tmp_path / "direct"),
        write_folder(tmp_path / "outer" / "wikitext-2").parent,
        packed,
        write_zip(tmp_path / "a.zip", members),
        write_zip(tmp_path / "flat.zip", flat),
        write_tar(tmp_path / "a.tar", members, "w"),
        write_tar(tmp_path / "a.tar.xz", shuffled, "w:xz"),
        write_tar(tmp_path / "a.tar.bz2", {f"./{k}": v for k, v in members.items()}, "w:bz2"),
        write_tar(tmp_path / "both.tar", foreign | members, "w"),
    ]
    built = [
        build_corpus("wikitext-2", tmp_path / f"c{n}", from_path=place)
        for n, place in enumerate(places)
    ]
    assert {corpus.fingerprint for corpus in built} == {built[0].fingerprint}
    assert built[0].decode(built[0].split("train")[:9]) == "\n= Title =\na <unk> b\n"
    assert built[0].decode(built[0].split("valid")) == "a <unk>\n"


@pytest.mark.usefixtures("tiny")
def test_paths_inside_archives_are_never_written(tmp_path: Path) -> None:
    evil = {"../evil.txt": b"x", "/tmp/evil.txt": b"x"} | in_folder("../../wikitext-2")  # noqa: S108
    inside = tmp_path / "inside"
    inside.mkdir()
    for place in (
        write_zip(inside / "e.zip", evil),
        write_tar(inside / "e.tar", evil, "w"),
    ):
        build_corpus("wikitext-2", inside / place.suffix, from_path=place)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == sorted(
        ["e.zip", "e.tar", *2 * ["train.npy", "valid.npy", "test.npy"]]
        + 2 * ["dropped.tsv", "vocabulary.tsv", "manifest.json"]
    )


@pytest.mark.usefixtures("tiny")
def test_a_link_in_an_archive_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(TEXTS["wiki.test.tokens"])
    path = write_tar(tmp_path / "a.tar", dict(list(in_folder().items())[:2]), "w")
    with tarfile.open(path, "a") as archive:
        link = tarfile.TarInfo("wikitext-2/wiki.test.tokens")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
        archive.addfile(link)
    with pytest.raises(CorpusError, match=r"does not contain wiki\.test\.tokens"):
        build_corpus("wikitext-2", tmp_path / "c", from_path=path)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
def test_a_missing_file_is_named(tmp_path: Path, kind: str) -> None:
    texts = {name: text for name, text in TEXTS.items() if "train" not in name}
    data = {name: text.encode() for name, text in texts.items()}
    makers: dict[str, Callable[[], Path]] = {
        "folder": lambda: write_folder(tmp_path / "p", texts),
        "zip": lambda: write_zip(tmp_path / "p", data),
        "tar": lambda: write_tar(tmp_path / "p", data, "w:gz"),
    }
    with pytest.raises(CorpusError, match=r"p does not contain wiki\.train\.tokens: give"):
        build_corpus("wikitext-2", tmp_path / "c", from_path=makers[kind]())


def test_the_held_out_part_of_wikitext_103_is_not_enough(archive: Path, tmp_path: Path) -> None:
    if not list(archive.parent.glob("wikitext-103*")):
        pytest.skip("wikitext-103-heldout.tar.xz is not here: put it beside WikiText-2")
    with pytest.raises(CorpusError, match=r"wikitext-103.* does not contain wiki\.train\.tokens"):
        build_corpus("wikitext-103", tmp_path / "c", from_path=archive.parent)


@pytest.mark.usefixtures("tiny")
def test_a_wrong_size_or_count_is_named(tmp_path: Path) -> None:
    longer = write_folder(tmp_path / "1", TEXTS | {"wiki.test.tokens": " b \n \n\n"})
    with pytest.raises(
        CorpusError, match=r"test split of wikitext-2 should have 6 bytes, but .* has 7"
    ):
        build_corpus("wikitext-2", tmp_path / "c", from_path=longer)
    joined = write_folder(tmp_path / "2", TEXTS | {"wiki.valid.tokens": " a_c \n"})
    with pytest.raises(CorpusError, match=r"valid split .* should have 3 tokens, but .* has 2"):
        build_corpus("wikitext-2", tmp_path / "c", from_path=joined)
    other = TEXTS["wiki.train.tokens"].replace("Title", "Other", 1)
    renamed = write_folder(tmp_path / "3", TEXTS | {"wiki.train.tokens": other})
    with pytest.raises(
        CorpusError, match=r"train split .* should have 6 distinct words, but .* has 7"
    ):
        build_corpus("wikitext-2", tmp_path / "c", from_path=renamed)


@pytest.mark.usefixtures("tiny")
def test_another_tokenizer_reads_text_as_people_write_it(tmp_path: Path) -> None:
    place = write_folder(tmp_path / "p")
    corpus = build_corpus("wikitext-2", tmp_path / "c", from_path=place, tokenizer="word")
    assert corpus.manifest.tokenizer == "word-2"
    assert corpus.decode(corpus.split("train")) == "\nTitle\na <unk> b\n" * 5
    assert corpus.manifest.unknown["train"] == 5


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("suffix", ["zip", "tar.gz", "tar.xz"])
def test_broken_archives(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    if suffix == "zip":
        write_zip(path, in_folder())
    else:
        write_tar(path, in_folder(), f"w:{suffix[-2:]}")
    data = path.read_bytes()
    for damage in (data[: len(data) // 2], data[:80] + bytes(20) + data[100:], b"no archive", b""):
        path.write_bytes(damage)
        with pytest.raises(CorpusError, match=r"a.* (is not a readable|does not contain)"):
            build_corpus("wikitext-2", tmp_path / "c", from_path=path)


def test_nothing_at_the_place(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no file or folder .*nowhere: give --from"):
        build_corpus("wikitext-2", tmp_path / "c", from_path=tmp_path / "nowhere")
    with pytest.raises(CorpusError, match=r"contains neither .* nor an archive wikitext-2\*\.zip"):
        build_corpus("wikitext-2", tmp_path / "c", from_path=tmp_path)
    with pytest.raises(UsageError, match="leave out --split"):
        build_corpus("wikitext-2", tmp_path / "c", from_path=tmp_path, split=(0.8, 0.1, 0.1))


@pytest.mark.usefixtures("tiny")
def test_without_a_place_the_zip_is_fetched_beside_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, Path]] = []

    def fetch(address: str, target: Path) -> Path:
        asked.append((address, target))
        return write_zip(target, in_folder())

    monkeypatch.setattr(wikitext_module, "fetch", fetch)
    corpus = build_corpus("wikitext-2", tmp_path / "c")
    assert corpus.tokens("train") == 45
    address = "https://wikitext.smerity.com/wikitext-2-v1.zip"
    assert asked == [(address, tmp_path / "wikitext-2-v1.zip")]


@pytest.mark.usefixtures("tiny")
def test_an_archive_that_python_cannot_unpack_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """A method of compression that zipfile lacks, and a name that is not the UTF-8 it claims."""
    whole = write_zip(tmp_path / "wikitext-2.zip", in_folder()).read_bytes()
    unknown = bytearray(whole)
    for lead, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = -1
        while (at := unknown.find(lead, at + 1)) >= 0:
            unknown[at + place] = 99
    names = bytearray(whole)
    for lead, flags, place in ((b"PK\x03\x04", 7, 30), (b"PK\x01\x02", 9, 46)):
        at = -1
        while (at := names.find(lead, at + 1)) >= 0:
            names[at + flags] |= 8
            names[at + place] = 0xFF
    for number, data in enumerate((unknown, names)):
        path = tmp_path / f"{number}.zip"
        path.write_bytes(data)
        with pytest.raises(CorpusError, match="not a readable zip or tar") as caught:
            build_corpus("wikitext-2", tmp_path / "out", from_path=path)
        assert "\n" not in str(caught.value)


def test_another_text_of_the_same_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: None
) -> None:
    known = {"test": hashlib.sha256(TEXTS["wiki.test.tokens"].encode()).hexdigest()}
    monkeypatch.setitem(PUBLISHED, "wikitext-2", replace(PUBLISHED["wikitext-2"], sha256=known))
    build_corpus("wikitext-2", tmp_path / "good", from_path=write_folder(tmp_path / "a"))
    other = write_folder(tmp_path / "b", {**TEXTS, "wiki.test.tokens": " c \n \n"})
    with pytest.raises(CorpusError, match=r"wiki\.test\.tokens is not the published file"):
        build_corpus("wikitext-2", tmp_path / "bad", from_path=other)
    assert not (tmp_path / "bad" / "manifest.json").exists()
