"""So that conda, micromamba, VS Code and Jupyter find a generation, and leave it alone."""

import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from envbuild.store.layout import Generation, Place
from envbuild.tools.files import make_folder, remove_abandoned, swap_link, write_atomic

_MESSAGE = (
    "This environment belongs to envbuild: change the recipe of {name!r}, lock it, and run "
    "`envbuild create {name}`."
)


def write_conda_files(generation: Generation, *, now: datetime) -> None:
    """Complete conda-meta: `history` marks a conda environment, `frozen` keeps it as it is.

    `frozen` is CEP 22's marker; `state` is where conda keeps an environment's variables.

    Raises:
        OSError: A file cannot be written.
    """
    meta = generation.prefix / "conda-meta"
    make_folder(meta)
    name = generation.place.name
    instant = now.strftime("%Y-%m-%d %H:%M:%S")
    _write(meta / "history", f"==> {instant} <==\n# cmd: envbuild create {name}\n")
    if not (meta / "state").exists():
        _write(meta / "state", json.dumps({"version": 1, "env_vars": {}}) + "\n")
    _write(meta / "frozen", json.dumps({"message": _MESSAGE.format(name=name)}) + "\n")
    (generation.prefix / "CACHEDIR.TAG").unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)


def link_by_name(place: Place) -> None:
    """Make STORE/by-name/NAME lead to the current generation, whichever it is.

    Raises:
        OSError: The link cannot be made.
    """
    to = f"../envs/{place.name}/current"
    if _link_target(place.by_name) != to:
        make_folder(place.by_name.parent)
        swap_link(place.by_name, to)


def _link_target(path: Path) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return None


def register(place: Place, *, home: Path) -> None:
    """Add an environment to conda's list (`~/.conda/environments.txt`), by name.

    The path is the link by name, so that tools show a name and not a generation's digits. A home
    that does not exist, or cannot be written, is left alone: the list is a convenience.

    Args:
        place: The environment.
        home: The user's home directory.
    """
    _edit(home, lambda lines: lines if f"{place.by_name}" in lines else [*lines, _line(place)])


def unregister(place: Place, *, home: Path) -> None:
    """Take an environment off conda's list.

    Args:
        place: The environment.
        home: The user's home directory.
    """
    _edit(home, lambda lines: [line for line in lines if line != _line(place)])


def _line(place: Place) -> str:
    return f"{place.by_name}"


def _edit(home: Path, change: Callable[[list[str]], list[str]]) -> None:
    path = home / ".conda/environments.txt"
    remove_abandoned(path.parent, of=path.name)
    try:
        before = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        before = []
    except (OSError, UnicodeDecodeError):
        return
    after = change(before)
    if after == before or not home.is_dir():
        return
    try:
        make_folder(path.parent)
        write_atomic(path, "".join(f"{line}\n" for line in after))
    except OSError:
        return
