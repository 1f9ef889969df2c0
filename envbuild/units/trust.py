"""Whether what the machine's manager runs as root can be changed by others."""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from envbuild.findings import Finding, Findings, Severity
from envbuild.units.model import UnitFile

_WRITERS: Final = stat.S_IWGRP | stat.S_IWOTH
_AS_ROOT: Final = "+!"


def judge(files: Sequence[UnitFile], prefix: Path) -> Findings:
    """Say where others than root can change programs that units of the machine run as root.

    Code: `root-runs-others` (error). Such programs are those of services without a user, and
    what `+` and `!` before it take out of a service's user (systemd.service(5)).

    Args:
        files: The units.
        prefix: The generation's folder, without links.
    """
    units = [file.name for file in files if _as_root(file.text, f"{prefix}/")]
    if not units:
        return ()
    for folder in (*reversed(prefix.parents), prefix):
        status = folder.stat()
        who = _changer(status.st_uid, status.st_gid, status.st_mode)
        if who is not None:
            return (
                Finding(
                    code="root-runs-others",
                    severity=Severity.ERROR,
                    where=f"{folder}",
                    what=f"{who} can change it, and {', '.join(units)} would run its programs as"
                    " root",
                    why="who can change a folder can put another program into it",
                    hint="create it in a store of root's (sudo envbuild create), or install with"
                    " --user",
                ),
            )
    return ()


def _changer(uid: int, gid: int, mode: int) -> str | None:
    if uid != 0:
        return f"user {uid}"
    if mode & stat.S_ISVTX or not mode & _WRITERS:
        return None
    if mode & stat.S_IWOTH:
        return "everybody"
    return f"group {gid}" if gid != 0 else None


def _as_root(text: str, inside: str) -> bool:
    service = text.rpartition("\n[Service]\n")[2].splitlines()
    user = next((line.partition("=")[2] for line in service if line.startswith("User=")), "root")
    dynamic = "DynamicUser=yes" in service
    return any(
        inside in command and ((user in {"root", "0"} and not dynamic) or _escapes(command))
        for command in _commands(service)
    )


def _commands(service: Sequence[str]) -> Iterator[str]:
    for line in service:
        key, _, command = line.partition("=")
        if key.startswith("Exec"):
            yield command


def _escapes(command: str) -> bool:
    """Say whether signs before a program leave the service's user."""
    signs = command[: len(command) - len(command.lstrip("@-:|+!"))]
    return any(sign in signs for sign in _AS_ROOT)
