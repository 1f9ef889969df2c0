"""What hot paths read of a manifest: plain JSON, with nothing but json imported."""

import json
import os
import stat
from pathlib import Path
from typing import Any

from envbuild.errors import StoreError
from envbuild.store.layout import Generation

MANIFEST_VERSION = 1


def read_raw(generation: Generation) -> dict[str, Any] | None:
    """Return manifest.json as it stands, or None if there is none.

    One that is hidden while somebody looks whether the generation may go is read as well.

    Raises:
        StoreError: It is damaged, or of another version of envbuild.
    """
    path = generation.manifest
    again = f"envbuild create {generation.place.name} --reinstall"
    content = _content(generation)
    if content is None:
        return None
    try:
        data = json.loads(content)
    except ValueError as error:
        message = f"{path} is damaged: {error}"
        raise StoreError(message, hint=again) from error
    if isinstance(data, dict):
        version = data.get("version")
        if version == MANIFEST_VERSION:
            return data
        if type(version) is int and version > MANIFEST_VERSION:
            message = f"{path}: format {version} is newer than this envbuild ({MANIFEST_VERSION})"
            raise StoreError(message, hint="upgrade envbuild")
    message = f"{path} is no manifest of envbuild"
    raise StoreError(message, hint=again)


def _content(generation: Generation) -> bytes | None:
    for path in (generation.manifest, generation.going, generation.manifest):
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
    return None


def look(path: str | Path) -> tuple[int, int]:
    """Return size (bytes, 0 for a folder) and time of change (ns) of a file or folder.

    Raises:
        OSError: It is not there.
    """
    status = os.stat(path)  # noqa: PTH116
    return 0 if stat.S_ISDIR(status.st_mode) else status.st_size, status.st_mtime_ns
