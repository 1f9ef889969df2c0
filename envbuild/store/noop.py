"""Is there anything to do? Answered from the current manifest, with json and hashlib alone."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envbuild.store import present
from envbuild.store.layout import Generation, Place
from envbuild.store.raw import look, read_raw

_BY_PATH = {"--python", "ENVBUILD_PYTHON", "running"}
"""Where an interpreter came from that is taken again only if it is named, or runs envbuild."""


def unchanged(
    place: Place,
    *,
    recipe: Path,
    locks: Sequence[Path],
    python: str | None = None,
    running: str = "",
    insisted: bool = False,
) -> Generation | None:
    """Return the current generation if it was made from just these files, else None.

    Args:
        place: The environment.
        recipe: The recipe's file.
        locks: The files of its lock, as far as this platform reads them.
        python: The interpreter that was asked for, absolute and resolved, or None for whichever.
        running: The one that envbuild runs on, resolved.
        insisted: Whether `python` has to count: an environment with conda's Python is no answer.

    Raises:
        StoreError: The manifest is damaged, or `current` is no link of ours.
    """
    generation = present.current(place)
    data = None if generation is None else _usable(generation)
    if generation is None or data is None or _newer(generation):
        return None
    if not place.by_name.is_symlink() or not _same_inputs(data["inputs"], recipe, locks):
        return None  # a create that was killed has not linked it
    interpreter = data["interpreter"]
    if interpreter is None:
        return None if insisted else generation
    same = _is_wanted(interpreter, python, running) and _untouched(
        interpreter, place.store.added_pythons
    )
    return generation if same else None


def usable(generation: Generation) -> bool:
    """Tell whether a generation is complete, and lies where it was made.

    Raises:
        StoreError: Its manifest is damaged.
    """
    return _usable(generation) is not None


def _usable(generation: Generation) -> dict[str, Any] | None:
    """Return the manifest of a generation that can be used where it lies, or None."""
    data = read_raw(generation)
    if data is None or data["prefix"] != os.path.realpath(generation.prefix):
        return None
    return data if generation.environment.is_file() else None


def _newer(generation: Generation) -> bool:
    """Tell whether a reinstall of the same digest is there that is not current."""
    digest, _, number = generation.identifier.partition("-")
    return any(
        one.identifier.startswith(f"{digest}-")
        and int(one.identifier.partition("-")[2]) > int(number or 1)
        for one in present.generations(generation.place)
    )


def lock_files(folder: Path, platform: str) -> tuple[Path, ...]:
    """Return the files of a lock that one platform reads, as far as they are there."""
    names = ("conda-lock.yml", f"requirements.{platform}.txt")
    return tuple(folder / name for name in names if (folder / name).is_file())


def recipe_file(name: str, folders: Sequence[Path]) -> Path | None:
    """Return a recipe's file, links resolved, by its name or path, or None if there is none."""
    is_path = "/" in name or name.endswith((".yaml", ".yml"))
    paths = [Path(name)] if is_path else [folder / f"{name}.yaml" for folder in folders]
    return next((path.resolve() for path in paths if path.is_file()), None)


def digest_of(path: Path) -> str | None:
    """Return the SHA-256 hex of a small file's content, or None if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _same_inputs(inputs: dict[str, Any], recipe: Path, locks: Sequence[Path]) -> bool:
    recipes = [(Path(path), digest) for path, digest in inputs["recipe"]]
    if not recipes or recipes[0][0] != recipe:
        return False
    wanted = dict(inputs["lock"])
    if set(wanted) != {path.name for path in locks}:
        return False
    return all(digest_of(path) == digest for path, digest in recipes) and all(
        digest_of(path) == wanted[path.name] for path in locks
    )


def _is_wanted(interpreter: dict[str, Any], python: str | None, running: str) -> bool:
    """Tell whether an interpreter is the one that would be taken, as far as its path tells."""
    if python is None and interpreter.get("origin") in _BY_PATH:
        python = running
    return python is None or python == interpreter["path"]


def _untouched(interpreter: dict[str, Any], added: Path) -> bool:
    if added.exists() and not any(stamp["path"] == str(added) for stamp in interpreter["stamps"]):
        # One was added since: it may come before the one that was taken.
        return False
    try:
        return all(
            (stamp["size"], stamp["mtime_ns"]) == look(stamp["path"])
            for stamp in interpreter["stamps"]
        )
    except OSError:
        return False
