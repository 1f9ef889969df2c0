"""The driver's programs in the background: whether they run, and of which release they are."""

import os
import re
import stat
from pathlib import Path, PurePosixPath

from envbuild.errors import ToolError
from envbuild.host import mps, processes, rpm
from envbuild.host.machine import Daemon
from envbuild.host.processes import COMM_BYTES, Processes
from envbuild.host.readings import NoAnswer, Reading, Unsupported, Value, known
from envbuild.host.tree import Tree
from envbuild.tools.run import Runner, base_environment, run

_PACKAGES = {
    "nv-fabricmanager": ("nvidia-fabricmanager", "nvidia-fabric-manager"),
    "nvidia-persistenced": ("nvidia-persistenced",),
    "nvidia-cuda-mps-control": (),
    "nv-hostengine": ("datacenter-gpu-manager",),
}
"""Names of the packages that hold each, as dpkg (with `-BRANCH` behind it) and rpm have them."""
_MANAGER = "nv-fabricmanager"
_SAYS = re.compile(r"Fabric Manager version is\s*:\s*(\d[\d.]*\d)")
"""What `nv-fabricmanager --version` prints: "Fabric Manager version is : 535.161.08"."""
_PATIENCE_S = 2
_DPKG = "var/lib/dpkg/status"


def read(
    tree: Tree, driver_tree: Tree, found: Reading[Processes], *, runner: Runner = run
) -> tuple[Daemon, ...]:
    """Return which of the driver's daemons run, and the versions of their packages.

    Args:
        tree: Where /proc is.
        driver_tree: Where the list of packages is.
        found: The processes.
        runner: Starts the fabric manager's program, which prints its version and ends.
    """
    running: dict[str, str] = {}
    for number, name in (known(found) or {}).items():
        if name != mps.COMM or mps.program(tree, number) == mps.CONTROL:
            running.setdefault(name, number)
    hidden = processes.are_hidden(tree)
    versions = _versions(driver_tree)
    return tuple(
        Daemon(
            name=name,
            running=_runs(name[:COMM_BYTES] in running, hidden=hidden),
            version=_version(versions, names),
            replaced=_replaced(tree, running.get(name[:COMM_BYTES])),
            runs=_runs_version(tree, name, running.get(name[:COMM_BYTES]), runner),
        )
        for name, names in _PACKAGES.items()
    )


def _runs(seen: bool, *, hidden: bool) -> Reading[bool]:  # noqa: FBT001
    if seen:
        return Value(value=True)
    if hidden:
        return processes.HIDDEN
    return Value(value=False)


def _replaced(tree: Tree, number: str | None) -> Reading[bool]:
    """Return whether the file that a process runs is no longer there: proc(5), `exe`."""
    if number is None:
        return Unsupported("it does not run")
    path = f"proc/{number}/exe"
    try:
        target = (tree.root / path).readlink()
    except OSError as error:
        return tree.silence(path, error)
    return Value(str(target).endswith(" (deleted)"))


def _runs_version(tree: Tree, name: str, number: str | None, runner: Runner) -> Reading[str]:
    """Return the version that a process's program says of itself, also where it was replaced."""
    if name != _MANAGER:
        return Unsupported("only nv-fabricmanager is asked")
    if number is None:
        return Unsupported("it does not run")
    if tree.root != Path("/"):
        return Unsupported("it is asked on its own system alone")
    program = _program(tree, f"proc/{number}", name)
    if not isinstance(program, Value):
        return program
    try:
        argv = (program.value, "--version")
        done = runner(argv, env=base_environment(), timeout_s=_PATIENCE_S, check=False)
    except ToolError as error:
        return NoAnswer(f"{name} --version: {error}")
    said = _SAYS.search(done.stdout)
    return Value(said[1]) if said else NoAnswer(f"{name} --version says no version")


def _program(tree: Tree, process: str, name: str) -> Reading[Path]:
    """Return the very file that a process runs (proc(5), `exe`), where it may be started.

    Any user can start a process of any name: it has to be root's or this user's own, as has the
    file, which is called so itself and which nobody else can write.
    """
    path = f"{process}/exe"
    try:
        called = PurePosixPath(str((tree.root / path).readlink()).removesuffix(" (deleted)")).name
        status, owner = (tree.root / path).stat(), (tree.root / process).stat().st_uid
    except OSError as error:
        return tree.silence(path, error)
    others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if called != name or others or not {status.st_uid, owner} <= {0, os.geteuid()}:
        return NoAnswer(f"/{path} is no program that only root can have written")
    return Value(tree.root / path)


def _versions(tree: Tree) -> Reading[dict[str, str]]:
    """Return the versions of the packages that are installed, as dpkg or else rpm has them."""
    names = [name for names in _PACKAGES.values() for name in names]
    text = tree.text(_DPKG)
    if isinstance(text, Value):
        return Value(dict(_listed(text.value, names)))
    if isinstance(text, Unsupported):
        found = rpm.versions(tree, names)
        if isinstance(found, Unsupported):
            return Unsupported("neither dpkg nor rpm keeps the packages of this system")
        return found
    return text


def _listed(text: str, names: list[str]) -> list[tuple[str, str]]:
    told = "|".join(map(re.escape, names))
    head = rf"^Package: ({told})[-\d]*\nStatus: install ok installed\n"
    return re.findall(rf"{head}(?:.+\n)*?Version: (?:\d+:)?([\d.]+)", text, re.MULTILINE)


def _version(versions: Reading[dict[str, str]], names: tuple[str, ...]) -> Reading[str]:
    if not names:
        return Unsupported("it comes with the driver")
    if not isinstance(versions, Value):
        return versions
    found = next((versions.value[name] for name in names if name in versions.value), None)
    return Unsupported("its package is not installed") if found is None else Value(found)
