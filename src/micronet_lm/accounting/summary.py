"""An account as plain values, for `--json`, the report and the model card."""

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
    """The sum of rows that are shown together."""

    name: str
    storage: Fraction
    multiplies: Fraction
    adds: Fraction
    other: Fraction
    bits: tuple[int, ...]
    """All widths of its weights, the smallest first."""
    size: int
    nonzeros: int

    @property
    def operations(self) -> Fraction:
        """All operations, weighted by their bits."""
        return self.multiplies + self.adds + self.other

    @property
    def density(self) -> float | None:
        """Share of non-zeros among stored values; None if nothing is stored."""
        return self.nonzeros / self.size if self.size else None


def grouped(rows: Iterable[Row], by: str) -> list[Group]:
    """Return rows summed by a field of their labels (`part` or `component`), in order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(getattr(row.label, by), []).append(row)
    return [summed(name, members) for name, members in found.items()]


def as_group(row: Row) -> Group:
    """Return one row as a group."""
    return summed(row.label.name, [row])


def summed(name: str, rows: Sequence[Row]) -> Group:
    """Return the sum of rows."""

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
    """Return the baseline's storage and operations as multiples of the account's."""
    storage, operations = account.storage, account.operations
    return (
        float(STORAGE_BASELINE / storage) if storage else None,
        float(OPERATIONS_BASELINE / operations) if operations else None,
    )


def as_json(account: Account) -> dict[str, Any]:
    """Return everything as plain values, whole numbers as integers."""
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
    """Return all formulas, without their functions."""
    return [
        {"title": f.title, "formula": f.text, "rules": f.rules, "source": f.source}
        for f in FORMULAS
    ]


def number(amount: Fraction) -> int | float:
    """Return a fraction as a JSON number."""
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
