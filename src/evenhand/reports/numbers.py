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


def percent(share: float | None, digits: int = 1) -> str:
    """`2.1 %`, `33 %`; a share of 0 to 1."""
    if share is None:
        return NONE
    text = f"{share * 100:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def duration(milliseconds: float | None) -> str:
    """`340ms`, `1.2s`, `4m 10s`, `2h 5m`."""
    if milliseconds is None:
        return "—"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f}ms" if milliseconds >= 1 or milliseconds == 0 else "<1ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes = round(seconds / 60) if seconds >= 3600 else int(seconds // 60)
    if seconds < 3600:
        return f"{minutes}m {int(seconds - 60 * minutes)}s"
    return f"{minutes // 60:,}h {minutes % 60}m"


def age(seconds: float) -> str:
    """How long ago, in one unit: `4 s`, `34 min`, `2 h`, `5 d`."""
    if seconds < 60:
        return f"{max(0, int(seconds))} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min"
    if seconds < 48 * 3600:
        return f"{int(seconds // 3600)} h"
    return f"{int(seconds // 86400):,} d"


def bytes_text(count: int) -> str:
    """`812 bytes`, `14 KB`, `3.2 MB`."""
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:,.0f} KB" if count < 1024 * 1024 else f"{count / 1024 / 1024:,.1f} MB"


def dollars_text(amount: float | None) -> str:
    """`$0.0044`, `$12.90`: two significant digits below a cent, cents above."""
    if amount is None:
        return "—"
    if amount == 0 or amount >= 0.995:
        return f"${amount:,.2f}"
    digits = 2 if amount >= 0.1 else 3 if amount >= 0.01 else 4
    return f"${amount:.{digits}f}" if amount >= 0.00005 else "<$0.0001"
