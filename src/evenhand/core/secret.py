"""Values that must not be shown."""

import re

# Up to the last @ before the path: a password may hold one itself.
_USER_INFO = re.compile(r"(?<=://)[^/?#]*@")


def without_password(address: str) -> str:
    """`address` without the user name and password that it may carry, for messages."""
    return _USER_INFO.sub("", address)


class Secret:
    """Holds a key or token; shows itself as stars everywhere, and only `reveal` gives it away."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> str:
        raise TypeError("a secret cannot be serialised")
