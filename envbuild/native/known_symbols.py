"""Which version of libstdc++, libgcc or glibc has a symbol, for those that name none.

The dynamic loader takes a reference without a version from any library that exports the name, so
the version table of such a file says less than what it needs.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from envbuild.native.model import Floor, floor_of


@cache
def known_symbols() -> Mapping[bytes, Floor]:
    """Return the oldest version of each symbol that came after manylinux2014."""
    found: dict[bytes, Floor] = {}
    version: Floor | None = None
    text = files("envbuild.native").joinpath("symbols.txt").read_text(encoding="ascii")
    for line in text.splitlines():
        if line.startswith(" ") and version is not None:
            found[line[1:].encode()] = version
        elif not line.startswith("#"):
            version = floor_of(line)
    return found
