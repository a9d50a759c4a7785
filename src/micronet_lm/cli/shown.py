"""Numbers as people read them."""


def amount(number: float | None) -> str:
    """A count: 8.30 M, 103 M, 4,059."""
    if not number:
        return ""
    for unit, name in ((1e9, "G"), (1e6, "M")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return f"{number:,.0f}"


def size(count: float | None) -> str:
    """Bytes: 12.3 MB."""
    if not count:
        return ""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} B"


def clock(seconds: float | None) -> str:
    """A time: 12 s, 5:03 min, 3.2 h, 41 days."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    if seconds < 3600:
        return f"{int(seconds // 60)}:{int(seconds % 60):02d} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:,.0f} days"
