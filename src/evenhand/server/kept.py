"""Results that cost much to compute, kept while what they were computed from stays the same."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any


class Kept:
    """The results that were asked for most recently. A key names everything that its result depends on."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._results: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        """The result of the key; None where it is not kept."""
        if key not in self._results:
            return None
        self._results.move_to_end(key)
        return self._results[key]

    def put(self, key: Hashable, result: Any) -> None:
        """Keep a result; the one that was not asked for longest goes."""
        self._results[key] = result
        self._results.move_to_end(key)
        if len(self._results) > self._most:
            self._results.popitem(last=False)
