"""Ids that sort by the time they were made (UUID version 7, RFC 9562)."""

import os
import threading
import time
import uuid

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A fresh id; ids made later in one process sort later, also within one millisecond."""
    global _last
    # 48 bits of milliseconds and 12 bits that count up within one, as RFC 9562 section 6.2 method 3 allows.
    stamp = time.time_ns()
    ticks = (stamp // 1_000_000 << 12) | ((stamp % 1_000_000) * 4096 // 1_000_000)
    with _lock:
        ticks = max(ticks, _last + 1)
        _last = ticks
    random_bits = int.from_bytes(os.urandom(8), "big") & ((1 << 62) - 1)
    value = (ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | random_bits
    return str(uuid.UUID(int=value))
