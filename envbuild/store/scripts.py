"""Scripts in a prefix: whose interpreter runs them, and link scripts that packages brought."""

import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envbuild.findings import Finding, Findings, Severity
from envbuild.packages import CondaPackage
from envbuild.store.installed import Owner, Seen
from envbuild.tools import run as runner

_HEAD_BYTES = 1024
_LONGEST_LINE = 127
_SHELLS = frozenset({"sh", "bash", "dash"})
_SYSTEM = frozenset({"/bin", "/usr/bin"})
_LINK_SCRIPT = re.compile(r"bin/\.(?P<package>.+)-(?P<kind>pre-link|post-link|pre-unlink)\.sh")
_TIMEOUT_S = 600.0


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
    if len(lines[0].encode()) > _LONGEST_LINE:
        yield Finding(
            code="long-interpreter-line",
            severity=Severity.WARNING,
            where=path,
            what=f"its first line has {len(lines[0].encode())} bytes ({label})",
            why=f"kernels before 5.1 read {_LONGEST_LINE} of it",
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


def link_scripts(
    prefix: Path,
    seen: Seen,
    packages: Sequence[CondaPackage],
    *,
    allowed: Sequence[str],
    run: runner.Runner = runner.run,
    log: Path | None = None,
    keep: Sequence[int] = (),
) -> Findings:
    """Run the post-link scripts that the recipe names, and name the others.

    Codes: `link-script-not-run` (warning), `link-script-run` (note).

    Args:
        prefix: The prefix.
        seen: What lies in it.
        packages: conda half.
        allowed: Names of packages whose scripts may run.
        run: How programs are started.
        log: File that receives their output.
        keep: Descriptors that they inherit (the store's lock).

    Raises:
        ToolFailed: A script failed.
        ToolTimedOut: A script did not end.
    """
    by_name = {package.name: package for package in packages}
    found: list[Finding] = []
    for path in sorted(seen.files):
        match = _LINK_SCRIPT.fullmatch(path)
        if match is None or match["kind"] == "pre-unlink":
            continue
        package = by_name.get(match["package"])
        runs = match["package"] in allowed and match["kind"] == "post-link" and package is not None
        if runs and package is not None:
            environment = {**runner.base_environment(), **_variables(prefix, package)}
            argv = ["/bin/sh", "-e", f"{prefix}/{path}"]
            run(argv, env=environment, cwd=prefix, timeout_s=_TIMEOUT_S, log=log, keep=keep)
        found.append(_told(path, match["package"], runs=runs))
    return tuple(found)


def _variables(prefix: Path, package: CondaPackage) -> Mapping[str, str]:
    """Return what conda gives a link script."""
    number = re.search(r"([0-9]+)$", package.build)
    return {
        "PREFIX": f"{prefix}",
        "PKG_NAME": package.name,
        "PKG_VERSION": package.version,
        "PKG_BUILDNUM": number[1] if number else "0",
        "PATH": f"{prefix}/bin:/usr/local/bin:/usr/bin:/bin",
    }


def _told(path: str, package: str, *, runs: bool) -> Finding:
    if runs:
        return Finding(
            code="link-script-run",
            severity=Severity.NOTE,
            where=path,
            what=f"the link script of {package} was run, as the recipe wants",
        )
    return Finding(
        code="link-script-not-run",
        severity=Severity.WARNING,
        where=path,
        what=f"the link script of {package} was not run",
        why="scripts of packages run only where the recipe names the package",
        hint=f"if {package} needs it: link_scripts: [{package}]",
    )
