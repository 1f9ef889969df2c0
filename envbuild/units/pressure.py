"""How much of the time something in a control group waited, as the kernel counts it (PSI).

Source: Linux, Documentation/accounting/psi.rst.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_RESOURCES: Final = ("cpu", "memory", "io")
_SOME: Final = re.compile(r"^some avg10=([\d.]+) ", re.MULTILINE)


def read(group: str, *, root: Path = Path("/")) -> Mapping[str, float]:
    """Return the percent of the last ten seconds in which some task waited, by resource.

    A kernel without PSI (psi=0), or a group that is gone, has none.

    Args:
        group: A control group, as systemd's ControlGroup= gives it.
        root: The root of the host's files.
    """
    folder = root / "sys/fs/cgroup" / group.lstrip("/")
    found: dict[str, float] = {}
    for resource in _RESOURCES:
        try:
            some = _SOME.search((folder / f"{resource}.pressure").read_text())
        except OSError:
            continue
        if some is not None:
            found[resource] = float(some[1])
    return found
