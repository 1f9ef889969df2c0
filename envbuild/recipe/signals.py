"""The signals that Linux has, by their names."""

import re
import signal
from typing import Final

_REALTIME: Final = re.compile(r"SIGRT(MIN|MAX)([+-]\d+)?")
_FIRST: Final = 34
_LAST: Final = 64


def number(name: str) -> int | None:
    """Return a signal's number on Linux (`SIGTERM`, `SIGRTMIN+3`), None for no signal."""
    if found := _REALTIME.fullmatch(name):
        base = _FIRST if found[1] == "MIN" else _LAST
        value = base + int(found[2] or 0)
        return value if _FIRST <= value <= _LAST else None
    known = getattr(signal, name, None)
    return int(known) if isinstance(known, signal.Signals) else None
