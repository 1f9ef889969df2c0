"""What was installed for an environment: a file beside its units, which systemd does not look at.

It names every file that is ours with its digest, keeps the units of each generation that was
installed, and, while a change is going on, what stood there before.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from envbuild.errors import StoreError
from envbuild.tools.files import make_folder, sync_folder, write_atomic

FOLDER: Final = ".envbuild"
_VERSION: Final = 1

Texts = Mapping[str, str]
"""Paths below the folder of units, and what the files there say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """A change that is going on, or did not end.

    Attributes:
        before: What stood at the paths that it changes, None for nothing.
        enabled: Units that it has started at boot, and that were not before.
        disabled: Units that it has started at boot no more.
        moves_to: The generation that becomes current at its end; empty for none.
        boot: The boot that it began in, empty where that is not known.
        began_us: When it began, in microseconds of the clock that systemd's …Monotonic are of.
    """

    before: Mapping[str, str | None]
    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    moves_to: str = ""
    boot: str = ""
    began_us: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What is installed for an environment.

    Attributes:
        name: The environment.
        store: The root of its store.
        generation: The generation that its units name; empty where there is only a slice.
        files: Every file that is ours, with the SHA-256 of what was written.
        enabled: Units that are started at boot.
        kept: The units of each generation as they were installed last, by its ID.
        pending: The change that did not end, or None.
    """

    name: str
    store: str
    generation: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    enabled: tuple[str, ...] = ()
    kept: Mapping[str, Texts] = field(default_factory=dict)
    pending: Pending | None = None


def path_of(folder: Path, name: str) -> Path:
    """Return where the record of an environment lies."""
    return folder / FOLDER / f"{name}.json"


def read(folder: Path, name: str) -> Record | None:
    """Return what is installed for an environment, None for nothing.

    Raises:
        StoreError: The record is damaged, or cannot be read.
    """
    path = path_of(folder, name)
    try:
        data = json.loads(path.read_bytes())
        if data.pop("version") != _VERSION:
            message = f"{path} is of another version of envbuild"
            raise StoreError(message, hint="update envbuild")
        return _record(data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise StoreError(message) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path} is damaged: {error}"
        hint = f"move it away, then: envbuild units install {name}"
        raise StoreError(message, hint=hint) from error


def others(folder: Path, name: str) -> tuple[Record, ...]:
    """Return the records of other environments; damaged ones are left out."""
    found: list[Record] = []
    for path in sorted((folder / FOLDER).glob("*.json")):
        try:
            record = read(folder, path.stem)
        except StoreError:
            continue
        if record is not None and path.stem != name:
            found.append(record)
    return tuple(found)


def write(folder: Path, record: Record) -> None:
    """Write a record so that it lasts over a power cut.

    Raises:
        StoreError: It cannot be written.
    """
    path = path_of(folder, record.name)
    text = json.dumps({"version": _VERSION, **asdict(record)}, indent=1)
    try:
        make_folder(path.parent)
        write_atomic(path, f"{text}\n")
    except OSError as error:
        raise _unwritable(path, error) from error


def remove(folder: Path, name: str) -> None:
    """Remove a record, for good.

    Raises:
        StoreError: It cannot be removed.
    """
    path = path_of(folder, name)
    try:
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            sync_folder(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error


def _record(data: dict[str, Any]) -> Record:
    pending = data["pending"]
    if pending is not None:
        pending = Pending(
            before=dict(pending["before"]),
            enabled=tuple(pending["enabled"]),
            disabled=tuple(pending["disabled"]),
            moves_to=str(pending["moves_to"]),
            boot=str(pending.get("boot", "")),
            began_us=int(pending.get("began_us", 0)),
        )
    return Record(
        name=str(data["name"]),
        store=str(data["store"]),
        generation=str(data["generation"]),
        files=dict(data["files"]),
        enabled=tuple(data["enabled"]),
        kept={name: dict(texts) for name, texts in data["kept"].items()},
        pending=pending,
    )


def _unwritable(path: Path, error: OSError) -> StoreError:
    message = f"{error.filename or path}: {error.strerror}"
    hint = "root may do it (sudo?), or --user for this user alone"
    return StoreError(message, hint=hint if isinstance(error, PermissionError) else None)
