"""Equality of expressions, decided by sympy in a worker process that is stopped after a time limit.

Trees come from our own parser; what it cannot read is read and compared by math-verify. sympy's own parser, which
evaluates Python, is never used.
"""

import importlib.util
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import msgspec

from evenhand.core.errors import InputError, MissingExtra
from evenhand.scoring.algebra import Tree, parse
from evenhand.scoring.worker import Reply, Worker, serve

TIME_LIMIT = 3.0
"""Seconds after which comparing two expressions is stopped."""
MAX_BITS = 20_000
"""How large an exact power may become."""
MAX_FACTORIAL = 300
"""The largest number whose factorial is taken."""
DIGITS = 40
"""Digits to which values are compared."""
MAX_LATEX = 500
"""How many characters math-verify is given; its reader takes seconds for thousands."""
POINTS = 6
"""At how many points expressions with variables are compared."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_worker = Worker("evenhand.scoring.algebra_worker", time_limit=TIME_LIMIT)


def equal_apart(first: str, second: str, tolerance: float = 0.0) -> bool | None:
    """Whether an answer and a target are equal; None when one of them cannot be read. `ScorerTimeout` past the limit.

    Values may differ by `tolerance`, for a long decimal that stands for an exact value.
    """
    for package in ("sympy", "math_verify"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtra(package.replace("_", "-"), "math", "symbolic equality")
    if _SURROGATE.search(first) or _SURROGATE.search(second):
        return None  # half a character: no text that could be sent
    with _worker.ask([first, second, tolerance]) as reply:
        equal: bool | None = reply()["equal"]
        return equal


def _answer(line: bytes) -> Iterator[Reply]:
    first, second, tolerance = msgspec.json.decode(line, type=tuple[str, str, float])
    try:
        yield {"equal": _equal(_build(parse(first)), _build(parse(second)), tolerance)}
    except ArithmeticError:
        yield {"equal": None}
    except (InputError, ValueError, TypeError, RecursionError, NotImplementedError, AttributeError):
        yield {"equal": _verified(first, second)}


def _verified(answer: str, target: str) -> bool | None:
    """What math-verify says about what our parser cannot read; None when it cannot either.

    Only its LaTeX reader is used: the other one evaluates Python. Decimals are compared to 12 places, so that no
    digit of an answer is rounded away; its own time limits are off, since this process has one.
    """
    if max(len(answer), len(target)) > MAX_LATEX:
        return None
    from math_verify import LatexExtractionConfig, verify
    from math_verify import parse as parse_latex

    readers = [LatexExtractionConfig(boxed_match_priority=-1)]
    found, wanted = (
        parse_latex(
            f"$${' '.join(text.split())}$$", readers, fallback_mode="no_fallback", parsing_timeout=None
        )
        for text in (answer, target)
    )
    if not found or not wanted:
        return None
    return bool(verify(wanted, found, float_rounding=12, timeout_seconds=None, allow_set_relation_comp=True))


def _build(tree: Tree) -> Any:
    """The sympy expression of a tree."""
    import sympy as sp

    if isinstance(tree, str):
        return sp.Rational(*Fraction(tree).as_integer_ratio())
    operation = tree[0]
    if operation == "name":
        constants = {"pi": sp.pi, "e": sp.E, "i": sp.I, "infty": sp.oo, "inf": sp.oo, "oo": sp.oo}
        name = str(tree[1])
        return constants.get(name) or sp.Symbol(name)
    parts = [_build(part) for part in tree[1:]]
    return _operations()[str(operation)](*parts)


def _operations() -> dict[str, Callable[..., Any]]:
    import sympy as sp

    same = {
        n: getattr(sp, n)
        for n in [
            "sin",
            "cos",
            "tan",
            "cot",
            "sec",
            "csc",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "exp",
            "sqrt",
            "binomial",
        ]
    }
    return {
        **same,
        "arcsin": sp.asin,
        "arccos": sp.acos,
        "arctan": sp.atan,
        "abs": sp.Abs,
        "ln": sp.log,
        "lg": lambda x: sp.log(x, 10),
        "log": lambda x, base=None: sp.log(x) if base is None else sp.log(x, base),
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": _divided,
        "neg": lambda a: -a,
        "pow": _power,
        "root": lambda x, n: _power(x, _divided(sp.Integer(1), n)),
        "factorial": _factorial,
    }


def _divided(top: Any, bottom: Any) -> Any:
    if bottom.is_zero:
        raise ZeroDivisionError
    return top / bottom


def _power(base: Any, exponent: Any) -> Any:
    if exponent.is_number and base.is_number:
        size = max(abs(part) for part in base.as_numer_denom()) if base.is_Rational else 2**64
        if abs(exponent) * max(int(size).bit_length(), 2) > MAX_BITS:
            raise ValueError("a power is too large")
    return base**exponent


def _factorial(value: Any) -> Any:
    import sympy as sp

    if value.is_number and not (value.is_Integer and 0 <= value <= MAX_FACTORIAL):
        raise ValueError("a factorial is too large")
    return sp.factorial(value)


def _equal(first: Any, second: Any, tolerance: float) -> bool:
    if first == second:
        return True
    if first.is_Rational and second.is_Rational:
        return False
    symbols = sorted(first.free_symbols | second.free_symbols, key=str)
    if not symbols:
        one, other = first.evalf(DIGITS), second.evalf(DIGITS)
        return _close(one, other) is True or bool(tolerance and _stands_for(first, second, tolerance))
    agreed = 0
    for point in range(POINTS):
        values = {symbol: _coordinate(point, place) for place, symbol in enumerate(symbols)}
        close = _close(first.subs(values).evalf(DIGITS), second.subs(values).evalf(DIGITS))
        if close is False:
            return False
        agreed += close is True
    return agreed >= 2


def _stands_for(first: Any, second: Any, step: float) -> bool:
    """Whether the rational one of two numbers is the other, rounded or cut off after digits of this step."""
    decimal, exact = (first, second) if first.is_Rational else (second, first)
    beyond = (exact - decimal).evalf(DIGITS) * (1 if decimal > 0 else -1)
    return bool(abs(beyond) <= step / 2 or 0 <= beyond < step)


def _coordinate(point: int, place: int) -> Any:
    """Fixed, unrelated rationals between -3 and 3: two different expressions agree at all of them by no accident."""
    import sympy as sp

    return sp.Rational((7919 * (point + 1) + 104729 * (place + 1)) % 60_013 - 30_006, 10_007)


def _close(first: Any, second: Any) -> bool | None:
    """Whether two values agree to nearly all digits; None when one is undefined."""
    if (
        not (first.is_number and second.is_number)
        or first.is_finite is not True
        or second.is_finite is not True
    ):
        return True if first == second and first.is_infinite else None
    scale = max(abs(first), abs(second))
    return bool(abs(first - second) <= scale * 10 ** -(DIGITS - 15))


if __name__ == "__main__":
    import math_verify  # noqa: F401  loaded before the first request, whose time is limited

    serve(_answer)
