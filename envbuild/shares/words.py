"""Sizes and shares of cards, read from recipes and written for people."""

import math
from typing import Final

from envbuild.recipe.words import size_bytes

_KIB: Final = 1024
_MIB: Final = _KIB**2


def size_mib(text: str) -> int:
    """Return the MiB of a checked size, rounded up."""
    return -(-size_bytes(text) // _MIB)


def of_hundred(text: str) -> float:
    """Return the number of a checked share: 30 of `30%`."""
    return float(text.removesuffix("%"))


def gib(mib: int) -> str:
    """Write an amount of memory as recipes have it."""
    return f"{mib // _KIB}G" if mib % _KIB == 0 else f"{mib / _KIB:.1f}G"


def rate(bytes_per_second: int) -> str:
    """Write a rate as recipes have it, with `/s`."""
    return f"{gib(bytes_per_second // _MIB)}/s"


def percent(share: float) -> str:
    """Write a share: `43%`, and `42.8%` where it is not whole; never more than it is."""
    tenths = math.floor(share * 10 + 1e-6) / 10
    return f"{tenths:.0f}%" if tenths == round(tenths) else f"{tenths:.1f}%"
