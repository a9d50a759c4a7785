"""Numbers of tables and figures as text."""


def shown(kind: str, value: float) -> str:
    """Return a number with the digits of its kind."""
    if kind == "score":
        return f"{value:.4f}"
    if kind in ("lam", "theta"):
        return f"{value:.3g}"
    if kind == "seconds":
        return duration(value)
    if "perplexity" in kind:
        return f"{value:,.2f}"
    if abs(value) < 10 and value % 1:
        return f"{value:.3g}"  # a share, such as a sparsity
    if value < 1e5:
        return f"{value:,.0f}"
    return f"{value / 1e6:,.2f}M" if value < 1e8 else f"{value / 1e6:,.0f}M"


def duration(seconds: float) -> str:
    """Return a time as text: 12 s, 4 min, 2.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
