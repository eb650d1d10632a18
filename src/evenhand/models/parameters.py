"""Parameters that an endpoint does not take: found out from its refusals, and left out or renamed from then on."""

import re
from typing import Any

from msgspec.structs import replace

from evenhand.models.port import ChatRequest

SUCCESSORS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""What to send in place of a parameter; the two limits are old and new names of one thing."""
ADJUSTABLE = (
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "reasoning_effort",
)
"""Parameters that a question makes sense without."""
_NAMED = re.compile(rf"(?<![A-Za-z_])({'|'.join(ADJUSTABLE)})(?![A-Za-z_])")
_REFUSED = re.compile(
    r"unsupported|not supported|(?:does not|doesn't|only) support|unknown|unrecogni[sz]ed|not permitted"
    r"|not allowed|unexpected|extra (?:inputs|fields)|deprecated|cannot both be specified",
    re.IGNORECASE,
)
_UNSET: dict[str, Any] = {"stop": ()}


def refused_parameters(message: str, parameter: Any = None) -> tuple[str, ...]:
    """The parameters that a refusal says the endpoint does not take, the likeliest first.

    A value out of range is the caller's mistake and names none.
    """
    if not _REFUSED.search(message):
        return ()
    named = _NAMED.findall(message)
    if isinstance(parameter, str) and parameter in ADJUSTABLE:
        named.insert(0, parameter)
    return tuple(dict.fromkeys(named))


class Parameters:
    """What one endpoint turned out not to take. Every question after that is sent without it."""

    def __init__(self, *, keep_limit: bool = False) -> None:
        # A spend cap needs a limit, and so does Anthropic: it may be renamed, but not left out.
        self._keep_limit = keep_limit
        self._refused: dict[str, str | None] = {}

    def adjusted(self, request: ChatRequest) -> ChatRequest:
        """The question as this endpoint takes it."""
        for name, successor in self._refused.items():
            value = getattr(request, name)
            if value != _UNSET.get(name):
                request = replace(request, **{name: _UNSET.get(name)})
                if successor is not None and getattr(request, successor) is None:
                    request = replace(request, **{successor: value})
        return request

    def learn(self, sent: ChatRequest, refused: tuple[str, ...]) -> bool:
        """Whether a question that was refused can be sent in another way."""
        for name in refused:
            if getattr(sent, name) == _UNSET.get(name):
                continue  # it was not even in the question
            if name in self._refused:
                return True  # another question has found that out in the meantime
            successor = SUCCESSORS.get(name)
            if successor in self._refused:
                successor = None
            if successor is None and name in SUCCESSORS and self._keep_limit:
                return False
            self._refused[name] = successor
            return True
        return False

    def notes(self, asked: ChatRequest) -> tuple[str, ...]:
        """What became of the parameters of a question, in words; nothing where it was sent as it is."""
        if not self._refused:
            return ()
        return tuple(
            f"{name} left out" if successor is None else f"{name} sent as {successor}"
            for name, successor in self._refused.items()
            if getattr(asked, name) != _UNSET.get(name)
        )
