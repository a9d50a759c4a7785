"""What the corpus tests share: WikiText-2 built once, and a small text."""

from pathlib import Path

import pytest
from tests.support.corpora import MISSING, wikitext_2_archive

from micronet_lm.corpus import Corpus, build_corpus


@pytest.fixture(scope="session")
def archive() -> Path:
    found = wikitext_2_archive()
    if found is None:
        pytest.skip(MISSING)
    return found


@pytest.fixture(scope="session")
def wikitext_2(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    out = tmp_path_factory.mktemp("corpora") / "wikitext-2"
    return build_corpus("wikitext-2", out, from_path=archive)


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    """A hundred lines of 13 bytes: line 7 is `the number 07`."""
    path = tmp_path / "numbers.txt"
    path.write_text("".join(f"the number {n:02}\n" for n in range(100)))
    return path


@pytest.fixture
def small(text_file: Path, tmp_path: Path) -> Corpus:
    return build_corpus(str(text_file), tmp_path / "small", min_count=1)
