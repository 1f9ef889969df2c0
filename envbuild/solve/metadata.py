"""What wheels say of themselves: METADATA, through the index, kept by the wheel's SHA-256."""

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from envbuild.solve.wheels import Wheel
from envbuild.tools.files import make_folder, write_atomic

_WORKERS = 8

Reader = Callable[[Wheel], str]
"""Fetches the METADATA of a wheel; `remote.metadata_reader` gives the real one."""


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
    missing: dict[str, Wheel] = {}
    for wheel in wheels:
        digest = wheel.sha256
        if digest is None or digest in found or digest in missing:
            continue
        known = _load(cache / digest[:2] / digest)
        if known is None:
            missing[digest] = wheel
        else:
            found[digest] = known
    if missing:
        with ThreadPoolExecutor(min(_WORKERS, len(missing))) as pool:
            try:
                for digest, text in zip(missing, pool.map(read, missing.values()), strict=True):
                    found[digest] = parse(text)
                    _save(cache / digest[:2] / digest, found[digest])
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return found


def parse(text: str) -> Metadata:
    """Return what METADATA says."""
    from email.parser import HeaderParser

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
