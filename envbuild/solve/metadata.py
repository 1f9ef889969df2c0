"""What wheels say of themselves: METADATA, through the index, kept by the wheel's SHA-256."""

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Protocol

from envbuild.solve.wheels import Wheel
from envbuild.tools.files import make_folder, write_atomic

_WORKERS = 8


class Reader(Protocol):
    """How the METADATA of a wheel is fetched; `remote.metadata_text` is the real one."""

    def __call__(self, wheel: Wheel) -> str:
        """Return the METADATA of a wheel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Metadata:
    """What a wheel's METADATA says that a lock has to agree with.

    Attributes:
        requires: Its `Requires-Dist` lines.
        requires_python: Its `Requires-Python`, or None.
    """

    requires: tuple[str, ...]
    requires_python: str | None


def gather(wheels: Iterable[Wheel], *, cache: Path, read: Reader) -> dict[str, Metadata]:
    """Return the metadata of wheels by SHA-256; only what is not in the cache is fetched.

    Args:
        wheels: Wheels with a SHA-256.
        cache: Folder of what was read before.
        read: Fetches one.

    Raises:
        FetchError: One cannot be fetched.
    """
    found: dict[str, Metadata] = {}
    missing: list[tuple[str, Wheel]] = []
    for wheel in wheels:
        digest = wheel.sha256
        if digest is None or digest in found:
            continue
        known = _load(cache / digest[:2] / digest)
        if known is None:
            missing.append((digest, wheel))
        else:
            found[digest] = known
    if missing:
        with ThreadPoolExecutor(min(_WORKERS, len(missing))) as pool:
            texts = pool.map(lambda pair: read(pair[1]), missing)
            for (digest, _), text in zip(missing, texts, strict=True):
                found[digest] = parse(text)
                _save(cache / digest[:2] / digest, found[digest])
    return found


def parse(text: str) -> Metadata:
    """Return what METADATA says."""
    headers = HeaderParser().parsestr(text)
    python = headers.get("Requires-Python")
    requires = headers.get_all("Requires-Dist", [])
    return Metadata(
        requires=tuple(" ".join(str(line).split()) for line in requires),
        requires_python=None if python is None else str(python).strip() or None,
    )


def _load(path: Path) -> Metadata | None:
    """Return what the cache holds, None if that is nothing or damaged."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        return Metadata(requires=tuple(value["requires"]), requires_python=value["python"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _save(path: Path, metadata: Metadata) -> None:
    make_folder(path.parent)
    value = {"requires": metadata.requires, "python": metadata.requires_python}
    write_atomic(path, json.dumps(value))
