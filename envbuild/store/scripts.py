"""Scripts in a prefix: whose interpreter runs them."""

import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from envbuild.findings import Finding, Findings, Severity
from envbuild.store.installed import Owner, Seen
from envbuild.store.prefixes import LONGEST_LINE

_HEAD_BYTES = 1024
_SHELLS = frozenset({"sh", "bash", "dash"})
_SYSTEM = frozenset({"/bin", "/usr/bin"})


def check_interpreters(prefix: Path, seen: Seen, owners: Sequence[Owner]) -> Findings:
    """Look at the first line of every script in `bin`.

    Codes (warnings): `foreign-interpreter`: it is run by something outside the generation, other
    than the system's shell; `long-interpreter-line`: older kernels cut it off.

    Args:
        prefix: The prefix.
        seen: What lies in it.
        owners: Its packages.
    """
    programs = sorted(
        path
        for path, status in seen.files.items()
        if path.startswith("bin/") and path.count("/") == 1 and stat.S_ISREG(status.st_mode)
    )
    labels = {path: owner.label for owner in owners for path in owner.paths if path[:4] == "bin/"}
    found: list[Finding] = []
    for path in programs:
        with open(f"{prefix}/{path}", "rb") as file:  # noqa: PTH123
            head = file.read(_HEAD_BYTES)
        if head.startswith(b"#!"):
            text = head.decode(errors="replace")
            found.extend(_judge(text, path, os.fspath(prefix), labels.get(path, "envbuild")))
    return tuple(found)


def _judge(head: str, path: str, prefix: str, label: str) -> Iterator[Finding]:
    lines = head.split("\n")
    interpreter = _interpreter(lines)
    if interpreter is not None and not interpreter.startswith(f"{prefix}/"):
        yield Finding(
            code="foreign-interpreter",
            severity=Severity.WARNING,
            where=path,
            what=f"it is run by {interpreter}, which is outside the generation ({label})",
            why="another host may have another one there, or none",
        )
    if len(lines[0].encode()) > LONGEST_LINE:
        yield Finding(
            code="long-interpreter-line",
            severity=Severity.WARNING,
            where=path,
            what=f"its first line has {len(lines[0].encode())} bytes ({label})",
            why=f"kernels before 5.1 read {LONGEST_LINE} of it",
            hint="use a store with a shorter path",
        )


def _interpreter(lines: Sequence[str]) -> str | None:
    """Return what runs a script, or None where it is the system's shell itself."""
    words = lines[0][2:].split()
    if not words:
        return None
    folder, _, name = words[0].rpartition("/")
    if folder in _SYSTEM and name == "env":
        rest = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        name = rest[0] if rest else ""
        return None if name in _SHELLS else " ".join(words)
    if folder in _SYSTEM and name in _SHELLS:
        return _executed(lines[1]) if len(lines) > 1 else None
    return words[0]


def _executed(line: str) -> str | None:
    """Return what the second line of a shell script starts instead (`'''exec' "PYTHON" …`)."""
    if not line.startswith("'''exec' "):
        return None
    try:
        words = shlex.split(line.removeprefix("'''exec' ").partition(" #'''")[0])
    except ValueError:
        return None
    return words[0] if words else None
