"""Links of a prefix that lead nowhere."""

import os
from pathlib import Path

from envbuild.findings import Finding, Findings, Severity
from envbuild.store.check import Checked
from envbuild.store.installed import CLOBBERS

_NAMED = 3


def dangling(prefix: Path, checked: Checked) -> Findings:
    """Name the links that lead nowhere, one finding for each package that has some.

    Code: `dangling-link` (warning); its place is the package's first link.

    Args:
        prefix: The prefix.
        checked: What was found in it.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for path, kind, target, _, _, owner in checked.rows:
        if kind != "link" or path.startswith(CLOBBERS) or os.path.exists(f"{prefix}/{path}"):  # noqa: PTH110
            continue
        label = "envbuild" if owner is None else checked.owners[owner]
        found.setdefault(label, []).append((path, target))
    return tuple(_told(label, links) for label, links in sorted(found.items()))


def _told(label: str, links: list[tuple[str, str]]) -> Finding:
    more = ", ".join(path for path, _ in links[1:_NAMED])
    more += f" and {len(links) - _NAMED} more" if len(links) > _NAMED else ""
    where, target = links[0]
    return Finding(
        code="dangling-link",
        severity=Severity.WARNING,
        where=where,
        what=f"it leads to {target}, which is not there ({label})",
        why=f"the same of {more}" if more else "who opens it finds nothing",
    )
