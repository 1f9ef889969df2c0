"""Reading members of zip archives: large ones by zlib-ng, which takes half of zlib's time."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from envbuild.native.unpack import Readable

_LARGE_BYTES = 4 << 20
_READ_BYTES = 256 << 10
_HEADER = struct.Struct("<26xHH")


@contextmanager
def opened(archive: zipfile.ZipFile, stream: BinaryIO, info: zipfile.ZipInfo) -> Iterator[Readable]:
    """Open a member for reading; both ways give the same bytes or errors.

    Args:
        archive: The archive.
        stream: The archive's file, seekable.
        info: The member.

    Raises:
        zipfile.BadZipFile: It is damaged; also raised by reading it.
    """
    with archive.open(info) as member:
        large = info.file_size >= _LARGE_BYTES
        yield (
            _Inflated(stream, info)
            if large and info.compress_type == zipfile.ZIP_DEFLATED
            else member
        )


class _Inflated:
    """A deflated member whose local header zipfile has seen."""

    def __init__(self, stream: BinaryIO, info: zipfile.ZipInfo) -> None:
        from zlib_ng import zlib_ng

        self._crc32 = zlib_ng.crc32
        self._error = cast("type[Exception]", zlib_ng.error)
        self._inflater = zlib_ng.decompressobj(-zlib.MAX_WBITS)
        self._stream = stream
        self._info = info
        stream.seek(info.header_offset)
        names = _HEADER.unpack(stream.read(_HEADER.size))
        self._at = info.header_offset + _HEADER.size + sum(names)
        self._end = self._at + info.compress_size
        self._left = info.file_size
        self._crc = 0
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """Return up to so many bytes, none at the end.

        Raises:
            EOFError: The archive ends before.
            zlib.error: It is not deflated data.
            zipfile.BadZipFile: Its checksum is another one.
        """
        while not self._ended:
            data = self._inflater.unconsumed_tail or self._more()
            try:
                piece = self._inflater.decompress(data, size)[: self._left]
            except self._error as error:
                raise zlib.error(str(error)) from error
            self._left -= len(piece)
            self._crc = self._crc32(piece, self._crc)
            self._ended = self._inflater.eof or not self._left or not (data or piece)
            if self._ended and self._crc != self._info.CRC:
                message = f"Bad CRC-32 for file {self._info.filename!r}"
                raise zipfile.BadZipFile(message)
            if piece:
                return piece
        return b""

    def _more(self) -> bytes:
        count = min(_READ_BYTES, self._end - self._at)
        self._stream.seek(self._at)
        data = self._stream.read(count)
        if count and not data:
            raise EOFError
        self._at += len(data)
        return data
