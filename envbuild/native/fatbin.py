"""CUDA fat binaries: which targets their entries are for.

The layout is not published by NVIDIA; it was measured on what nvcc 13.0 writes and on wheels back
to CUDA 11.7. A container is a header (magic `0xBA55ED50`, u16 version, u16 header size, u64 size of
the rest) and entries; an entry's header says its kind, SM number, sizes and flags, so that no
payload has to be read or unpacked. All numbers are little-endian.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal

from envbuild.native.code import GpuCode, Kind, Suffix

_MAGIC = 0xBA55ED50
MAGIC = _MAGIC.to_bytes(4, "little") + bytes((1, 0, 16, 0))
"""How a container of nvcc begins: with the version and size of its header."""
_CONTAINER = struct.Struct("<IHHQ")
CONTAINER_BYTES = _CONTAINER.size
HEAD_BYTES = 64
"""What is read of an entry's header."""
_ENTRY = struct.Struct("<HHIQIIHHI")
_FLAGS = struct.Struct("<Q")
_UNPACKED = struct.Struct("<Q")
_FLAGS_AT, _UNPACKED_AT = 40, 56
_ALIGNMENT = 8
_MOST_OFFSET = 1 << 48
_PADDING_BYTES = 1 << 20
_NUMBERS = range(10, 1000)
_CUBIN = 2
_EMPTY_BYTES = 4096
_TEXT = b".text."  # of the names of a cubin's sections
_KINDS: dict[int, Kind] = {1: "ptx", 2: "sass"}
_LZ4, _ZSTD, _ARCH_SPECIFIC, _FAMILY = 0x2000, 0x8000, 0x100000, 0x200000

Compression = Literal["none", "lz4", "zstd"]


class BrokenFatbin(ValueError):
    """A section that does not hold what a fat binary has to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One piece of code.

    Attributes:
        code: What it was compiled for.
        isa: Version of the PTX instruction set that it was made with (major, minor).
        compression: How it is stored; zstd needs a driver of CUDA 12.4 or newer.
        stored_bytes: Its size in the file.
        unpacked_bytes: Its size before compression.
        is_empty: Whether it is machine code without any kernel or function, as nvcc leaves it in
            libraries that launch nothing (its default target: libcufftw of CUDA 12 has `sm_52`).
    """

    code: GpuCode
    isa: tuple[int, int]
    compression: Compression
    stored_bytes: int
    unpacked_bytes: int
    is_empty: bool = False


def entries(stream: BinaryIO, *, offset: int, size: int) -> Iterator[Entry]:
    """Yield the entries of a section that holds containers, one after the other.

    Args:
        stream: The file, seekable.
        offset: Where the section begins (bytes).
        size: How long it is (bytes).

    Raises:
        BrokenFatbin: Something else is there.
    """
    end = offset + size
    at = offset
    while at + _CONTAINER.size <= end:
        magic, _, header_size, rest = _CONTAINER.unpack(_read(stream, at, _CONTAINER.size))
        if magic == 0:  # padding between the containers of object files
            at += _zeros(stream, at, end)
            continue
        if magic != _MAGIC or header_size < _CONTAINER.size or at + header_size + rest > end:
            message = f"no fat binary at byte {at}"
            raise BrokenFatbin(message)
        yield from _container(stream, at + header_size, at + header_size + rest)
        at += header_size + rest
        at += -(at - offset) % _ALIGNMENT


def container_bytes(data: bytes) -> int:
    """Return how long a container is, with its header; 0 where nvcc writes none like that.

    Args:
        data: At least its first 16 bytes.
    """
    magic, version, header_size, rest = _CONTAINER.unpack_from(data)
    usual = magic == _MAGIC and version == 1 and header_size == _CONTAINER.size
    return header_size + rest if usual else 0


def entry_sizes(head: bytes, inside: int) -> tuple[int, int] | None:
    """Return of an entry how many bytes `entries` may read, and how many follow that nobody reads.

    Args:
        head: Its first 64 bytes, fewer at a container's end.
        inside: How much of the container is left.

    Returns:
        None where it is no entry as nvcc writes them.
    """
    if len(head) < HEAD_BYTES:
        return None
    kind, _, header_size, payload, *_ = _ENTRY.unpack_from(head)
    if kind not in _KINDS or header_size < HEAD_BYTES or header_size + payload > inside:
        return None
    if payload <= _EMPTY_BYTES:
        return header_size + payload, 0
    return header_size, payload


def _zeros(stream: BinaryIO, at: int, end: int) -> int:
    """Return how many bytes of padding follow, in whole words of eight, at least one."""
    data = _read(stream, at, min(_PADDING_BYTES, end - at))
    found = len(data) - len(data.lstrip(b"\0"))
    return max(found - found % _ALIGNMENT, _ALIGNMENT)


def _container(stream: BinaryIO, at: int, end: int) -> Iterator[Entry]:
    while at + _ENTRY.size <= end:
        head = _read(stream, at, min(HEAD_BYTES, end - at))
        kind, _, header_size, payload, stored, _, minor, major, number = _ENTRY.unpack_from(head)
        if header_size < _FLAGS_AT + _FLAGS.size or at + header_size + payload > end:
            message = f"an entry at byte {at} is longer than its container"
            raise BrokenFatbin(message)
        flags = _FLAGS.unpack_from(head, _FLAGS_AT)[0] if len(head) >= _UNPACKED_AT else 0
        unpacked = 0
        if header_size >= HEAD_BYTES and len(head) == HEAD_BYTES:
            (unpacked,) = _UNPACKED.unpack_from(head, _UNPACKED_AT)
        if kind in _KINDS and number not in _NUMBERS:
            message = f"an entry at byte {at} is for SM {number}"
            raise BrokenFatbin(message)
        if kind in _KINDS:
            compression = _compression(flags)
            yield Entry(
                code=GpuCode(number=number, suffix=_suffix(flags), kind=_KINDS[kind]),
                isa=(major, minor),
                compression=compression,
                stored_bytes=stored or payload,
                unpacked_bytes=payload if compression == "none" else unpacked,
                is_empty=kind == _CUBIN
                and compression == "none"
                and payload <= _EMPTY_BYTES
                and _TEXT not in _read(stream, at + header_size, payload),
            )
        at += header_size + payload


def _compression(flags: int) -> Compression:
    if flags & _ZSTD:
        return "zstd"
    return "lz4" if flags & _LZ4 else "none"


def _suffix(flags: int) -> Suffix:
    if flags & _ARCH_SPECIFIC:
        return "a"
    return "f" if flags & _FAMILY else ""


def _read(stream: BinaryIO, at: int, count: int) -> bytes:
    if at > _MOST_OFFSET:
        message = f"the file ends before byte {at}"
        raise BrokenFatbin(message)
    stream.seek(at)
    data = stream.read(count)
    if len(data) != count:
        message = f"the file ends at byte {at + len(data)}, inside a fat binary"
        raise BrokenFatbin(message)
    return data
