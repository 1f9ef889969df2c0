"""A zip file behind http, of which only the members that are asked for are fetched."""

import contextlib
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from envbuild.errors import FetchError
from envbuild.tools.parts import PartedFile

if TYPE_CHECKING:
    from envbuild.tools.http import Session

_CHUNK_BYTES = 4 << 20
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteZip:
    """A zip file whose list of members has been read.

    Attributes:
        name: What messages call it.
        names: Names of its members.
    """

    name: str
    names: tuple[str, ...]
    _archive: zipfile.ZipFile
    _file: PartedFile

    @property
    def fetched_bytes(self) -> int:
        """How many bytes came so far."""
        return self._file.fetched_bytes

    def copy(self, member: str, to: IO[bytes], *, most_bytes: int) -> None:
        """Write a member, unpacked while it arrives, into a file.

        Args:
            member: Its name.
            to: The file.
            most_bytes: How long it may be, unpacked.

        Raises:
            FetchError: It cannot be had or unpacked, or is longer.
        """
        with _translated(self.name):
            size = self._archive.getinfo(member).file_size
            if size > most_bytes:
                message = f"{self.name}: {member} has {size} bytes, more than {most_bytes}"
                raise FetchError(message, hint="see what the index serves under that name")
            with self._archive.open(member) as packed:
                while chunk := packed.read(_CHUNK_BYTES):
                    to.write(chunk)


@contextlib.contextmanager
def opened(session: "Session", url: str, size: int | None, name: str) -> Iterator[RemoteZip]:
    """Read the list of a zip file's members.

    Args:
        session: What fetches.
        url: Where it is.
        size: Its bytes as the index lists them; None asks the server.
        name: What messages call it.

    Raises:
        FetchError: It cannot be had, or is no zip file.
    """
    file = PartedFile(
        lambda start, stop: session.get_part(url, start, stop),
        session.get_size(url) if size is None else size,
        name,
    )
    with _translated(name):
        archive = zipfile.ZipFile(file)
    with archive:
        yield RemoteZip(name=name, names=tuple(archive.namelist()), _archive=archive, _file=file)


@contextlib.contextmanager
def _translated(name: str) -> Iterator[None]:
    """Turn what a broken zip file raises into a fetch error."""
    try:
        yield
    except _BROKEN as error:
        message = f"{name}: no zip file that can be read: {error}"
        raise FetchError(message, hint="see what the index serves under that name") from error
