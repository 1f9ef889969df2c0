"""Reading a tar stream from strangers, one member after the other, in bounded memory.

The standard library's reader takes a name's or a header's size as it is told, which may be
gigabytes; and it seeks. Long names (GNU) and pax headers are read here up to a limit.
"""

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

_BLOCK = 512
_MOST_HEADER_BYTES = 1 << 20
_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_SIZE = re.compile(r"[0-9]{1,18}")
_LONG = {tarfile.GNUTYPE_LONGNAME: "path", tarfile.GNUTYPE_LONGLINK: "linkpath"}


class BrokenTar(ValueError):
    """A stream that does not hold what a tar archive has to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TarMember:
    """One member.

    Attributes:
        path: Its name.
        kind: `file`, `link` (symbolic or hard), `folder` or `other`.
        size: Bytes of its content.
        target: What a link points to.
        content: The content of a file, to be read before the next member is asked for.
    """

    path: str
    kind: str
    size: int
    target: str
    content: "Content"


class Content:
    """The bytes of one member."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        """Take the stream where the content begins."""
        self._stream = stream
        self.left = size

    def read(self, size: int) -> bytes:
        """Return up to so many bytes, none at the end.

        Raises:
            BrokenTar: The stream ends before.
        """
        wanted = min(size, self.left)
        if not wanted:
            return b""
        data = self._stream.read(wanted)
        if not data:
            message = "the archive ends inside a member"
            raise BrokenTar(message)
        self.left -= len(data)
        return data

    def skip(self) -> None:
        """Read past the rest."""
        while self.read(1 << 20):
            pass


def members(stream: IO[bytes]) -> Iterator[TarMember]:
    """Yield the members of a tar stream.

    Raises:
        BrokenTar: It is no tar archive, or is cut short.
    """
    told: dict[str, str] = {}
    while True:
        block = _exactly(stream, _BLOCK, end_allowed=True)
        if not block or block == bytes(_BLOCK):
            return
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as error:
            message = f"no tar header where one has to be ({error})"
            raise BrokenTar(message) from error
        if info.size < 0:
            message = f"a member of {info.size} bytes"
            raise BrokenTar(message)
        if info.type in (*_LONG, tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE):
            told = {**told, **_header(stream, info)}
            continue
        size = int(told["size"]) if _SIZE.fullmatch(told.get("size", "")) else info.size
        holds = info.type in _REGULAR or info.type not in tarfile.SUPPORTED_TYPES
        size = size if holds or info.type == tarfile.GNUTYPE_SPARSE else 0
        content = Content(stream, size)
        yield TarMember(
            path=told.get("path", info.name),
            kind=_kind(info),
            size=size,
            target=told.get("linkpath", info.linkname),
            content=content,
        )
        told = {}
        content.skip()
        _exactly(stream, -size % _BLOCK)


def _kind(info: tarfile.TarInfo) -> str:
    if info.type in _REGULAR:
        return "folder" if info.name.endswith("/") else "file"
    if info.type in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        return "link"
    return "folder" if info.type == tarfile.DIRTYPE else "other"


def _header(stream: IO[bytes], info: tarfile.TarInfo) -> dict[str, str]:
    """Return what a header before a member says of it."""
    if info.size > _MOST_HEADER_BYTES:
        message = f"a header of {info.size} bytes"
        raise BrokenTar(message)
    data = _exactly(stream, info.size)
    _exactly(stream, -info.size % _BLOCK)
    if info.type in _LONG:
        return {_LONG[info.type]: data.split(b"\0")[0].decode("utf-8", "surrogateescape")}
    if info.type == tarfile.XGLTYPE:
        return {}
    found: dict[str, str] = {}
    while data:
        length, space, _ = data.partition(b" ")
        count = int(length) if length.isdigit() and len(length) < 8 else 0  # noqa: PLR2004
        if not space or not len(length) + 2 < count <= len(data):
            message = "a pax header that contradicts its own lengths"
            raise BrokenTar(message)
        key, _, value = data[len(length) + 1 : count - 1].partition(b"=")
        found[key.decode("utf-8", "replace")] = value.decode("utf-8", "surrogateescape")
        data = data[count:]
    return {key: found[key] for key in ("path", "linkpath", "size") if key in found}


def _exactly(stream: IO[bytes], size: int, *, end_allowed: bool = False) -> bytes:
    data = b""
    while len(data) < size:
        more = stream.read(size - len(data))
        if not more:
            if end_allowed and not data:
                return b""
            message = "the archive ends too early"
            raise BrokenTar(message)
        data += more
    return data
