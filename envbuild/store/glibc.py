"""The oldest glibc that an environment's files load on, against the recipe's."""

from dataclasses import replace

from envbuild.findings import Finding, Findings, Severity
from envbuild.native.judge import listed
from envbuild.native.model import Version, version_text
from envbuild.store.libraries import READ, Libraries
from envbuild.target import Need, Needs

CODE = "glibc-floor"
_PACKED = "conda:python"


def lacking(read: Libraries, needs: Needs) -> Findings:
    """Return which wheels have libraries that need a newer glibc than the recipe lets in.

    A warning: the rest of a wheel may do without them. conda's packages name the glibc that they
    need, and its solver heeds it.

    Args:
        read: What was read of the environment's libraries.
        needs: What the environment needs of a host; the recipe's glibc is in it.
    """
    return tuple(
        Finding(
            code=CODE,
            severity=Severity.WARNING,
            where=label,
            what=f"it needs glibc {version_text(max(files.values()))}, and the target may have"
            f" {version_text(_floor(needs))}: {listed(list(files))}",
            why="there its import ends with `version 'GLIBC_…' not found`, whatever the wheel's"
            " name says; this was read in its files",
            hint=f'glibc: "{version_text(max(files.values()))}"; or, where those files are not'
            " used, put it into the recipe's `allow`",
        )
        for label, files in sorted(_newer(read, needs).items())
        if label.startswith("pypi:")
    )


def completed(needs: Needs, read: Libraries, findings: Findings, *, packed: bool) -> Needs:
    """Return needs with the glibc that was read in the files, where it is newer than the recipe's.

    Args:
        needs: What is known.
        read: What was read of the environment's libraries.
        findings: What `lacking` answered, as notes where the recipe lets them through: those
            files do not count.
        packed: Whether its Python is the machine's own, which is built for the machine's glibc.
    """
    count = {one.where for one in findings if one.code == CODE and one.severity != Severity.NOTE}
    count |= {_PACKED} if packed else set()
    floors = [max(files.values()) for label, files in _newer(read, needs).items() if label in count]
    if not floors:
        return needs
    value = f">={version_text(max(floors))}"
    return replace(needs, glibc=Need(value=value, origin=READ))


def _floor(needs: Needs) -> Version:
    return tuple(map(int, f"{needs.glibc.value}".removeprefix(">=").split(".")))


def _newer(read: Libraries, needs: Needs) -> dict[str, dict[str, Version]]:
    """Return the libraries that need more than the recipe says, by label and path."""
    if needs.glibc.value is None:
        return {}
    there = _floor(needs)
    found = {
        label: {
            path: library.glibc
            for path, library in files.items()
            if library.glibc is not None and library.glibc > there
        }
        for label, files in read.items()
    }
    return {label: files for label, files in found.items() if files}
