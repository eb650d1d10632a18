"""Numbers as people read them."""

DASH = "–"


def shown(value: float | None, unit: str = "") -> str:
    """Four significant digits, thousands apart, whole numbers whole; a dash for what is missing."""
    if value is None:
        return DASH
    size = abs(value)
    if size >= 1000 or value == int(value):
        text = f"{value:,.0f}"
    elif size >= 1:
        text = f"{value:.4g}"
    else:
        text = f"{value:.3g}"
    text = text.replace("-", "−")
    if unit == "USD":
        return f"−${text[1:]}" if text.startswith("−") else f"${text}"
    return f"{text} {unit}" if unit else text


def signed(value: float | None, unit: str = "") -> str:
    """The same with a plus sign where it is positive."""
    text = shown(value, unit)
    return f"+{text}" if value is not None and value > 0 else text


def percent(value: float | None) -> str:
    """A share as a percentage with one decimal at most."""
    return DASH if value is None else f"{100 * value:.4g}%"


def p_text(value: float | None) -> str:
    """A p-value."""
    if value is None:
        return DASH
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
