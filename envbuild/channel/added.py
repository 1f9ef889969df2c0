"""Interpreters that `channel add-python` packed: kept in the store, whatever the machine does.

::

    STORE/channels/host/linux-64/python-3.11.7-hDIGEST_host.conda   the package
    STORE/channels/host/linux-64/python-3.11.7-hDIGEST_host.json    its digests
    STORE/channels/host/pythons.json                                what was added, newest last
"""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from envbuild.channel.interpreter import HostPython
from envbuild.channel.pack import digest, pack
from envbuild.errors import StoreError
from envbuild.tools.files import make_folder, write_atomic
from envbuild.tools.locks import exclusive
from envbuild.tools.run import Runner, run

PATIENCE_S = 60.0
_PATHS = frozenset({"path", "prefix", "stdlib", "platstdlib", "include", "libdir", "wheels"})


def folder_of(channels: Path) -> Path:
    """Return the folder of added interpreters in a store's folder of channels."""
    return channels / "host"


def index_of(channels: Path) -> Path:
    """Return the file that lists the added interpreters."""
    return folder_of(channels) / "pythons.json"


def added_pythons(channels: Path) -> tuple[HostPython, ...]:
    """Return the interpreters that were added, oldest first.

    Raises:
        StoreError: Their list is damaged.
    """
    path = index_of(channels)
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))["pythons"]
        return tuple(_from_json(entry, channels) for entry in listed)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is damaged: {error}"
        hint = "remove it and run `envbuild channel add-python` again"
        raise StoreError(message, hint=hint) from error


def add_python(
    python: HostPython,
    channels: Path,
    *,
    patience_s: float = PATIENCE_S,
    runner: Runner = run,
) -> HostPython:
    """Pack an interpreter into the store, and list it.

    The same files are added once; another interpreter of the same path is added beside the old.

    Raises:
        HostError: It cannot be packed.
        StoreError: The list is damaged or held by another process.
    """
    whole = digest(python)
    root = folder_of(channels)
    make_folder(root)
    with exclusive(root / "lock", timeout_s=patience_s, purpose="channel add-python"):
        _, archive = pack(python, root / python.platform, runner=runner)
        added = replace(python, archive=archive, archive_digest=whole, origin="")
        others = [old for old in added_pythons(channels) if old.archive_digest != whole]
        listed = [_as_json(each) for each in (*others, added)]
        text = json.dumps({"version": 1, "pythons": listed}, indent=1) + "\n"
        write_atomic(index_of(channels), text)
    return added


def _as_json(python: HostPython) -> dict[str, str | None]:
    """Return an added interpreter as JSON; its archive by name, so that a store can move."""
    entry: dict[str, str | None] = {}
    for field in fields(python):
        value = getattr(python, field.name)
        entry[field.name] = None if value is None else str(value)
    entry["archive"] = python.archive.name if python.archive else None
    return entry


def _from_json(entry: dict[str, Any], channels: Path) -> HostPython:
    values: dict[str, Any] = {field.name: entry[field.name] for field in fields(HostPython)}
    for name in _PATHS:
        values[name] = None if values[name] is None else Path(values[name])
    values["archive"] = folder_of(channels) / values["platform"] / values["archive"]
    return HostPython(**values)
