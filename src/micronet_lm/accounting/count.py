"""Count a target: one row per piece of a streaming step, under given rules.

The step takes one token and predicts the next word: all bins' probabilities, with a full context
and a full cache.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from micronet_lm.accounting import formulas
from micronet_lm.accounting.row_kinds import Pieces
from micronet_lm.accounting.rows import ZERO, Account, Difference, Label, Row
from micronet_lm.accounting.rules import PAPER, Departure, Rules, check_rules
from micronet_lm.accounting.target import Rows, Target
from micronet_lm.config import Place


def count(target: Target, rules: Rules = PAPER) -> Account:
    """Count storage and operations."""
    check_rules(rules, target)
    pieces = Pieces(target=target, rules=rules)
    rows = [*_input(pieces)]
    for number in range(target.shape.layers):
        rows += [*_attention(pieces, number), *_feed_forward(pieces, number)]
    rows += [*_softmax(pieces), *_ngrams(pieces), *_cache(pieces)]
    return Account(target=target, rules=rules, rows=tuple(rows))


def differences(target: Target, rules: Rules) -> list[Difference]:
    """Return the differences from rules `paper`, one departure at a time; they add up."""
    found, taken, before = [], set[Departure](), count(target)
    for departure in Departure:
        if departure not in rules.departures:
            continue
        taken.add(departure)
        after = count(target, replace(rules, departures=frozenset(taken)))
        storage, operations = (
            after.storage - before.storage,
            after.operations - before.operations,
        )
        found.append(Difference(departure=departure, storage=storage, operations=operations))
        before = after
    return found


def _input(pieces: Pieces) -> Iterator[Row]:
    """Yield the projections of the embedding, weighted by how many test tokens need each."""
    target = pieces.target
    for number, share in enumerate(target.shares):
        matrix = target.matrices.get(f"embedding.projections.{number}.weight")
        if matrix:
            yield pieces.matrix(
                Label(part="input", component="embedding", name=f"projection {number + 1}"),
                matrix,
                input_bits=target.matrices[f"embedding.tables.{number}"].bits,
                times=Fraction(share, sum(target.shares)),
            )


def _attention(pieces: Pieces, number: int) -> Iterator[Row]:
    """Yield LayerNorm, attention of h heads to C tokens, residual."""

    def label(name: str) -> Label:
        return Label(part=f"layer {number + 1}", component="attention", name=name)

    target, shape, block = pieces.target, pieces.target.shape, f"blocks.{number}.attention."
    h, k, v, context = shape.heads, shape.key_width, shape.value_width, shape.context
    bits = target.activation_bits(Place.QKV)
    yield pieces.norm(label("LayerNorm"), Place.ATTENTION_NORM)
    yield pieces.matrix(
        label("queries, keys, values"),
        target.matrices[f"{block}qkv.weight"],
        input_bits=target.activation_bits(Place.ATTENTION_NORM),
        quantizer=Place.QKV,
    )
    # The factor becomes part of the queries' scale: their integers and bits do not change.
    if pieces.makes(Departure.QUERIES):
        yield pieces.scaling(label("queries / √d_k"), h * k)
    yield pieces.product(
        label("key scores"), [Rows(count=h * context, nonzeros=k)], k, (bits, bits)
    )
    positions = target.matrices[f"{block}positions"]
    yield pieces.matrix(
        label("position scores"), positions, input_bits=bits, rows=_scores(pieces, positions.rows)
    )
    heads = h if pieces.makes(Departure.SOFTMAX_HEADS) else 1
    yield pieces.others(
        label("softmax"), heads * formulas.softmax(context), Place.ATTENTION_SOFTMAX
    )
    yield pieces.product(
        label("values"),
        [Rows(count=h * v, nonzeros=context)],
        context,
        (target.activation_bits(Place.ATTENTION_SOFTMAX), bits),
        Place.ATTENTION_VALUES,
    )
    yield pieces.matrix(
        label("output"),
        target.matrices[f"{block}output.weight"],
        input_bits=target.activation_bits(Place.ATTENTION_VALUES),
    )
    yield pieces.additions(label("residual"), shape.width)


def _scores(pieces: Pieces, table: tuple[Rows, ...]) -> Iterator[Rows]:
    """Yield rows of the position scores: each is added to its key score, like a bias."""
    shape = pieces.target.shape
    if not pieces.makes(Departure.ROW_SUMS):  # the authors' code counts the table as dense
        table = (Rows(count=shape.context, nonzeros=shape.key_width),)
    heads = shape.heads if pieces.makes(Departure.POSITION_HEADS) else 1
    return (Rows(count=heads * r.count, nonzeros=r.nonzeros, biased=True) for r in table)


def _feed_forward(pieces: Pieces, number: int) -> Iterator[Row]:
    """Yield LayerNorm, d to d_ff, ReLU, d_ff to d, residual."""

    def label(name: str) -> Label:
        return Label(part=f"layer {number + 1}", component="feed-forward", name=name)

    target, shape, block = pieces.target, pieces.target.shape, f"blocks.{number}."
    yield pieces.norm(label("LayerNorm"), Place.FFN_NORM)
    yield pieces.matrix(
        label("inner"),
        target.matrices[f"{block}inner.weight"],
        input_bits=target.activation_bits(Place.FFN_NORM),
    )
    yield pieces.others(label("ReLU"), formulas.each(shape.ffn_width), Place.RELU)
    yield pieces.matrix(
        label("outer"),
        target.matrices[f"{block}outer.weight"],
        input_bits=target.activation_bits(Place.RELU),
        quantizer=Place.FFN_OUTPUT,
    )
    yield pieces.additions(label("residual"), shape.width)


def _softmax(pieces: Pieces) -> Iterator[Row]:
    """Yield all bins' probabilities. The tables, shared with the input, are stored here."""
    if Place.HIDDEN in pieces.target.places:
        label = Label(part="bin 1", component="softmax", name="hidden state")
        yield pieces.others(label, ZERO, Place.HIDDEN)
    for number in range(len(pieces.target.shape.cutoffs) + 1):
        yield from _bin(pieces, number)


def _bin(pieces: Pieces, number: int) -> Iterator[Row]:
    """Yield one bin's projection, words and softmax; the first also has entries for tails."""

    def label(name: str) -> Label:
        return Label(part=f"bin {number + 1}", component="softmax", name=name)

    target, bounds = pieces.target, pieces.target.shape.bounds
    bits, words = target.activation_bits(Place.HIDDEN), bounds[number + 1] - bounds[number]
    projection = target.matrices.get(f"softmax.projections.{number}.weight")
    if projection:
        yield pieces.matrix(
            label("projection"), projection, input_bits=bits, quantizer=Place.PROJECTED
        )
        bits = target.activation_bits(Place.PROJECTED)
    table = target.matrices[f"embedding.tables.{number}"]
    yield pieces.matrix(label("words"), table, input_bits=bits)
    # A bin's factor is multiplied into the divisor of its exponentials: one operation.
    factor = pieces.makes(Departure.TAIL_CHANCE)  # the probability of the bin
    if number == 0:
        factor = target.cache > 0 and pieces.makes(Departure.CACHE_MIXING)  # 1 − λ
        words += len(target.shape.cutoffs)
        entries = target.matrices.get("softmax.tail_weight")
        if entries:
            yield pieces.matrix(label("other bins"), entries, input_bits=bits)
    yield pieces.others(label("softmax"), formulas.softmax(words) + int(factor))


def _ngrams(pieces: Pieces) -> Iterator[Row]:
    """Yield the table's storage, and what it adds to the probabilities of all words.

    Under both rules: every word has a product and a sum for its probability without a context,
    and so has every entry of the longest groups.
    """
    table = pieces.target.ngrams
    if table is None:
        return
    label = Label(part="n-grams", component="n-grams", name="table")
    words = pieces.target.shape.bounds[-1]
    scaled = pieces.scaling(label, words + table.added)
    added = pieces.additions(label, words + table.added)
    yield Row(
        label=label,
        storage=formulas.plain(table.bits, 1),
        multiplies=scaled.multiplies,
        plain_multiplies=scaled.plain_multiplies,
        adds=added.adds,
        plain_adds=added.plain_adds,
        other=Fraction(1),  # 1 − s becomes part of the first bin's divisor
        size=words + table.entries,
        nonzeros=words + table.entries,
    )


def _cache(pieces: Pieces) -> Iterator[Row]:
    """Yield similarities to the last N hidden states, their softmax, and votes for their words."""

    def label(name: str) -> Label:
        return Label(part="cache", component="cache", name=name)

    target, size, width = pieces.target, pieces.target.cache, pieces.target.shape.width
    if not size:
        return
    bits, mixing = target.activation_bits(Place.HIDDEN), pieces.makes(Departure.CACHE_MIXING)
    if pieces.makes(Departure.CACHE_VALUES):
        yield pieces.values(label("θ and λ"), 2)
    if mixing:  # θ becomes part of the hidden state's scale, whose integers do not change
        yield pieces.scaling(label("θ · hidden state"), width)
    rows = [Rows(count=size, nonzeros=width)]
    yield pieces.product(label("similarities"), rows, width, (bits, bits))
    if target.fades:
        yield pieces.additions(label("fading"), size)
    yield pieces.others(label("softmax"), formulas.softmax(size) + int(mixing))  # λ
    if mixing:
        yield pieces.additions(label("votes"), size)
