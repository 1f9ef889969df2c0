"""Lines of `.comment`, in which each compiler and linker that took part leaves its name."""

import re

_NAMES = (
    ("GCC", re.compile(r"GCC: .*?(?P<version>\d+\.\d+(?:\.\d+)?)(?: \d{8})?(?: \(.*\))?$")),
    ("Intel oneAPI DPC++", re.compile(r"Intel\(R\) oneAPI DPC\+\+.*? (?P<version>\d+\.\d+\.\d+)")),
    ("clang", re.compile(r"clang(?: version)? (?P<version>\d+\.\d+\.\d+\S*)")),
    ("rustc", re.compile(r"rustc(?: version)? (?P<version>\d+\.\d+\.\d+\S*)")),
    ("flang", re.compile(r"flang(?: version)? (?P<version>\d+\.\d+\.\d+\S*)")),
    ("NVIDIA", re.compile(r"nvc\S* (?P<version>\d+\.\d+(?:-\d+)?)", re.IGNORECASE)),
    ("zig", re.compile(r"zig (?P<version>\d+\.\d+\.\d+\S*)")),
)


def compiler(line: str) -> str | None:
    """Return the compiler that a line names, short (`GCC 12.2.0`), or None if it names none.

    A line that begins with `Linker:` names a linker.

    Args:
        line: One line of `.comment`.
    """
    if line.startswith("Linker:"):
        return None
    for name, pattern in _NAMES:
        if match := pattern.search(line):
            return f"{name} {match['version']}"
    return None
