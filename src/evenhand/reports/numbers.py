"""Numbers as pages show them: three decimals, a true minus, p with two digits."""

from evenhand.metrics.types import Interval

NONE = "–"
"""What is not there; never a zero."""


def number(value: float | None, digits: int = 3) -> str:
    """`0.617`, `−1,204.5`; a dash for what is not there."""
    return NONE if value is None else f"{value:,.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int = 3) -> str:
    """`+0.183`, `−0.020`."""
    return NONE if value is None else f"{value:+,.{digits}f}".replace("-", "−")


def interval(found: Interval | None) -> str:
    """`0.617 [0.528, 0.699]`."""
    if found is None:
        return NONE
    return f"{number(found.value)} [{number(found.ci_lower)}, {number(found.ci_upper)}]"


def p_text(value: float | None) -> str:
    """Two digits: `0.042`, `0.83`, `<0.001`."""
    if value is None:
        return NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def counted(count: int, noun: str) -> str:
    """`1 problem`, `1,200 problems`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


_PROPER = {
    "bca": "BCa",
    "bonett": "Bonett",
    "clopper": "Clopper",
    "lang": "Lang",
    "pearson": "Pearson",
    "ppi++": "PPI++",
    "price": "Price",
    "reiczigel": "Reiczigel",
    "t": "Student's t",
    "wilson": "Wilson",
}


def method_name(method: str) -> str:
    """The name of an interval's method as people write it: `clopper_pearson` is Clopper-Pearson."""
    words = [_PROPER.get(word, word) for word in method.replace("/", " over ").replace("_", " ").split(" ")]
    text = " ".join(words)
    for pair in ("Clopper Pearson", "Bonett Price", "Lang Reiczigel"):
        text = text.replace(pair, pair.replace(" ", "-"))
    return text
