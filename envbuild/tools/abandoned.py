"""What killed processes left in the caches, found without asking who they were.

Everything here is made under a lock that ends with its holder, so what can be locked is in use by
nobody. What cannot be removed by this user, or locked on this file system, stays.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from envbuild.errors import StoreError
from envbuild.tools.files import remove_tree, try_lock
from envbuild.tools.locks import exclusive

_ENTRY = re.compile(r".+-[0-9a-f]{32}")
_PART = re.compile(r"\.(.+-[0-9a-f]{32})\.part")
_UV_TEMPORARY = ".tmp"
_UV_UNPACKED = frozenset({"archive-v0", "sdists-v11"})


def sweep_packages(cache: Path) -> None:
    """Remove half-fetched conda packages from a package cache (see `conda_archives`)."""
    names = _names(cache)
    for name in names:
        part = _PART.fullmatch(name)
        entry = part[1] if part else name
        if part or (_ENTRY.fullmatch(name) and f"{name}.json" not in names):
            with (
                contextlib.suppress(OSError, StoreError),
                exclusive(cache / ".locks" / entry, timeout_s=0, purpose=f"removing {name}"),
            ):
                if part or not (cache / f"{name}.json").exists():
                    remove_tree(cache / name)


def sweep_wheels(cache: Path) -> None:
    """Remove what uv had not finished in its cache; each uv holds a shared lock on the cache."""
    with contextlib.suppress(OSError):
        descriptor = os.open(cache / ".lock", os.O_RDWR | os.O_CLOEXEC)
        try:
            for path in list(_uv_temporaries(cache)) if try_lock(descriptor) else ():
                with contextlib.suppress(OSError):
                    remove_tree(path)
        finally:
            os.close(descriptor)


def _uv_temporaries(cache: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(cache):
        yield from (
            Path(folder) / name for name in (*below, *names) if name.startswith(_UV_TEMPORARY)
        )
        skipped = _UV_UNPACKED if folder == os.fspath(cache) else frozenset()
        below[:] = [n for n in below if n not in skipped and not n.startswith(_UV_TEMPORARY)]


def _names(folder: Path) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return frozenset()
