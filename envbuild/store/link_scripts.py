"""Scripts that packages want run when they are linked: named, or run where the recipe says so."""

import os
import re
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envbuild.findings import Finding, Findings, Severity
from envbuild.packages import CondaPackage
from envbuild.store import installed
from envbuild.tools import confine
from envbuild.tools import run as runner
from envbuild.tools.conda_tree import entry_name
from envbuild.tools.scratch import scratch

_SCRIPT = re.compile(r"\.(?P<package>.+)-(?P<kind>pre-link|post-link)\.sh")
_TIMEOUT_S = 600.0
_NAMED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """What came of the link scripts of a conda half.

    Attributes:
        findings: Which were run and which were not.
        rewritten: Files, relative to the prefix, that those that ran made, changed or removed.
    """

    findings: Findings = ()
    rewritten: frozenset[str] = frozenset()


def run(
    prefix: Path,
    packages: Sequence[CondaPackage],
    *,
    allowed: Sequence[str],
    start: runner.Runner = runner.run,
    log: Path | None = None,
    keep: Sequence[int] = (),
) -> Ran:
    """Run the post-link scripts of packages that the recipe names, and name the others.

    One that runs can write nothing but the new generation: its files are first made its own, since
    hard links lead into the caches and to other generations; the kernel keeps it from the rest and,
    where it is new enough, from the network.

    Codes: `link-script-not-run` (warning), `link-script-run` (note; a warning where this kernel
    cannot confine it).

    Args:
        prefix: The prefix, with the conda half linked.
        packages: conda half.
        allowed: Names of packages whose scripts may run.
        start: How programs are started.
        log: File that receives their output.
        keep: Descriptors that they inherit (the store's lock).

    Raises:
        ToolFailed: A script failed.
        ToolTimedOut: A script did not end.
        OSError: The prefix cannot be read or written.
    """
    by_name = {package.name: package for package in packages}
    found: list[Finding] = []
    rewritten: set[str] = set()
    before: installed.Seen | None = None
    for name in sorted(os.listdir(prefix / "bin")) if (prefix / "bin").is_dir() else ():  # noqa: PTH208
        match = _SCRIPT.fullmatch(name)
        if match is None:
            continue
        package = by_name.get(match["package"])
        if package is None or package.name not in allowed or match["kind"] != "post-link":
            found.append(_not_run(f"bin/{name}", match["package"]))
            continue
        if before is None:
            before = _own(prefix)
        confined = _start(prefix, f"bin/{name}", package, start=start, log=log, keep=keep)
        after = installed.walk(prefix)
        changed = _changed(before, after)
        rewritten |= changed
        found.append(_was_run(f"bin/{name}", package.name, sorted(changed), confined=confined))
        before = after
    return Ran(findings=tuple(found), rewritten=frozenset(rewritten))


def ahead(packages: Iterable[CondaPackage], cache: Path, *, allowed: Sequence[str]) -> Findings:
    """Name link scripts that will not be run, of packages that lie in the cache already.

    Code: `link-script-not-run` (warning).

    Args:
        packages: Conda packages that are locked; of several platforms, some come twice.
        cache: Folder of the package cache.
        allowed: Names of packages whose scripts may run.
    """
    found: dict[str, Finding] = {}
    for package in packages:
        for kind in ("post-link", "pre-link"):
            path = f"bin/.{package.name}-{kind}.sh"
            runs = kind == "post-link" and package.name in allowed
            if not runs and (cache / entry_name(package) / path).is_file():
                found[path] = _not_run(path, package.name)
    return tuple(found[path] for path in sorted(found))


def _own(prefix: Path) -> installed.Seen:
    """Make every file of a prefix its own: a copy in place of a hard link."""
    for path, status in installed.walk(prefix).files.items():
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            file = prefix / path
            new = file.with_name(f".{file.name[:200]}.own")
            shutil.copy2(file, new)
            new.replace(file)
    return installed.walk(prefix)


def _changed(before: installed.Seen, after: installed.Seen) -> set[str]:
    paths = before.files.keys() | after.files.keys()
    return {path for path in paths if _look(before, path) != _look(after, path)}


def _look(seen: installed.Seen, path: str) -> tuple[int, int, int] | None:
    status = seen.files.get(path)
    return None if status is None else (status.st_ino, status.st_size, status.st_mtime_ns)


def _start(
    prefix: Path,
    script: str,
    package: CondaPackage,
    *,
    start: runner.Runner,
    log: Path | None,
    keep: Sequence[int],
) -> bool:
    """Run one script; return whether it was confined."""
    with scratch() as (mine, _):
        (mine / "home").mkdir()
        folder = f"{mine / 'home'}"
        words: tuple[str, ...] = ("/bin/sh", "-e", f"{prefix}/{script}")
        confined = confine.version() > 0
        if confined:
            words = confine.argv(words, folders=(f"{prefix}", folder))
        environment = {**_variables(prefix, package), "HOME": folder, "TMPDIR": folder}
        start(words, env=environment, cwd=prefix, timeout_s=_TIMEOUT_S, log=log, keep=keep)
    return confined


def _variables(prefix: Path, package: CondaPackage) -> Mapping[str, str]:
    """Return what conda gives a link script."""
    number = re.search(r"([0-9]+)$", package.build)
    return {
        **runner.base_environment(f"{prefix}/bin:/usr/local/bin:/usr/bin:/bin"),
        "PREFIX": f"{prefix}",
        "PKG_NAME": package.name,
        "PKG_VERSION": package.version,
        "PKG_BUILDNUM": number[1] if number else "0",
    }


def _was_run(path: str, package: str, changed: Sequence[str], *, confined: bool) -> Finding:
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    wrote = f"it wrote {', '.join(changed[:_NAMED])}{more}" if changed else "it wrote nothing"
    open_ = "; this kernel has no Landlock, so nothing kept it from writing elsewhere"
    return Finding(
        code="link-script-run",
        severity=Severity.NOTE if confined else Severity.WARNING,
        where=path,
        what=f"the link script of {package} was run, as the recipe wants",
        why=wrote if confined else f"{wrote}{open_}",
    )


def _not_run(path: str, package: str) -> Finding:
    return Finding(
        code="link-script-not-run",
        severity=Severity.WARNING,
        where=path,
        what=f"the link script of {package} was not run",
        why="scripts of packages run only where the recipe names the package",
        hint=f"if {package} needs it: link_scripts: [{package}]",
    )
