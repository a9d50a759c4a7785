"""Estimate a spelling model from words: Kneser-Ney counts, pruned to a budget of bytes.

Each word counts once: what is wanted is how a word looks that was never seen, not how a text does.
Counts of shorter n-grams are the numbers of bytes that they follow (Kneser and Ney 1995).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from micronet_lm.errors import ArtifactError
from micronet_lm.spelling.trie import END, LARGEST_ORDER, Node, Spelling, byte_of, count_of, pack

_HEAD = 11
"""Bytes of a model without discounts and nodes."""


@dataclass(frozen=True, eq=False)
class _Counts:
    """Counts of all n-grams, and what they give before anything is pruned."""

    raw: Counter[bytes]
    """How often each n-gram occurs."""
    counts: dict[bytes, int]
    """What the model counts: for shorter ones how many bytes they follow."""
    discounts: list[int]
    """In 256ths."""


def estimate(
    words: Iterable[str], vocabulary: Sequence[str], *, order: int = 6, budget: int = 40_000
) -> Spelling:
    """Return a model of these words in at most `budget` bytes.

    `vocabulary` are the strings that have a probability elsewhere and need none here.
    """
    if not 1 <= order <= LARGEST_ORDER:
        raise ArtifactError(f"a spelling's order must be 1 to {LARGEST_ORDER}, got {order}")
    counts = _count(sorted(set(words)), order)
    root = Node()
    size = _HEAD + order
    kept: dict[bytes, Node] = {b"": root}
    for gram, _ in _by_gain(counts):
        missing = [gram[:n] for n in range(1, len(gram) + 1) if gram[:n] not in kept]
        cost = sum(2 + (len(part) < order) for part in missing)
        # The first child of a node that may have some adds a byte to it; the root's is counted.
        new_parents = {part[:-1] for part in missing} - {b""}
        cost += sum(part not in kept or not kept[part].children for part in new_parents)
        if size + cost > budget:
            if len(gram) == 1:
                raise ArtifactError(
                    f"a spelling model of these words does not fit {budget} bytes: allow more, "
                    "with a larger spelling.budget or a larger model"
                )
            break
        size += cost
        for part in missing:
            kept[part] = Node(count=count_of(byte_of(counts.counts[part])))
            kept[part[:-1]].children[part[-1]] = kept[part]
    for gram, count in counts.counts.items():
        if gram not in kept and gram[:-1] in kept and kept[gram[:-1]].children:
            kept[gram[:-1]].rest += count
    for node in kept.values():
        node.rest = count_of(byte_of(node.rest))
    unnormalized = Spelling.from_bytes(pack(order, 1.0, counts.discounts, root))
    outside = 1.0 - _mass(unnormalized, ["", *vocabulary])
    return Spelling.from_bytes(pack(order, outside, counts.discounts, root))


def _count(words: Sequence[str], order: int) -> _Counts:
    raw: Counter[bytes] = Counter()
    for word in words:
        text = bytes([END]) + word.encode("utf-8") + bytes([END])
        for end in range(2, len(text) + 1):
            for begin in range(max(0, end - order), end):
                raw[text[begin:end]] += 1
    if not raw:
        raise ArtifactError("a spelling model needs at least one word to learn from")
    follows: Counter[bytes] = Counter(gram[1:] for gram in raw if len(gram) > 1)
    counts = {}
    for gram, count in raw.items():
        begins = gram[0] == END and len(gram) > 1  # nothing comes before it
        counts[gram] = count if len(gram) == order or begins else max(follows[gram], 1)
    return _Counts(raw, counts, [_discount(counts, length) for length in range(1, order + 1)])


def _discount(counts: dict[bytes, int], length: int) -> int:
    """Return n_1 / (n_1 + 2 n_2) of one length, in 256ths."""
    own = Counter(count for gram, count in counts.items() if len(gram) == length and count <= 2)
    share = own[1] / (own[1] + 2 * own[2]) if own[1] else 0.5
    return min(max(round(256 * share), 1), 255)


def _by_gain(counts: _Counts) -> list[tuple[bytes, float]]:
    """Return all n-grams, single bytes first, then by the bits that storing them saves."""
    total: defaultdict[bytes, int] = defaultdict(int)
    kinds: defaultdict[bytes, int] = defaultdict(int)
    for gram, count in counts.counts.items():
        total[gram[:-1]] += count
        kinds[gram[:-1]] += 1
    chance: dict[bytes, float] = {}
    gains = []
    for gram in sorted(counts.counts, key=lambda gram: (len(gram), gram)):
        context, discount = gram[:-1], counts.discounts[len(gram) - 1] / 256
        shorter = chance[gram[1:]] if len(gram) > 1 else 1 / 256
        chance[gram] = (counts.counts[gram] - discount) / total[context]
        chance[gram] += discount * kinds[context] / total[context] * shorter
        gain = counts.raw[gram] * math.log(chance[gram] / shorter)
        gains.append((gram, math.inf if len(gram) == 1 else gain))
    return sorted(gains, key=lambda item: (-item[1], item[0]))


def _mass(spelling: Spelling, words: Iterable[str]) -> float:
    """Return the probability of all these strings together."""
    memo: dict[bytes, float] = {}
    total = 0.0
    for word in words:
        text = bytes([END]) + word.encode("utf-8") + bytes([END])
        chance = 1.0
        for at in range(1, len(text)):
            gram = text[max(0, at - spelling.order + 1) : at + 1]
            if (found := memo.get(gram)) is None:
                found = memo[gram] = spelling.chance(gram[:-1], gram[-1])
            chance *= found
        total += chance
    return total
