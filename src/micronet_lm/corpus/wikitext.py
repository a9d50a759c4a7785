"""WikiText-2 and WikiText-103: their addresses, and the counts that show they are complete.

Merity et al. (2016), "Pointer Sentinel Mixture Models", https://arxiv.org/abs/1609.07843.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from micronet_lm.corpus.archives import HashedStream, members, readable
from micronet_lm.corpus.blocks import Block, read_blocks
from micronet_lm.corpus.detokenize import detokenize
from micronet_lm.corpus.download import fetch
from micronet_lm.corpus.splits import SPLITS
from micronet_lm.errors import CorpusError

FILES = {f"wiki.{split}.tokens": split for split in SPLITS}


@dataclass(frozen=True, kw_only=True)
class Published:
    """Known facts of a published corpus."""

    address: str
    """Download address of its zip."""
    bytes: Mapping[str, int]
    """Size of each split's file in bytes, where known."""
    tokens: Mapping[str, int]
    """Number of tokens in each split, with one `<eos>` per line."""
    words: int
    """Number of distinct tokens in the train split."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Hash of each split's file, where known."""


PUBLISHED = {
    "wikitext-2": Published(
        address="https://wikitext.smerity.com/wikitext-2-v1.zip",
        bytes={"train": 10_797_148, "valid": 1_121_681, "test": 1_256_449},
        tokens={"train": 2_088_628, "valid": 217_646, "test": 245_569},
        words=33_278,
        sha256={
            "train": "2e24adb25c1c035d21c507f323769d12489407724943b8e8680c0fabbd4fc2db",
            "valid": "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
            "test": "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
        },
    ),
    "wikitext-103": Published(
        address="https://wikitext.smerity.com/wikitext-103-v1.zip",
        bytes={"valid": 1_142_309, "test": 1_281_077},  # train is checked by its tokens
        tokens={"train": 103_227_021, "valid": 217_646, "test": 245_569},
        words=267_735,
        sha256={
            "valid": "9aee9f52d6e77de6c7751fc5e7c44287db3ec0eaf15477098acc6b93c1c4250b",
            "test": "56db52eb157b1ab5c89646eef70510c1eca6e12a3bfdb99f0d6b05b4eacb75b9",
        },
    ),
}


class WikiText:
    """A published corpus, from a place on this machine or from its address.

    `as_written` asks for text as people write it instead of WikiText's tokens.
    """

    default_tokenizer = "wikitext"
    default_min_count = 1  # rare words are already `<unk>` in the published text
    ratio = None
    splitting = None

    def __init__(
        self, name: str, *, place: Path | None, downloads: Path, as_written: bool = False
    ) -> None:
        self.name = name
        self._as_written = as_written
        self.documents: Mapping[str, int] | None = None
        self._published = PUBLISHED[name]
        self._downloads = downloads
        self._place = None if place is None else find_place(name, place)
        sizes = self._published.bytes
        self.size: int | None = sum(sizes.values()) if set(sizes) == set(SPLITS) else None

    def blocks(self) -> Iterator[Block]:
        """Read the three files in stored order; download them first if necessary."""
        if self._place is None:
            address = self._published.address
            self._place = fetch(address, self._downloads / address.rpartition("/")[2])
        place, others = self._place, PUBLISHED.keys() - {self.name}

        def accept(path: PurePosixPath) -> bool:
            return others.isdisjoint(path.parts)  # an archive may contain both corpora

        with readable(place):
            for member in members(place, tuple(FILES), accept):
                split = FILES[member.name]
                self._check_one("bytes", split, self._published.bytes.get(split), member.size)
                name = f"{place}/{member.name}"
                stream = HashedStream(member.stream)
                for block in read_blocks(stream, split, name=name, size=member.size):
                    text = detokenize(block.text) if self._as_written else block.text
                    yield block._replace(text=text)
                if self._published.sha256.get(split, stream.sha256) != stream.sha256:
                    raise CorpusError(
                        f"{name} is not the published file, its sha256 begins with "
                        f"{stream.sha256[:12]}: fetch it again"
                    )

    def check(self, tokenizer: str, tokens: Mapping[str, int], words: int) -> None:
        """Compare counts with the published ones if the tokenizer is the published one."""
        if tokenizer != self.default_tokenizer:
            return
        for split in SPLITS:
            self._check_one("tokens", split, self._published.tokens[split], tokens[split])
        self._check_one("distinct words", "train", self._published.words, words)

    def _check_one(self, what: str, split: str, expected: int | None, found: int) -> None:
        if expected not in (None, found):
            raise CorpusError(
                f"the {split} split of {self.name} should have {expected:,} {what}, but "
                f"{self._place} has {found:,}: give the complete published files"
            )


def find_place(name: str, place: Path) -> Path:
    """Return the folder or archive at `place` that contains the corpus `name`."""
    if place.is_file():
        return place
    if not place.is_dir():
        raise CorpusError(
            f"there is no file or folder {place}: give --from the folder, zip or tar of {name}"
        )
    for folder in (place, place / name):
        if any((folder / file).is_file() for file in FILES):
            return folder
    archives = sorted([*place.glob(f"{name}*.zip"), *place.glob(f"{name}*.tar*")])
    if not archives:
        raise CorpusError(
            f"{place} contains neither {', '.join(FILES)} nor an archive {name}*.zip or "
            f"{name}*.tar*: give another path with --from, or leave it out to download"
        )
    return archives[0]
