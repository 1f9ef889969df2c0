"""Whether a machine's interpreter is still the one that an environment was made of, at a glance.

A stamp holds size and mtime of the executable, of libpython and of every folder of the standard
library (a file that is put in place or removed changes its folder's mtime). It is JSON; comparing
it reads no file, and this module imports nothing that a hot path does not have.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envbuild.channel.interpreter import HostPython

_LEFT = frozenset({"__pycache__", "dist-packages", "site-packages", "test", "tests"})


def stamp(python: "HostPython") -> dict[str, Any]:
    """Return the stamp of an interpreter, for a generation's manifest.

    Raises:
        HostError: Its files cannot be read.
    """
    from envbuild.channel.sources import libpython
    from envbuild.errors import HostError

    try:
        if python.archive is not None:
            paths = [python.archive]
        else:
            library = libpython(python)
            paths = [python.path, *([library] if library else []), *_folders(python.stdlib)]
        return {"path": str(python.path), "files": {str(path): _seen(path) for path in paths}}
    except OSError as error:
        message = f"{python.path} cannot be read: {error}"
        raise HostError(message) from error


def unchanged(stamped: Mapping[str, Any]) -> bool:
    """Return whether everything that a stamp names is as it was.

    A False says only that it is worth taking the digest; a True, that nothing was updated.
    """
    try:
        return all(_seen(path) == seen for path, seen in stamped["files"].items())
    except (OSError, KeyError, AttributeError, TypeError):
        return False


def _seen(path: str | Path) -> list[int]:
    status = Path(path).stat()
    return [status.st_size, status.st_mtime_ns]


def _folders(folder: Path) -> list[Path]:
    """Return a folder and those below it, without what the packer leaves out."""
    found = [folder]
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and entry.name not in _LEFT:
                found.extend(_folders(folder / entry.name))
    return sorted(found)
