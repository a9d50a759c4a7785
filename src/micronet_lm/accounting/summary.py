"""An account as plain values: what `--json` prints, what the report and the model card take."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from micronet_lm.accounting.count import differences
from micronet_lm.accounting.formulas import FORMULAS, OPERATIONS_BASELINE, STORAGE_BASELINE
from micronet_lm.accounting.memory import state, transient
from micronet_lm.accounting.rows import ZERO, Account, Row
from micronet_lm.accounting.rules import REASONS
from micronet_lm.accounting.target import Target
from micronet_lm.config import FULL


@dataclass(frozen=True, kw_only=True)
class Group:
    """Rows that are shown together, summed up."""

    name: str
    storage: Fraction
    multiplies: Fraction
    adds: Fraction
    other: Fraction
    bits: tuple[int, ...]
    """All numbers of bits that its weights have, the smallest first."""
    size: int
    nonzeros: int

    @property
    def operations(self) -> Fraction:
        """All operations, at their bits."""
        return self.multiplies + self.adds + self.other

    @property
    def density(self) -> float | None:
        """Share of non-zeros in what is stored; nothing where nothing is."""
        return self.nonzeros / self.size if self.size else None


def grouped(rows: Iterable[Row], by: str) -> list[Group]:
    """Sum up rows by a field of their labels (`part` or `component`), in the order of the step."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(getattr(row.label, by), []).append(row)
    return [summed(name, members) for name, members in found.items()]


def as_group(row: Row) -> Group:
    """One row on its own, as a group."""
    return summed(row.label.name, [row])


def summed(name: str, rows: Sequence[Row]) -> Group:
    """Sum up rows."""

    def total(column: str) -> Fraction:
        return sum((getattr(row, column) for row in rows), ZERO)

    return Group(
        name=name,
        storage=total("storage"),
        multiplies=total("multiplies"),
        adds=total("adds"),
        other=total("other"),
        bits=tuple(sorted({row.bits for row in rows if row.bits is not None})),
        size=sum(row.size for row in rows),
        nonzeros=sum(row.nonzeros for row in rows),
    )


def factors(account: Account) -> tuple[float | None, float | None]:
    """How many times smaller than the challenge's baseline storage and operations are."""
    storage, operations = account.storage, account.operations
    return (
        float(STORAGE_BASELINE / storage) if storage else None,
        float(OPERATIONS_BASELINE / operations) if operations else None,
    )


def as_json(account: Account) -> dict[str, Any]:
    """Everything as plain values, with whole numbers where they are whole."""
    target, rules = account.target, account.rules
    storage_factor, operations_factor = factors(account)
    held, stream = transient(target), state(target)
    return {
        "target": target.name,
        "rules": rules.name,
        "options": rules.options,
        "parameters": target.parameters,
        "storage": number(account.storage),
        "operations": {
            **{kind: number(account.total(kind)) for kind in ("multiplies", "adds", "other")},
            "total": number(account.operations),
        },
        "score": float(account.score),
        "factors": {"storage": storage_factor, "operations": operations_factor},
        "unweighted": {
            "multiplies": number(account.total("plain_multiplies")),
            "adds": number(account.total("plain_adds")),
        },
        "differences": [
            {
                "name": item.departure.value,
                "formula": REASONS[item.departure].formula,
                "why": REASONS[item.departure].why,
                "storage": number(item.storage),
                "operations": number(item.operations),
            }
            for item in differences(target, rules)
        ],
        "transient": {"numbers": held.size, "moment": held.name, "holds": dict(held.holds)},
        "state": {
            "numbers": stream.size,
            "keys": stream.keys,
            "values": stream.values,
            "cache": stream.cache,
            "bytes": number(stream.bytes),
        },
        "model": _model(target),
        "rows": [_row(row) for row in account.rows],
    }


def formulas_as_json() -> list[dict[str, str]]:
    """All formulas, without the functions that compute them."""
    return [
        {"title": f.title, "formula": f.text, "rules": f.rules, "source": f.source}
        for f in FORMULAS
    ]


def number(amount: Fraction) -> int | float:
    """A fraction as JSON has it."""
    return amount.numerator if amount.denominator == 1 else float(amount)


def _model(target: Target) -> dict[str, Any]:
    matrices = target.matrices.values()
    nonzeros = sum(m.nonzeros + m.bias_nonzeros for m in matrices)
    size = sum(m.size + m.bias_size for m in matrices)
    return {
        "context": target.shape.context,
        "cache": target.cache,
        "bits": target.bits,
        "activation_bits": min((target.activation_bits(p) for p in target.places), default=FULL),
        "weights": size,
        "nonzeros": nonzeros,
        "density": nonzeros / size,
        "activation_quantizers": {
            place.value: target.quantizers(place) for place in sorted(target.places)
        },
        "shares": list(target.shares),
        "shares_from": target.shares_from,
    }


def _row(row: Row) -> dict[str, Any]:
    group = as_group(row)
    return {
        "part": row.label.part,
        "component": row.label.component,
        "name": row.label.name,
        "storage": number(row.storage),
        "multiplies": number(row.multiplies),
        "adds": number(row.adds),
        "other": number(row.other),
        "bits": row.bits,
        "density": group.density,
    }
