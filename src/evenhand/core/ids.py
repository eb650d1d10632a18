"""Ids that sort by the time they were made (UUID version 7, RFC 9562)."""

import os
import threading
import time

from evenhand.core.timestamps import shown_instant

_lock = threading.Lock()
_last = 0
_last_shown = (0, 0)
_random = b""
_DRAWN = 4096


def _forget_random() -> None:
    global _random
    _random = b""


# A child process must not go on with its parent's random bytes.
os.register_at_fork(after_in_child=_forget_random)


def new_id() -> str:
    """A fresh id; ids made later in one process sort later, also within one millisecond."""
    global _last, _last_shown, _random
    # 48 bits of milliseconds and 12 bits that count up within one, as RFC 9562 section 6.2 method 3 allows.
    shown = shown_instant()
    stamp = time.time_ns() if shown is None else int(shown.timestamp() * 1e6) * 1000
    ticks = (stamp // 1_000_000 << 12) | ((stamp % 1_000_000) * 4096 // 1_000_000)
    with _lock:
        if shown is None:
            ticks = max(ticks, _last + 1)
            _last = ticks
        else:
            # Ids of one shown instant count on; those of another one may be older.
            ticks = max(ticks, _last_shown[1] + 1) if _last_shown[0] == stamp else ticks
            _last_shown = (stamp, ticks)
        if len(_random) < 8:
            _random = os.urandom(_DRAWN)
        bits, _random = _random[:8], _random[8:]
    time_hex = f"{ticks >> 12:012x}"
    tail = f"{int.from_bytes(bits, 'big') & 0x3FFFFFFFFFFFFFFF | 0x8000000000000000:016x}"
    return f"{time_hex[:8]}-{time_hex[8:]}-7{ticks & 0xFFF:03x}-{tail[:4]}-{tail[4:]}"
