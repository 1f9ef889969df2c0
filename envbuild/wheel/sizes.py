"""Amounts of memory as recipes write them, in bytes."""

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def bytes_of(text: str) -> int:
    """Return how many bytes a checked size (`4G`, `512MB`, `1.5T`) is."""
    plain = text.removesuffix("B")
    unit = _UNITS.get(plain[-1], 1)
    return round(float(plain.rstrip("KMGT")) * unit)
