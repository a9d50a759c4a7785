"""Building from one's own text, and every way in which it can go wrong."""

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.corpus import blocks as blocks_module
from micronet_lm.corpus.blocks import Block
from micronet_lm.corpus.manifest import DROPPED, FILES
from micronet_lm.corpus.splits import (
    Ratio,
    block_splits,
    perplexity_disagreement,
    unknown_disagreement,
)
from micronet_lm.corpus.textfiles import TextFiles
from micronet_lm.errors import CorpusError, UsageError


def text_of(corpus: Corpus, split: str) -> str:
    return corpus.decode(corpus.split(split))


def test_a_file_is_cut_at_line_ends(text_file: Path, small: Corpus) -> None:
    lines = text_file.read_text().splitlines(keepends=True)
    assert text_of(small, "train") == "".join([*lines[:30], *lines[35:65], *lines[70:]])
    assert text_of(small, "valid") == text_of(small, "test") == "the number <unk>\n" * 5
    assert small.manifest.text_bytes == {"train": 1260, "valid": 70, "test": 70}
    assert small.manifest.documents == {"train": 1, "valid": 1, "test": 1}


def test_a_cut_inside_a_line_moves_to_its_end(text_file: Path, tmp_path: Path) -> None:
    corpus = build_corpus(str(text_file), tmp_path / "c", split=(0.501, 0.2, 0.299))
    assert [corpus.tokens(split) // 4 for split in ("train", "valid", "test")] == [50, 20, 30]


def test_words_of_valid_and_test_do_not_count(small: Corpus) -> None:
    assert "89" in small.vocabulary
    assert "30" not in small.vocabulary
    assert small.manifest.unknown == {"train": 0, "valid": 5, "test": 5}
    assert small.vocabulary.counts[:3] == (90, 90, 90)


def test_rare_words_become_unknown_unless_the_user_says(text_file: Path, tmp_path: Path) -> None:
    corpus = build_corpus(str(text_file), tmp_path / "c")
    assert set(corpus.vocabulary.words) == {"<eos>", "<unk>", "number", "the"}
    assert corpus.manifest.unknown["train"] == 90
    limited = build_corpus(str(text_file), tmp_path / "d", min_count=1, max_vocabulary=5)
    assert set(limited.vocabulary.words) == {"<eos>", "<unk>", "number", "the", "00"}


def test_a_folder_gives_its_texts_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "b").mkdir(parents=True)
    (folder / "b" / "2.md").write_text("second\n" * 40)
    (folder / "a.txt").write_text("first\n" * 40 + "no line end")
    (folder / "c.TXT").write_text("third \t\r\n" * 40)
    (folder / "empty.txt").write_text("")
    (folder / "image.png").write_bytes(b"\xff\xfe")
    corpus = build_corpus(str(folder), tmp_path / "c", min_count=1, split=(0.6, 0.2, 0.2))
    splits = [text_of(corpus, split) for split in ("train", "valid", "test")]
    lines = "".join(splits).splitlines()
    assert {word: lines.count(word) for word in ("first", "second", "third")} == {
        "first": 40,
        "second": 40,
        "third": 40,
    }
    assert len(lines) == 121  # and the line without an end
    assert splits[0].index("first") < splits[0].index("second") < splits[0].index("third")
    assert corpus.manifest.splitting == "blocks"
    pattern = build_corpus(f"{folder}/**/*.md", tmp_path / "p")
    assert set(pattern.vocabulary.words) == {"second", "<eos>", "<unk>"}


def test_valid_and_test_come_from_everywhere(tmp_path: Path) -> None:
    """Of a text whose end is about something else, all splits get their share."""
    half = [f"{topic} number {n % 50}\n" for topic in ("first", "second") for n in range(4000)]
    (tmp_path / "t.txt").write_text("".join(half))
    corpus = build_corpus(str(tmp_path / "t.txt"), tmp_path / "c")
    for split, share in (("train", 0.9), ("valid", 0.05), ("test", 0.05)):
        text = text_of(corpus, split)
        assert text.count("\n") == pytest.approx(8000 * share, rel=0.05)
        assert text.count("second") == pytest.approx(text.count("first"), rel=0.1)
    assert corpus.describe(0)["warning"] is None


@pytest.mark.parametrize("line_end", ["\r", "\r\n"])
def test_line_ends_of_other_systems_divide_a_text(line_end: str, tmp_path: Path) -> None:
    """Of a text with the line ends of old Macs, the train split took everything."""
    lines = [f"line number {n % 50}" for n in range(4000)]
    (tmp_path / "t.txt").write_bytes("".join(line + line_end for line in lines).encode())
    corpus = build_corpus(str(tmp_path / "t.txt"), tmp_path / "c")
    found = [text_of(corpus, split).splitlines() for split in ("train", "valid", "test")]
    assert sorted(line for part in found for line in part) == sorted(lines)
    for split, share in zip(found, (0.9, 0.05, 0.05), strict=True):
        assert len(split) == pytest.approx(4000 * share, rel=0.1)


@pytest.mark.parametrize("size", range(1, 8))
def test_a_line_end_of_two_bytes_is_never_cut(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the blocks end that are read to find a line's end."""
    monkeypatch.setattr("micronet_lm.corpus.textfiles.BLOCK", size)
    (tmp_path / "t.txt").write_bytes(b"ab\r\ncd\re\n" * 40)
    text = "".join(b.text for b in TextFiles(str(tmp_path / "t.txt"), (0.4, 0.3, 0.3)).blocks())
    assert text == "ab\ncd\ne\n" * 40


def test_a_text_of_one_line_is_told_how_to_be_divided(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a word " * 3000)
    with pytest.raises(CorpusError, match=r"only where lines end: .*\(fold -s -w 500 "):
        build_corpus(str(tmp_path / "t.txt"), tmp_path / "c")


def test_many_files_stay_whole(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for n in range(200):
        (folder / f"{n:03}.txt").write_text(f"begin {n}\nend {n}\n" * (1 + n % 3))
    corpus = build_corpus(str(folder), tmp_path / "c", min_count=1)
    assert corpus.manifest.splitting == "documents"
    assert corpus.manifest.documents is not None
    assert sum(corpus.manifest.documents.values()) == 200
    for split, share in (("train", 0.9), ("valid", 0.05), ("test", 0.05)):
        text = text_of(corpus, split)
        assert text.count("begin") == text.count("end")
        share_held = corpus.manifest.text_bytes[split] / sum(corpus.manifest.text_bytes.values())
        assert share_held == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("total", [1, 50, 30_000, 400_000, 10**9])
@pytest.mark.parametrize("ratio", [(0.9, 0.05, 0.05), (0.5, 0.3, 0.2)])
def test_blocks_have_the_shares_of_the_ratio(total: int, ratio: Ratio) -> None:
    parts = block_splits(total, ratio)
    assert parts[-1][1] == total
    assert len(parts) <= 5 * 16
    sums: dict[str, int] = dict.fromkeys(("train", "valid", "test"), 0)
    begin = 0
    for split, end in parts:
        sums[split] += end - begin
        begin = end
    for split, share in zip(sums, ratio, strict=True):
        assert sums[split] == pytest.approx(total * share, abs=len(parts))


def test_an_older_corpus_still_opens(small: Corpus) -> None:
    file = small.path / "manifest.json"
    record = json.loads(file.read_text())
    assert record.pop("splitting") == "blocks"
    del record["dropped"], record["checksum"]
    file.write_text(json.dumps(record))
    again = Corpus.open(small.path)
    assert again.manifest.splitting is None
    again.check_dropped()
    assert again.fingerprint == small.fingerprint


def test_unlike_splits_are_warned_of() -> None:
    tokens = {"train": 9000, "valid": 500, "test": 1000}
    assert unknown_disagreement(tokens, {"train": 0, "valid": 20, "test": 79}) is None
    said = unknown_disagreement(tokens, {"train": 0, "valid": 20, "test": 81})
    assert said is not None
    assert "4.00% and 8.10% of their tokens are unknown words" in said
    assert unknown_disagreement(tokens, {"train": 0, "valid": 1, "test": 19}) is None
    assert perplexity_disagreement(50.0, 99.0) is None
    assert "36.00 and 88.00" in str(perplexity_disagreement(36.0, 88.0))


def test_a_byte_order_mark_is_no_word(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"\xef\xbb\xbf" + b"word\n" * 60)
    corpus = build_corpus(str(tmp_path / "t.txt"), tmp_path / "c", min_count=1)
    assert set(corpus.vocabulary.words) == {"word", "<eos>", "<unk>"}


def test_the_size_of_a_block_does_not_matter(
    tmp_path: Path, small: Corpus, text_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in (1, 7, 100):
        monkeypatch.setattr(blocks_module, "BLOCK", size)
        again = build_corpus(str(text_file), tmp_path / f"c{size}", min_count=1)
        assert again.fingerprint == small.fingerprint


def test_tokenizers_differ_in_the_fingerprint(text_file: Path, tmp_path: Path) -> None:
    one = build_corpus(str(text_file), tmp_path / "1", tokenizer="word")
    two = build_corpus(str(text_file), tmp_path / "2", tokenizer="wikitext")
    assert np.array_equal(one.split("train"), two.split("train"))
    assert one.fingerprint != two.fingerprint


def test_memory_does_not_grow_with_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK", 1 << 16)
    text = tmp_path / "long.txt"
    text.write_text("some words and some more words\n" * 80_000)
    tracemalloc.start()
    try:
        corpus = build_corpus(str(text), tmp_path / "c", tokenizer="wikitext")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(map(corpus.tokens, ("train", "valid", "test"))) == 560_000
    assert peak < 4e6  # the pointers of a list of all tokens alone would take 4.5 MB


@pytest.mark.parametrize("content", ["", "\n \n\t\n" * 20])
def test_empty_text(tmp_path: Path, content: str) -> None:
    (tmp_path / "t.txt").write_text(content)
    with pytest.raises(CorpusError, match=r"t\.txt contains no (text|words)"):
        build_corpus(str(tmp_path / "t.txt"), tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_invalid_utf8_names_file_and_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK", 64)
    (tmp_path / "t.txt").write_bytes(b"line\n" * 100 + b"caf\xe9\n" + b"line\n" * 10)
    with pytest.raises(CorpusError, match=r"t\.txt is not UTF-8: byte 0xe9 at offset 503 "):
        build_corpus(str(tmp_path / "t.txt"), tmp_path / "c")


def test_a_character_cut_off_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"line\n" * 99 + "end é".encode()[:-1])
    with pytest.raises(CorpusError, match="at offset 499 "):
        build_corpus(str(tmp_path / "t.txt"), tmp_path / "c")


def test_a_split_without_tokens(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a few words\n" * 3)
    with pytest.raises(CorpusError, match=r"the valid split .* no tokens.*--split"):
        build_corpus(str(tmp_path / "t.txt"), tmp_path / "c", split=(0.4, 0.1, 0.5))


def test_missing_text(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="there is no file or folder"):
        build_corpus(str(tmp_path / "nothing.txt"), tmp_path / "c")
    with pytest.raises(CorpusError, match=r"no file matches .*\*\.txt"):
        build_corpus(str(tmp_path / "*.txt"), tmp_path / "c")
    with pytest.raises(CorpusError, match=r"contains no \*\.txt or \*\.md file"):
        build_corpus(str(tmp_path), tmp_path / "c")


@pytest.mark.parametrize("split", [(0.9, 0.1, 0.0), (0.5, 0.2, 0.2), (1.2, -0.1, -0.1)])
def test_a_nonsense_ratio(
    text_file: Path, tmp_path: Path, split: tuple[float, float, float]
) -> None:
    with pytest.raises(UsageError, match=r"must be above 0 and add up to 1, got"):
        build_corpus(str(text_file), tmp_path / "c", split=split)


def test_nonsense_limits(text_file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"max_vocabulary must be at least 3 .* got 2"):
        build_corpus(str(text_file), tmp_path / "c", max_vocabulary=2)
    with pytest.raises(UsageError, match="min_count must be at least 1, got 0"):
        build_corpus(str(text_file), tmp_path / "c", min_count=0)
    with pytest.raises(UsageError, match="no tokenizer 'letters'"):
        build_corpus(str(text_file), tmp_path / "c", tokenizer="letters")
    with pytest.raises(UsageError, match="leave out --from"):
        build_corpus(str(text_file), tmp_path / "c", from_path=tmp_path)


def test_a_corpus_is_replaced_only_by_force(text_file: Path, tmp_path: Path, small: Corpus) -> None:
    with pytest.raises(CorpusError, match="already contains this corpus"):
        build_corpus(str(text_file), small.path, min_count=1)
    with pytest.raises(CorpusError, match="built with other settings"):
        build_corpus(str(text_file), small.path, min_count=2)
    forced = build_corpus(str(text_file), small.path, min_count=2, force=True)
    assert forced.manifest.min_count == 2
    assert Corpus.open(small.path).fingerprint == forced.fingerprint != small.fingerprint


def test_a_build_that_fails_leaves_the_old_corpus(small: Corpus, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"\xff\n")
    with pytest.raises(CorpusError, match="offset 0"):
        build_corpus(str(tmp_path / "bad.txt"), small.path, force=True)
    assert Corpus.open(small.path).fingerprint == small.fingerprint


@pytest.mark.parametrize("force", [False, True])
def test_foreign_files_are_left_alone(text_file: Path, tmp_path: Path, force: bool) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "manifest.json").write_text('{"mine": true}')
    (out / "train.npy").write_bytes(b"precious")
    with pytest.raises(CorpusError, match=r"'manifest\.json', which is not part of a corpus"):
        build_corpus(str(text_file), out, force=force)
    assert (out / "train.npy").read_bytes() == b"precious"
    assert sorted(path.name for path in out.iterdir()) == ["manifest.json", "train.npy"]
    with pytest.raises(CorpusError, match="is a file"):
        build_corpus(str(text_file), text_file)


@pytest.mark.parametrize("first", [True, False])
def test_an_interrupted_build_can_be_repeated(
    text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    out = tmp_path / "c"
    if not first:
        build_corpus(str(text_file), out)
    readings = 0
    read = TextFiles.blocks

    def interrupted(self: TextFiles) -> Iterator[Block]:
        nonlocal readings
        readings += 1
        for number, block in enumerate(read(self)):
            if readings == 2 and number == 1:
                raise KeyboardInterrupt
            yield block

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(TextFiles, "blocks", interrupted)
        build_corpus(str(text_file), out, force=True)
    if first:
        assert not (out / "manifest.json").exists()
    else:  # the corpus that was there stays whole until the new one is
        assert Corpus.open(out).tokens("train") > 0
        (out / "manifest.json").unlink()
    # What a kill leaves on top: temporary files, and some that got their names.
    (out / ".train.npy.x1.tmp").write_bytes(b"half")
    (out / "train.npy").write_bytes(b"half")
    with pytest.raises(CorpusError, match=r"incomplete.*--force"):
        Corpus.open(out)
    build_corpus(str(text_file), out)
    assert sorted(path.name for path in out.iterdir()) == sorted([*FILES, DROPPED, "manifest.json"])


def test_text_that_changes_meanwhile(
    text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = TextFiles.blocks

    def changing(self: TextFiles) -> Iterator[Block]:
        yield from read(self)
        text_file.write_text("longer and longer\n" * 200)

    monkeypatch.setattr(TextFiles, "blocks", changing)
    with pytest.raises(CorpusError, match="the text changed while the corpus was built"):
        build_corpus(str(text_file), tmp_path / "c")
    assert not (tmp_path / "c" / "manifest.json").exists()


def test_a_file_that_shrinks_meanwhile(
    text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = TextFiles(str(text_file), (0.9, 0.05, 0.05))
    text_file.write_text("short\n")
    with pytest.raises(CorpusError, match=r"numbers\.txt shrank by 414 bytes"):
        list(source.blocks())


def test_a_disk_that_refuses(text_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CorpusError, match=r"file/c: .*file is a file, not a folder"):
        build_corpus(str(text_file), tmp_path / "file" / "c")


def test_the_manifest_tells_how_it_was_made(small: Corpus, text_file: Path) -> None:
    record = json.loads((small.path / "manifest.json").read_text())
    assert record["source"] == str(text_file)
    assert (record["tokenizer"], record["min_count"], record["split"]) == (
        "word-2",
        1,
        [0.9, 0.05, 0.05],
    )
    assert record["tokens"] == {"train": 360, "valid": 20, "test": 20}
