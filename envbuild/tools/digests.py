"""Digests of an archive or a download, and their comparison with what was promised."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from envbuild.errors import FetchError

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Digests:
    """What was computed while a file arrived.

    Attributes:
        sha256: Hex digest.
        md5: Hex digest, or None where nobody asked for it.
        size: Bytes.
    """

    sha256: str
    md5: str | None
    size: int


def check(
    digests: Digests,
    place: str,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    size: int | None = None,
) -> None:
    """Compare what was computed with what was promised.

    Args:
        digests: What was computed; its md5 counts only where one was promised.
        place: Address or path, for the message.
        sha256: Promised hex digest, or None.
        md5: Promised hex digest, or None.
        size: Promised bytes, or None.

    Raises:
        FetchError: One of them differs; the message says what was promised and what came.
    """
    rows = (
        ("bytes", size, digests.size),
        ("sha256", sha256, digests.sha256),
        ("md5", md5, digests.md5),
    )
    for what, promised, came in rows:
        if promised is not None and promised != came:
            message = f"{place}: {what} is {came}, the lock says {promised}"
            raise FetchError(
                message,
                hint="the file there is another than the one that was locked: try again,"
                " then ask whoever runs the mirror",
            )


def of_file(path: Path, *, md5: bool) -> Digests:
    """Read a file once and return its digests; md5 only where it is wanted.

    Raises:
        OSError: It cannot be read.
    """
    strong, weak, size = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            strong.update(chunk)
            size += len(chunk)
            if md5:
                weak.update(chunk)
    return Digests(sha256=strong.hexdigest(), md5=weak.hexdigest() if md5 else None, size=size)
