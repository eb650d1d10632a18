r"""Mathematical answers, plain or in LaTeX, as trees. Nothing is ever evaluated as code.

A small recursive-descent parser over a bounded number of tokens::

    sum      = product (("+" | "-") product)*
    product  = unary (("*" | "/" | nothing) unary)*
    unary    = ("+" | "-") unary | power
    power    = postfix ("^" unary)?
    postfix  = atom "!"*
    atom     = number | name | function argument | "(" sum ")" | "|" sum "|" | \frac{sum}{sum} | \sqrt[sum]{sum}

A tree is a number or a name as text, or a tuple of an operation and its parts.
"""

import re
from dataclasses import dataclass
from typing import TypeAlias

from evenhand.core.errors import InputError

MAX_CHARACTERS = 1_000
"""Longer answers are not read as mathematics."""
MAX_TOKENS = 400
"""More tokens are not either."""
MAX_DEPTH = 40
"""Nor deeper nesting."""
MAX_DIGITS = 100
"""Nor longer numbers."""

Tree: TypeAlias = "str | tuple[Tree, ...]"

FUNCTIONS = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "arcsin",
        "arccos",
        "arctan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "exp",
        "ln",
        "log",
        "lg",
        "sqrt",
        "abs",
    ]
)
NAMES = frozenset(
    [
        "pi",
        "infty",
        "inf",
        "oo",
        "e",
        "i",
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "theta",
        "lambda",
        "mu",
        "nu",
        "phi",
        "psi",
        "omega",
        "rho",
        "sigma",
        "tau",
    ]
)

CAPITALS = frozenset(
    ["Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega"]
)
"""Names of their own: \\Delta is not \\delta."""

_DROPPED = re.compile(
    r"\\left(?![a-z])|\\right(?![a-z])|\\[,;:!\s]|\\displaystyle|\\\(|\\\)|\\\[|\\\]|\\\$|\\%|[$%]|\^\s*+(?:\{\s*+)?\\circ\s*+\}?|°"
    r"|(?<=\d),(?=\d{3}(?!\d))"
)
_WORDS = (
    (re.compile(r"\\(?:text|mathrm|mbox|textbf)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\\(?:cdot|times)(?![a-z])|[×·∙]"), "*"),
    (re.compile(r"\\div(?![a-z])|÷"), "/"),
    (re.compile(r"\\[dtc]frac"), r"\\frac"),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"[−–]"), "-"),
    (re.compile(r"π"), " pi "),
    (re.compile(r"∞"), " infty "),
    (re.compile(r"√"), r"\\sqrt "),
    (re.compile(r"\\operatorname\s*\{(\w+)\}"), r"\\\1 "),
)
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?|\.\d+)|\\([a-zA-Z]+)|([a-zA-Z]+)|([-+*/^!(){}\[\]|_]))")


def parse(text: str) -> Tree:
    """The tree of an expression; `InputError` when it is none or exceeds a limit."""
    return _Parser(_tokens(text)).whole()


@dataclass(slots=True, frozen=True)
class _Token:
    kind: str
    """number, name or sign."""
    text: str


def _tokens(text: str) -> list[_Token]:
    if len(text) > MAX_CHARACTERS:
        raise InputError("too long to be read as an expression")
    text = _DROPPED.sub("", text)
    for pattern, replacement in _WORDS:
        text = pattern.sub(replacement, text)
    # Letters beside digits or signs are variables that are multiplied; a word on its own stays a word.
    split = bool(re.search(r"[\d+*/^=\\(]", text))
    tokens: list[_Token] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InputError(f"cannot read {text[position : position + 10]!r} as mathematics")
        position = match.end()
        number, command, word, sign = match.groups()
        if number:
            if len(number) > MAX_DIGITS:
                raise InputError("a number has too many digits")
            tokens.append(_Token("number", number))
        elif sign:
            tokens.append(_Token("sign", sign))
        else:
            tokens += [_Token("name", name) for name in _names(command, word, split)]
        if len(tokens) > MAX_TOKENS:
            raise InputError("too many tokens to be read as an expression")
    return tokens


def _names(command: str | None, word: str | None, split: bool) -> list[str]:
    if command is not None:
        if command not in FUNCTIONS | NAMES | CAPITALS | {"frac", "binom"}:
            raise InputError(f"unknown command \\{command}"[:60])
        return [command]
    assert word is not None
    if word.lower() in FUNCTIONS or word.lower() in NAMES - {"i", "e", "inf"} or len(word) == 1:
        return [word.lower() if len(word) > 1 else word]
    return list(word) if split and len(word) <= 3 else [word]


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Tree:
        tree = self._sum()
        if self._at < len(self._tokens):
            raise InputError(f"unexpected '{self._tokens[self._at].text}'")
        return tree

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _sign(self, text: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == _Token("sign", text):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._sign(text):
            raise InputError(f"expected '{text}', found '{self._peek() or 'the end'}'")

    def _sum(self, in_bars: bool = False) -> Tree:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InputError("nested too deeply to be read as an expression")
        tree = self._product(in_bars)
        while self._peek() in ("+", "-"):
            operation = "add" if self._sign("+") else "sub"
            if operation == "sub":
                self._expect("-")
            tree = (operation, tree, self._product(in_bars))
        self._depth -= 1
        return tree

    def _product(self, in_bars: bool) -> Tree:
        tree = self._unary()
        while True:
            if self._sign("*"):
                tree = ("mul", tree, self._unary())
            elif self._sign("/"):
                tree = ("div", tree, self._unary())
            elif self._starts_atom(in_bars):
                tree = ("mul", tree, self._power())
            else:
                return tree

    def _starts_atom(self, in_bars: bool) -> bool:
        if self._at >= len(self._tokens):
            return False
        token = self._tokens[self._at]
        return token.kind != "sign" or token.text in ("(", "{") or (token.text == "|" and not in_bars)

    def _unary(self) -> Tree:
        negative = False
        while self._peek() in ("+", "-"):
            negative ^= self._sign("-") or not self._sign("+")
        tree = self._power()
        return ("neg", tree) if negative else tree

    def _power(self) -> Tree:
        tree = self._atom()
        while self._sign("!"):
            tree = ("factorial", tree)
        if self._sign("^"):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise InputError("nested too deeply to be read as an expression")
            exponent = self._unary()
            self._depth -= 1
            return ("pow", tree, exponent)
        return tree

    def _atom(self) -> Tree:
        if self._sign("("):
            return self._closed(")")
        if self._sign("{"):
            return self._closed("}")
        if self._sign("|"):
            tree = self._sum(in_bars=True)
            self._expect("|")
            return ("abs", tree)
        if self._at >= len(self._tokens) or self._tokens[self._at].kind == "sign":
            raise InputError(f"expected a value, found '{self._peek() or 'the end'}'")
        token = self._tokens[self._at]
        self._at += 1
        if token.kind == "number":
            return token.text
        return self._named(token.text)

    def _named(self, name: str) -> Tree:
        if name in ("frac", "binom"):
            return ("div" if name == "frac" else "binomial", self._argument(), self._argument())
        if name == "sqrt" and self._sign("["):
            index = self._closed("]")
            return ("root", self._argument(), index)
        if name in FUNCTIONS:
            base: Tree | None = self._argument() if name == "log" and self._sign("_") else None
            power = self._unary() if self._sign("^") else None
            tree: Tree = (name, self._argument()) if base is None else ("log", self._argument(), base)
            return tree if power is None else ("pow", tree, power)
        if self._sign("_"):  # x_1 is a name of its own
            index = self._argument()
            return ("name", f"{name}_{index if isinstance(index, str) else repr(index)}")
        return ("name", name)

    def _argument(self) -> Tree:
        if self._peek() in ("(", "{", "|"):
            return self._atom()
        if self._at < len(self._tokens) and self._tokens[self._at].kind == "number":
            token = self._tokens[self._at]
            # \frac12 and \sqrt2 take one digit; sin 30 takes the number.
            self._at += 1
            return token.text
        return self._power()

    def _closed(self, bracket: str) -> Tree:
        tree = self._sum()
        self._expect(bracket)
        return tree
