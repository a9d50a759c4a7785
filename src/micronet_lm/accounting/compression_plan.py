"""The target of a model after planned pruning and quantization."""

from dataclasses import dataclass, replace
from fractions import Fraction

from micronet_lm.accounting.target import Matrix, Rows, Target
from micronet_lm.config import FULL, PLACEMENTS
from micronet_lm.errors import UsageError
from micronet_lm.layout import EMBEDDINGS, PRUNABLE, Role, Slot, slots


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Planned pruning and quantization of a model."""

    density: Fraction | None = None
    """Share of non-zeros in every prunable matrix; None leaves the matrices unchanged."""
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
    matrices = dict(target.matrices)
    for slot in slots(target.shape):
        matrix = matrices[slot.name]
        if plan.density is not None and slot.role in PRUNABLE:
            matrix = replace(matrix, rows=evenly(slot, round(plan.density * matrix.size)).rows)
        if plan.bits < FULL:
            matrix = _quantized(matrix, slot.role, plan)
        matrices[slot.name] = matrix
    if plan.bits == FULL:
        return replace(target, matrices=matrices)
    places = PLACEMENTS[plan.activations]
    return replace(target, matrices=matrices, bits=plan.bits, places=places, place_bits=None)


def evenly(slot: Slot, nonzeros: int) -> Matrix:
    """Return a matrix whose non-zeros are spread as evenly as possible over its rows."""
    low, more = divmod(nonzeros, slot.outputs)
    biased = slot.bias is not None
    groups = ((slot.outputs - more, low), (more, low + 1))
    return Matrix(
        name=slot.name,
        outputs=slot.outputs,
        inputs=slot.inputs,
        rows=tuple(Rows(count=n, nonzeros=m, biased=biased) for n, m in groups if n),
        has_bias=biased,
    )


def _quantized(matrix: Matrix, role: Role, plan: Plan) -> Matrix:
    """Quantize as the authors' code does: not position tables, biases like their matrix."""
    if role is Role.POSITIONS or (role in EMBEDDINGS and not plan.embeddings):
        return matrix
    scales = matrix.outputs if plan.scale_a_row else 1
    return replace(matrix, bits=plan.bits, bias_bits=plan.bits, scales=scales)
