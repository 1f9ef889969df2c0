"""What linking left in a prefix: records put right, paths that two packages wanted."""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CLOBBERED = "__clobbers__"


@dataclass(frozen=True, kw_only=True, slots=True)
class Clobber:
    """One path that two packages wanted.

    Attributes:
        path: Relative to the prefix.
        package: Whose file does not lie there; it lies in `__clobbers__/PACKAGE/PATH`.
        kept: Whose file lies there, or in place of a folder above it; None where nobody's does.
    """

    path: str
    package: str
    kept: str | None


def settle(prefix: Path, moved: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Put the records in `conda-meta` right, and take away what would surprise.

    They get mode 0644 and name the cache's own folders. The `CACHEDIR.TAG` that py-rattler writes
    goes: backups leave out folders that have one, and a prefix is no cache.

    Args:
        prefix: The prefix.
        moved: Folder as the engine saw it to the folder that it really is.

    Returns:
        Package name to its installed files, relative to the prefix.
    """
    replaced = {Path(old).name: (_in_json(old), _in_json(new)) for old, new in moved.items()}
    installed: dict[str, tuple[str, ...]] = {}
    for path in sorted((prefix / "conda-meta").glob("*.json")):
        text = path.read_text(encoding="utf-8")
        if path.stem in replaced:
            text = text.replace(*replaced[path.stem])
        record = json.loads(text)
        installed[record["name"]] = tuple(sorted(record["files"]))
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
    (prefix / "CACHEDIR.TAG").unlink(missing_ok=True)
    return installed


def clobbers(prefix: Path, installed: Mapping[str, tuple[str, ...]]) -> tuple[Clobber, ...]:
    """Return every path that two packages wanted, sorted by path.

    py-rattler links packages at once. Of a file against a folder it sometimes moves away the file
    that its own record says is in place, or a copy of it: that is put back, or goes.
    """
    root = prefix / CLOBBERED
    owners = {
        path: name
        for name, paths in installed.items()
        for path in paths
        if not path.startswith(f"{CLOBBERED}/")
    }
    found: list[tuple[Path, str, str | None]] = []
    for package in sorted(root.iterdir()) if root.is_dir() else ():
        for folder, _, names in os.walk(package):
            for name in names:
                path = (Path(folder) / name).relative_to(package)
                covering = (str(one) for one in (path, *path.parents))
                owned = next((one for one in covering if one in owners), None)
                if owned is not None and owners[owned] == package.name:
                    _put_back(Path(folder) / name, prefix / path)
                else:
                    found.append((path, package.name, owned))
    _remove_empty(root)
    return tuple(
        Clobber(
            path=str(path),
            package=package,
            kept=owners[owned] if owned and os.path.lexists(prefix / owned) else None,
        )
        for path, package, owned in sorted(found, key=lambda one: (str(one[0]), one[1]))
    )


def _put_back(lost: Path, place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        _remove_empty(place)
    if os.path.lexists(place):
        lost.unlink()
    else:
        lost.rename(place)


def _remove_empty(root: Path) -> None:
    for folder, _, _ in os.walk(root, topdown=False):
        with contextlib.suppress(OSError):  # not empty
            Path(folder).rmdir()


def _in_json(path: str) -> str:
    return json.dumps(path, ensure_ascii=False)
