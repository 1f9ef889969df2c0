"""`Ask`: what `create` is asked, from the command line."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from envbuild.compat.model import Facts
from envbuild.store.create import Options
from envbuild.target import Platform


@dataclass(frozen=True, kw_only=True, slots=True)
class Pythons:
    """Where the host's interpreter is looked for.

    Attributes:
        option: What `--python` names, or None.
        variable: The same from ENVBUILD_PYTHON.
        running: The interpreter that envbuild runs on.
        search: The user's PATH.
    """

    option: str | None
    variable: str | None
    running: Path
    search: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """What `create` is asked.

    Attributes:
        name: The recipe's name or path.
        recipe_folders: Where recipes are looked up.
        lock_folder: The lock's folder, or None if there is none.
        platform: This machine's.
        lock_output: Folder that new locks are written to.
        exclude_newer: Cutoff of a new lock as text, before the recipe's own, or None.
        locked: Refuse instead of locking.
        frozen: Take the lock without asking whether it answers.
        pythons: Where the host's interpreter is looked for.
        facts: Reads what recipe and lock are held against.
        options: How to create.
        allow: Codes of findings that are let through this once, besides the recipe's.
    """

    name: str
    recipe_folders: tuple[Path, ...]
    lock_folder: Path | None
    lock_output: Path
    platform: Platform
    locked: bool
    frozen: bool
    exclude_newer: str | None
    pythons: Pythons
    options: Options
    facts: Callable[[], Facts] = Facts
    allow: tuple[str, ...] = ()
