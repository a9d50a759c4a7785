"""What pruning and quantization would make of a target, before they are done."""

from dataclasses import dataclass, replace
from fractions import Fraction

from micronet_lm.accounting.target import Matrix, Rows, Target
from micronet_lm.config import FULL, PLACEMENTS
from micronet_lm.errors import UsageError
from micronet_lm.layout import EMBEDDINGS, PRUNABLE, Role, Slot, slots


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a model is to be pruned and quantized."""

    density: Fraction | None = None
    """Share of non-zeros in every prunable matrix; None leaves the matrices as they are."""
    bits: int = FULL
    """Of weights and activations; the full number quantizes nothing."""
    activations: str = "code"
    """Which activations are quantized: a key of `PLACEMENTS`."""
    embeddings: bool = True
    """Whether the embedding tables are quantized too."""
    scale_a_row: bool = False
    """Whether a quantized matrix has a scale for each row, or one."""

    def __post_init__(self) -> None:
        if self.density is not None and not 0 <= self.density <= 1:
            raise UsageError(
                f"the density {float(self.density):g} is not a share: give one from 0 (all "
                "pruned) to 1 (nothing pruned)"
            )
        if not 2 <= self.bits <= FULL:
            raise UsageError(
                f"{self.bits} bits cannot be counted: give 2 to {FULL - 1}, or {FULL} for a model "
                "that is not quantized"
            )


def carry_out(plan: Plan, target: Target) -> Target:
    """Prune and quantize a target as planned."""
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
    """A matrix whose non-zeros are spread over its rows as evenly as they can be."""
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
    """As the authors' code has it: position tables stay, biases go along with their matrix."""
    if role is Role.POSITIONS or (role in EMBEDDINGS and not plan.embeddings):
        return matrix
    scales = matrix.outputs if plan.scale_a_row else 1
    return replace(matrix, bits=plan.bits, bias_bits=plan.bits, scales=scales)
