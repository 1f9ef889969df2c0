"""METADATA of a wheel from where the index has it: its sidecar (PEP 658), else its own zip."""

import io
import re
import threading
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from envbuild.access import Access
from envbuild.errors import FetchError
from envbuild.solve.metadata import Reader
from envbuild.solve.wheels import Wheel
from envbuild.tools.uv_question import Source

if TYPE_CHECKING:
    from envbuild.tools.http import Session

_TAIL_BYTES = 65536
_NO_FILE_STATUS, _SERVER_STATUS = 400, 500
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")


def metadata_reader(access: Access, sources: Sequence[Source]) -> Reader:
    """Return how the METADATA of wheels is fetched through the network.

    A place that answered no sidecar so far is not asked for more of them.
    """
    session: list[Session] = []
    lock = threading.Lock()
    has_sidecars: dict[str, bool] = {}

    def read(wheel: Wheel) -> str:
        with lock:
            if not session:
                from envbuild.tools.http import Session

                session.append(Session(access))
        url = with_login(wheel.url, sources)
        place = urlsplit(url).netloc
        if has_sidecars.get(place, True):
            try:
                text = session[0].get_text(f"{url}.metadata")
            except FetchError as error:
                if not _NO_FILE_STATUS <= getattr(error, "status", 0) < _SERVER_STATUS:
                    raise
                has_sidecars.setdefault(place, False)
            else:
                has_sidecars[place] = True
                return text
        return metadata_in(wheel, url, session[0])

    return read


def with_login(url: str, sources: Sequence[Source]) -> str:
    """Return a file's address with the login of an index on the same host, if that has one."""
    parts = urlsplit(url)
    for source in sources:
        known = urlsplit(source.url or "")
        login, _, host = known.netloc.rpartition("@")
        if login and (known.scheme, host) == (parts.scheme, parts.netloc):
            return urlunsplit(parts._replace(netloc=known.netloc))
    return url


def metadata_in(wheel: Wheel, url: str, session: "Session") -> str:
    """Return a wheel's METADATA, read from its zip in ranges.

    Raises:
        FetchError: It cannot be reached, or is no wheel.
    """

    def read(start: int, stop: int) -> bytes:
        return session.get_range(url, start, stop)

    try:
        with zipfile.ZipFile(RangedFile(read, wheel.size or session.get_size(url))) as archive:
            names = [name for name in archive.namelist() if _METADATA.fullmatch(name)]
            if len(names) == 1:
                return archive.read(names[0]).decode(errors="replace")
    except (zipfile.BadZipFile, NotImplementedError, zlib.error) as error:
        message = f"{wheel.filename} is no zip file that can be read"
        raise FetchError(message, hint="see what the index serves under that name") from error
    message = f"{wheel.filename} has {len(names)} METADATA files instead of one"
    raise FetchError(message, hint="see what the index serves under that name")


class RangedFile(io.RawIOBase):
    """A file behind http, read in ranges: its end once, then what is asked for."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        """Keep how to read; nothing is fetched yet.

        Args:
            read: Returns the bytes from a start to before a stop.
            size: Bytes of the whole file.
        """
        super().__init__()
        self._read = read
        self._size = size
        self._at = 0
        self._tail_start = max(size - _TAIL_BYTES, 0)
        self._tail: bytes | None = None

    def seekable(self) -> bool:
        """Say yes: ranges are read anywhere."""
        return True

    def readable(self) -> bool:
        """Say yes."""
        return True

    def tell(self) -> int:
        """Return the place, in bytes."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a place, in bytes."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes; fewer only at the end."""
        stop = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if self._at >= stop:
            return b""
        if self._at < self._tail_start:
            data = self._read(self._at, stop)
        else:
            if self._tail is None:
                self._tail = self._read(self._tail_start, self._size)
            data = self._tail[self._at - self._tail_start : stop - self._tail_start]
        self._at += len(data)
        return data
