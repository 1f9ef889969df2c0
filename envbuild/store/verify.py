"""Is a generation still what was installed? Every file is hashed; no time stamp is believed."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from envbuild.errors import StoreError
from envbuild.findings import Finding, Findings, Severity
from envbuild.progress import Progress, Quiet
from envbuild.store import manifest as manifests
from envbuild.store import moved, records
from envbuild.store.history import unusable
from envbuild.store.layout import OWN_FOLDER, Generation
from envbuild.store.manifest import FileList, FileRow
from envbuild.tools.hashing import hash_files

_BYTECODE = re.compile(
    r"(.*/)?__pycache__/([^/]+?)\.[a-z]+-[0-9]+(?:\.opt-[12])?\.pyc(?:\.[0-9]+)?"
)
_CACHE_FOLDER = "__pycache__"
_OTHERS_WRITE = 0o022
_WORLD_WRITES = 0o002


@dataclass(frozen=True, kw_only=True, slots=True)
class _Seen:
    """What lies in a prefix, by path relative to it.

    Attributes:
        files: What lstat(2) says of everything that is no folder.
        folders: Permissions of each folder.
        closed: Folders that cannot be read, with the reason.
    """

    files: dict[str, os.stat_result]
    folders: dict[str, int]
    closed: dict[str, str]


def verify(
    generation: Generation, *, progress: Progress | None = None, workers: int | None = None
) -> Findings:
    """Compare every file of a generation with its manifest; findings are sorted by path.

    Codes: `file-changed`, `file-missing`, `file-foreign`, `file-unreadable`, `mode-changed`,
    `link-changed`, `generation-moved` (errors; a missing bytecode file is a warning), and those
    of `store.records`. Bytecode whose source belongs here is not foreign.

    Args:
        generation: What to look at.
        progress: Told about the bytes hashed.
        workers: Threads that hash; None is one per core.

    Raises:
        StoreError: The manifest is missing, damaged or cannot be read.
    """
    try:
        manifest = manifests.read(generation)
        listed = manifests.read_files(generation, manifest)
    except OSError as error:
        raise unusable(generation.place, error) from error
    seen = _walk(os.fspath(generation.prefix))
    moved_away = moved.finding(generation, manifest.prefix)
    found = [
        *([moved_away] if moved_away else []),
        *_closed(seen),
        *_folders(seen),
        *_foreign(listed, seen),
    ]
    unread: list[FileRow] = []
    for row in listed.rows:
        owner = _owner(row, listed)
        here = seen.files.get(row.path)
        finding = _outside(row, owner, here, generation)
        if finding is not None:
            found.append(finding)
        elif row.kind != "link":
            unread.append(row)
        if here is not None:
            found.extend(_mode(row, owner, here.st_mode))
    found.extend(records.disagreements(generation, listed))
    found.extend(records.outside(generation, listed))
    found.extend(_contents(unread, listed, generation, progress or Quiet(), workers))
    return tuple(sorted(found, key=lambda finding: (finding.where, finding.code)))


def examine(generation: Generation, *, progress: Progress) -> Findings:
    """Return what `verify` says; lists that are damaged are a finding as well.

    Code: `manifest-damaged` (error).
    """
    try:
        return verify(generation, progress=progress)
    except StoreError as error:
        return (lists_damaged(generation, error),)


def lists_damaged(generation: Generation, error: StoreError) -> Finding:
    """Return the finding `manifest-damaged` (error) for what reading a generation's lists gave."""
    what = error.message
    why = "what the generation must hold is not known"
    return _error("manifest-damaged", generation.identifier, what, why)


def _walk(prefix: str) -> _Seen:
    seen = _Seen(files={}, folders={}, closed={})
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            entries = os.scandir(f"{prefix}/{folder}")
        except OSError as error:
            seen.closed[folder] = error.strerror or str(error)
            continue
        with entries:
            for entry in entries:
                path = f"{folder}{entry.name}"
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    seen.folders[path] = stat.S_IMODE(status.st_mode)
                    waiting.append(f"{path}/")
                else:
                    seen.files[path] = status
    return seen


def _closed(seen: _Seen) -> Iterator[Finding]:
    for folder, reason in seen.closed.items():
        yield _error("file-unreadable", folder.rstrip("/") or ".", f"folder: {reason}")


def _folders(seen: _Seen) -> Iterator[Finding]:
    """Name folders in which others can put files; a user's umask may open `__pycache__`."""
    for path, mode in seen.folders.items():
        cache = path.rpartition("/")[2] == _CACHE_FOLDER
        if mode & (_WORLD_WRITES if cache else _OTHERS_WRITE):
            yield _error("mode-changed", path, f"folder has mode {mode:04o}, others can write")


def _foreign(listed: FileList, seen: _Seen) -> Iterator[Finding]:
    known = {row.path for row in listed.rows}
    for path in seen.files.keys() - known:
        if path.startswith((f"{OWN_FOLDER}/", "conda-meta/")) or _is_bytecode_of(path, known):
            continue
        yield _error("file-foreign", path, "belongs to no package")


def _is_bytecode_of(path: str, known: Iterable[str]) -> bool:
    found = _BYTECODE.fullmatch(path)
    return found is not None and f"{found[1] or ''}{found[2]}.py" in known


def _outside(
    row: FileRow, owner: str, here: os.stat_result | None, generation: Generation
) -> Finding | None:
    """Return what can be said about a file without reading it, None if nothing is wrong so far."""
    if here is None:
        severity = Severity.WARNING if row.kind == "bytecode" else Severity.ERROR
        return _finding("file-missing", row.path, f"is missing ({owner})", severity=severity)
    mode, size = here.st_mode, here.st_size
    if row.kind == "link":
        return _link(row, owner, mode, generation)
    what = ""
    if not stat.S_ISREG(mode):
        what = f"is no longer a regular file ({owner})"
    elif size != row.size:
        what = f"has {size} bytes, not {row.size} ({owner})"
    return _error("file-changed", row.path, what) if what else None


def _link(row: FileRow, owner: str, mode: int, generation: Generation) -> Finding | None:
    if not stat.S_ISLNK(mode):
        return _error("link-changed", row.path, f"is no longer a link ({owner})")
    to = os.readlink(generation.prefix / row.path)  # noqa: PTH115 - Path would normalise it
    if to == row.digest:
        return None
    return _error("link-changed", row.path, f"points to {to}, not to {row.digest} ({owner})")


def _mode(row: FileRow, owner: str, mode: int) -> Iterator[Finding]:
    if row.kind == "link" or not stat.S_ISREG(mode):
        return
    bits = stat.S_IMODE(mode)
    if bits != row.mode:
        what = f"has mode {bits:04o}, not {row.mode:04o} ({owner})"
        yield _error("mode-changed", row.path, what)
    elif bits & _OTHERS_WRITE:
        yield _error("mode-changed", row.path, f"has mode {bits:04o}, others can write ({owner})")


def _contents(
    rows: list[FileRow],
    listed: FileList,
    generation: Generation,
    progress: Progress,
    workers: int | None,
) -> Iterator[Finding]:
    prefix = os.fspath(generation.prefix)
    files = [(f"{prefix}/{row.path}", row.size) for row in rows]
    done = _counter(progress, sum(row.size for row in rows))
    digests = hash_files(files, workers=workers, done=done)
    for row, (path, _) in zip(rows, files, strict=True):
        digest = digests[path]
        if isinstance(digest, OSError):
            what = f"cannot be read: {digest.strerror} ({_owner(row, listed)})"
            yield _error("file-unreadable", row.path, what)
        elif digest != row.digest:
            yield _error("file-changed", row.path, f"has other content ({_owner(row, listed)})")


def _counter(progress: Progress, total: int) -> Callable[[int], None]:
    done = 0

    def count(amount: int) -> None:
        nonlocal done
        done += amount
        progress.amount("verify", done, total)

    return count


def _owner(row: FileRow, listed: FileList) -> str:
    return "envbuild" if row.package is None else listed.packages[row.package]


def _error(code: str, where: str, what: str, why: str = "") -> Finding:
    return _finding(code, where, what, why, severity=Severity.ERROR)


def _finding(code: str, where: str, what: str, why: str = "", *, severity: Severity) -> Finding:
    return Finding(code=code, severity=severity, where=where, what=what, why=why)
