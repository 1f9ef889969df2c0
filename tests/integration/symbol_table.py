"""Writes `envbuild/native/symbols.txt` from the C and C++ libraries of this machine.

`python tests/integration/symbol_table.py > envbuild/native/symbols.txt`, on a current distribution.
"""

import re
import subprocess
import sys
from pathlib import Path

LIBRARIES = ("libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6", "libmvec.so.1")
_OLD = {"GLIBC": (2, 17), "GLIBCXX": (3, 4, 19), "CXXABI": (1, 3, 7)}
_SYMBOL = re.compile(r"(?P<name>[^@\s]+)@@?(?P<family>[A-Z]+)_(?P<version>[0-9.]+)$")


def table(folder: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return family and oldest version of each symbol that has one, manylinux2014's left out."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for library in LIBRARIES:
        argv = ["/usr/bin/readelf", "--dyn-syms", "--wide", f"{folder / library}"]
        told = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        for row in told.splitlines():
            columns = row.split()
            if len(columns) < 8 or columns[6] == "UND":
                continue
            match = _SYMBOL.fullmatch(columns[7])
            if match is None or match["family"] not in _OLD:
                continue
            version = tuple(map(int, match["version"].split(".")))
            known = found.get(match["name"])
            if known is None or version < known[1]:
                found[match["name"]] = (match["family"], version)
    return {name: one for name, one in found.items() if one[1] > _OLD[one[0]]}


def main() -> None:
    rows = table(Path("/usr/lib/x86_64-linux-gnu"))
    compiler = subprocess.run(["/usr/bin/gcc", "-dumpfullversion"], check=True, capture_output=True)
    sys.stdout.write(
        "# Symbols of libstdc++, libgcc and glibc by the oldest version that has them, beyond\n"
        "# manylinux2014. Read with readelf from Debian 12's libstdc++6 and libc6 (GCC "
        f"{compiler.stdout.decode().strip()}), 2026-12-02.\n"
    )
    for version in sorted(set(rows.values())):
        sys.stdout.write(f"{version[0]}_{'.'.join(map(str, version[1]))}\n")
        sys.stdout.writelines(f" {name}\n" for name, one in sorted(rows.items()) if one == version)


if __name__ == "__main__":
    main()
