import hashlib
import io
import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from micronet_lm.artifact.spelled import left_out
from micronet_lm.cli.main import main
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.manifest import FILES, fingerprint
from micronet_lm.corpus.npy import npy_header
from micronet_lm.errors import CorpusError


def test_splits_are_mapped_and_read_only(small: Corpus) -> None:
    corpus = Corpus.open(str(small.path))
    train = corpus.split("train")
    assert isinstance(train, np.memmap)
    assert train.dtype == np.uint8
    assert corpus.tokens("train") == len(train) == 360
    with pytest.raises(ValueError, match="read-only"):
        train[0] = 1


def test_text_goes_in_and_comes_out(small: Corpus) -> None:
    ids = small.encode("the number 07\nthe cat")
    assert small.decode(ids) == "the number 07\nthe <unk>"
    assert small.decode(small.split("test")[:4]).startswith("the number")
    with pytest.raises(CorpusError, match=r"token id 5000 is outside"):
        small.decode([5000])


def test_unknown_split(small: Corpus) -> None:
    with pytest.raises(CorpusError, match="no split 'dev': choose one of train, valid, test"):
        small.split("dev")


def test_hashes_and_fingerprint_are_those_of_the_files(small: Corpus) -> None:
    lines = ""
    for name in FILES:
        data = (small.path / name).read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        assert small.manifest.files[name] == {"bytes": len(data), "sha256": digest}
        lines += f"{name} {digest}\n"
    expected = hashlib.sha256(f"{lines}tokenizer word-2\n".encode()).hexdigest()
    assert small.fingerprint == expected


def test_arrays_are_plain_numpy_files(small: Corpus) -> None:
    ids = np.load(small.path / "valid.npy", allow_pickle=False)
    assert ids.tolist() == small.split("valid").tolist()
    assert ids.dtype == np.uint8


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("length", [1, 10**5, 10**15])
def test_headers_are_those_of_numpy(dtype: str, length: int) -> None:
    header = npy_header(np.dtype(dtype), length)
    assert len(header) % 64 == 0
    stream = io.BytesIO(header)
    assert np.lib.format.read_magic(stream) == (1, 0)
    parsed = np.lib.format.read_array_header_1_0(stream)
    assert parsed == ((length,), False, np.dtype(dtype))
    assert stream.read() == b""


def test_not_a_corpus(tmp_path: Path, small: Corpus) -> None:
    with pytest.raises(CorpusError, match=r"there is no corpus folder .*nowhere"):
        Corpus.open(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=r"is not a corpus, it has no manifest\.json"):
        Corpus.open(tmp_path / "empty")
    (tmp_path / "empty" / "manifest.json").write_text("{}")
    with pytest.raises(CorpusError, match="is not a corpus, its manifest"):
        Corpus.open(tmp_path / "empty")
    (small.path / "manifest.json").unlink()
    with pytest.raises(CorpusError, match=r"incomplete.*build it again with --force"):
        Corpus.open(small.path)


@pytest.mark.parametrize("name", FILES)
def test_files_that_do_not_fit_the_manifest(small: Corpus, name: str) -> None:
    path = small.path / name
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(CorpusError, match=f"{name} .*{len(data) - 1} bytes instead of {len(data)}"):
        Corpus.open(small.path)
    path.unlink()
    with pytest.raises(CorpusError, match=f"{name} does not match its manifest .missing."):
        Corpus.open(small.path)


def test_an_array_of_the_right_size_but_the_wrong_kind(small: Corpus) -> None:
    path = small.path / "valid.npy"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"|u1", b"|i1"))
    with pytest.raises(CorpusError, match=r"valid\.npy .*not 20 ids of type uint8"):
        Corpus.open(small.path)
    for other in (b"x", b"PK\x03\x04", data[:20]):  # also what NumPy might take for a zip
        path.write_bytes(other.ljust(len(data), b"x"))
        with pytest.raises(CorpusError, match=r"valid\.npy does not match"):
            Corpus.open(small.path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "format version 2, but this program reads version 1"),
        ({"extra": 1}, "unknown or missing: extra"),
        ({"tokens": {"train": 3}}, "values of the wrong kind"),
        ({"files": {"train.npy": 3}}, "values of the wrong kind"),
        (
            {"tokens": {"train": 361, "valid": 20, "test": 20}},
            "not 361 ids of type uint8",
        ),
        ({"dtype": "no type"}, "instead of 94 words, ids of type no type"),
        ({"words": 7}, "94 words, .* instead of 7 words"),
        ({"tokenizer": "letters"}, "tokenizer 'letters', which this program does not have"),
    ],
)
def test_manifests_that_lie(small: Corpus, change: dict[str, object], message: str) -> None:
    path = small.path / "manifest.json"
    record = json.loads(path.read_text())
    del record["checksum"]
    path.write_text(json.dumps(record | change))
    with pytest.raises(CorpusError, match=message):
        Corpus.open(small.path)


def test_no_changed_bit_of_a_manifest_changes_its_meaning(small: Corpus) -> None:
    """35 of 1,200 bytes could change and were told: counts, the source, how it was divided."""
    path = small.path / "manifest.json"
    whole, same = path.read_bytes(), asdict(small.manifest)
    for place in range(len(whole)):
        spoiled = bytearray(whole)
        spoiled[place] ^= 1 << place % 8
        path.write_bytes(spoiled)
        try:
            found = Corpus.open(small.path)
        except CorpusError as error:
            assert str(small.path) in str(error)
        else:
            assert asdict(found.manifest) == same


@pytest.mark.parametrize("how", ["changed", "missing"])
def test_the_file_of_dropped_words_is_compared_with_its_hash(small: Corpus, how: str) -> None:
    """A bit of it became another spelling model, and `verify` called the corpus whole."""
    path = small.path / "dropped.tsv"
    small.check_dropped()
    assert main(["verify", str(small.path)]) == 0
    if how == "changed":
        path.write_bytes(path.read_bytes() + b"1\tother\n")
    else:
        path.unlink()
    with pytest.raises(CorpusError, match=r"dropped\.tsv does not match its manifest"):
        left_out(small)
    assert main(["verify", str(small.path)]) == 1


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("name", ["vocabulary.tsv", "train.npy"])
def test_a_pipe_in_place_of_a_file_is_refused_without_waiting(small: Corpus, name: str) -> None:
    """A manifest that gives it no bytes let it be opened, which waited for ever."""
    path = small.path / "manifest.json"
    record = json.loads(path.read_text())
    del record["checksum"]
    record["files"][name]["bytes"] = 0
    record["fingerprint"] = fingerprint(record["files"], record["tokenizer"])
    path.write_text(json.dumps(record))
    (small.path / name).unlink()
    os.mkfifo(small.path / name)
    with pytest.raises(OSError, match="not a regular file"):
        Corpus.open(small.path)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_a_manifest_that_is_not_json(small: Corpus, text: str) -> None:
    (small.path / "manifest.json").write_text(text)
    with pytest.raises(CorpusError, match=r"manifest\.json is damaged"):
        Corpus.open(small.path)
