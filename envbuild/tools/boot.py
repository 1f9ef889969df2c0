"""Which run of this machine's kernel this is."""

from pathlib import Path
from typing import Final

_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def identity() -> str:
    """Return what tells this run of this machine's kernel from every other (random(4))."""
    try:
        return _ID.read_text(encoding="ascii").strip()
    except OSError:
        return "?"
