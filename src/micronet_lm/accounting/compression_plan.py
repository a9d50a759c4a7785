"""The target of a model after planned pruning and quantization."""

from dataclasses import dataclass, replace
from fractions import Fraction

from micronet_lm.accounting.target import Matrix, Rows, Target
from micronet_lm.config import FULL, PLACEMENTS
from micronet_lm.errors import UsageError
from micronet_lm.layout import EMBEDDINGS, Role, Slot, prunable_sizes, slots


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Planned pruning and quantization of a model."""

    density: Fraction | None = None
    """Share of non-zeros in every matrix but position tables; None leaves all unchanged."""
    bits: int = FULL
    """Bits of weights and activations; 32 quantizes nothing."""
    activations: str = "code"
    """Quantized activations: a key of `PLACEMENTS`."""
    embeddings: bool = True
    """Whether the embedding tables are quantized too."""
    scale_a_row: bool = False
    """Whether a quantized matrix has one scale per row instead of one."""

    def __post_init__(self) -> None:
        if self.density is not None and not 0 <= self.density <= 1:
            raise UsageError(
                "density must be from 0 (all pruned) to 1 (nothing pruned), got "
                f"{float(self.density):g}"
            )
        if not 2 <= self.bits <= FULL:
            raise UsageError(
                f"bits must be 2 to {FULL - 1}, or {FULL} for a model that is not quantized, got "
                f"{self.bits}"
            )


def carry_out(plan: Plan, target: Target) -> Target:
    """Return a target pruned and quantized as planned."""
    matrices, prunable = dict(target.matrices), prunable_sizes(target.shape)
    for slot in slots(target.shape):
        matrix = matrices[slot.name]
        if plan.density is not None and slot.name in prunable:
            matrix = replace(matrix, rows=evenly(slot, round(plan.density * matrix.size)).rows)
        if plan.bits < FULL:
            matrix = _quantized(matrix, slot.role, plan)
        matrices[slot.name] = matrix
    if plan.bits == FULL:
        return replace(target, matrices=matrices)
    places = PLACEMENTS[plan.activations]
    return replace(target, matrices=matrices, bits=plan.bits, places=places, place_bits=None)


def evenly(slot: Slot, nonzeros: int, biases: int | None = None) -> Matrix:
    """Return a matrix whose non-zeros are spread as evenly as possible over its rows.

    `biases` of its rows have a bias that is not zero, by default all of a matrix with a bias.
    """
    low, more = divmod(nonzeros, slot.outputs)
    has = slot.bias is not None
    left = (slot.outputs if biases is None else biases) if has else 0
    rows = []
    for count, own in ((slot.outputs - more, low), (more, low + 1)):
        biased = min(left, count)
        left -= biased
        rows += [Rows(count=biased, nonzeros=own, biased=True)] if biased else []
        rows += [Rows(count=count - biased, nonzeros=own)] if count > biased else []
    return Matrix(
        name=slot.name, outputs=slot.outputs, inputs=slot.inputs, rows=tuple(rows), has_bias=has
    )


def _quantized(matrix: Matrix, role: Role, plan: Plan) -> Matrix:
    """Quantize as the authors' code does: not position tables, biases like their matrix."""
    if role is Role.POSITIONS or (role in EMBEDDINGS and not plan.embeddings):
        return matrix
    scales = matrix.outputs if plan.scale_a_row else 1
    return replace(matrix, bits=plan.bits, bias_bits=plan.bits, scales=scales)
