"""The tables of an ELF file: header, segments, sections, dynamic section, versions.

Packages come from strangers: what a file claims of offsets, sizes and counts is compared with its
own length and with limits before anything is read, and every loop has an end. Names as in elf(5).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

MAGIC = b"\x7fELF"

ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
PT_GNU_STACK = 0x6474E551
SHT_NOBITS = 8
SHT_DYNSYM = 11
SHT_GNU_VERSYM = 0x6FFFFFFF
DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ = 1, 4, 5, 6, 10
DT_SONAME, DT_RPATH, DT_TEXTREL, DT_RUNPATH, DT_FLAGS = 14, 15, 22, 29, 30
DT_VERDEF, DT_VERDEFNUM = 0x6FFFFFFC, 0x6FFFFFFD
DT_GNU_HASH, DT_VERSYM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
DF_TEXTREL = 4

_BITS_64 = 2
_ORDERS = {1: "<", 2: ">"}
_MOST_ROWS = 20_000
_MOST_SECTIONS = 100_000
_MOST_TABLE_BYTES = 64 << 20
_ESCAPED_COUNT = 0xFFFF
_HEADERS = {True: "HHIQQQIHHHHHH", False: "HHIIIIIHHHHHH"}
_SEGMENTS = {True: "IIQQQQQQ", False: "IIIIIIII"}
_SECTIONS = {True: "IIQQQQIIQQ", False: "IIIIIIIIII"}


class BrokenElf(ValueError):
    """A file that does not hold what an ELF file has to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """One row of the program headers; sizes in bytes."""

    kind: int
    flags: int
    offset: int
    address: int
    size: int
    alignment: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """One row of the section headers; sizes in bytes."""

    name: str
    kind: int
    offset: int
    size: int
    link: int


class Tables:
    """An ELF file's tables, each read when it is first asked for.

    Attributes:
        kind: `e_type`.
        machine: `e_machine`.
        wide: Whether it is a 64-bit file.
        stream: The file.
    """

    def __init__(self, stream: BinaryIO) -> None:
        """Read the header.

        Args:
            stream: The file, seekable; it stays the caller's.

        Raises:
            BrokenElf: It is no ELF file.
        """
        self.stream = stream
        self._length = stream.seek(0, 2)
        ident = self.read(0, 16)
        self.wide = ident[4] == _BITS_64
        order = _ORDERS.get(ident[5])
        if not ident.startswith(MAGIC) or ident[4] not in (1, _BITS_64) or order is None:
            message = "its first bytes are not those of an ELF file"
            raise BrokenElf(message)
        self._order = order
        header = self._struct(_HEADERS[self.wide])
        row = header.unpack(self.read(16, header.size))
        self.kind, self.machine = row[0], row[1]
        self._segments_at, self._sections_at = row[4], row[5]
        self._segment_size, self._segment_count = row[8], row[9]
        self._section_size, self._section_count, self._names_index = row[10], row[11], row[12]

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the file.

        Raises:
            BrokenElf: They are not all there, or more than a table may have.
        """
        if size > _MOST_TABLE_BYTES:
            message = f"a table of {size} bytes at byte {offset}"
            raise BrokenElf(message)
        if offset + size > self._length:
            message = f"the file ends before byte {offset + size}, which its tables name"
            raise BrokenElf(message)
        self.stream.seek(offset)
        return self.stream.read(size)

    def unpacker(self, letters: str) -> struct.Struct:
        """Return a layout in the file's byte order."""
        return self._struct(letters)

    def _struct(self, letters: str) -> struct.Struct:
        return struct.Struct(f"{self._order}{letters}")

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The program headers."""
        layout = self._struct(_SEGMENTS[self.wide])
        if not self._segments_at or not self._segment_count:
            return ()
        if self._segment_size != layout.size:
            message = f"program headers of {self._segment_size} bytes"
            raise BrokenElf(message)
        rows = layout.iter_unpack(self.read(self._segments_at, layout.size * self._segment_count))
        if self.wide:
            return tuple(
                Segment(kind=r[0], flags=r[1], offset=r[2], address=r[3], size=r[5], alignment=r[7])
                for r in rows
            )
        return tuple(
            Segment(kind=r[0], flags=r[6], offset=r[1], address=r[2], size=r[4], alignment=r[7])
            for r in rows
        )

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The section headers; empty where they were removed."""
        layout = self._struct(_SECTIONS[self.wide])
        if not self._sections_at:
            return ()
        if self._section_size != layout.size:
            message = f"section headers of {self._section_size} bytes"
            raise BrokenElf(message)
        first = layout.unpack(self.read(self._sections_at, layout.size))
        count = self._section_count or first[5]
        if count > _MOST_SECTIONS:
            message = f"it claims {count} sections"
            raise BrokenElf(message)
        names_index = first[6] if self._names_index == _ESCAPED_COUNT else self._names_index
        rows = list(layout.iter_unpack(self.read(self._sections_at, layout.size * count)))
        names = b""
        if 0 < names_index < len(rows) and rows[names_index][1] != SHT_NOBITS:
            names = self.read(rows[names_index][4], rows[names_index][5])
        return tuple(
            Section(name=text_at(names, r[0]), kind=r[1], offset=r[4], size=r[5], link=r[6])
            for r in rows
        )

    def section(self, name: str) -> Section | None:
        """Return the first section of a name that has bytes in this file."""
        found = (one for one in self.sections if one.name == name and one.kind != SHT_NOBITS)
        return next(found, None)

    def content(self, section: Section | None) -> bytes:
        """Return a section's bytes, none for none."""
        return b"" if section is None else self.read(section.offset, section.size)

    @cached_property
    def dynamic(self) -> tuple[tuple[int, int], ...]:
        """Tags and values of the dynamic section, up to its end mark."""
        segment = next((one for one in self.segments if one.kind == PT_DYNAMIC), None)
        if segment is None or not segment.size:
            return ()
        layout = self._struct("QQ" if self.wide else "II")
        size = min(segment.size, _MOST_ROWS * layout.size)
        size -= size % layout.size
        found: list[tuple[int, int]] = []
        for tag, value in layout.iter_unpack(self.read(segment.offset, size)):
            if not tag:
                break
            found.append((tag, value))
        return tuple(found)

    def tag(self, wanted: int) -> int | None:
        """Return the value of a dynamic tag that stands once, or None."""
        return next((value for tag, value in self.dynamic if tag == wanted), None)

    @cached_property
    def strings(self) -> bytes:
        """The string table of the dynamic section."""
        address, size = self.tag(DT_STRTAB), self.tag(DT_STRSZ)
        if address is None or size is None:
            return b""
        return self.read(self.offset_of(address), size)

    def offset_of(self, address: int) -> int:
        """Return where in the file a loaded address lies.

        Raises:
            BrokenElf: Nowhere.
        """
        for segment in self.segments:
            if segment.kind == PT_LOAD and 0 <= address - segment.address < segment.size:
                return address - segment.address + segment.offset
        message = f"no segment holds the address {address:#x}, which its tables name"
        raise BrokenElf(message)

    def needed_versions(self) -> Iterator[tuple[int, str]]:
        """Yield index and name of each symbol version that is needed of another library."""
        address, count = self.tag(DT_VERNEED), self.tag(DT_VERNEEDNUM)
        if address is None or not count:
            return
        library, version = self._struct("HHIII"), self._struct("IHHII")
        at, rows = self.offset_of(address), 0
        for _ in range(min(count, _MOST_ROWS)):
            _, versions, _, first, following = library.unpack(self.read(at, library.size))
            row_at = at + first
            for _ in range(versions):
                rows += 1
                if rows > _MOST_ROWS:
                    message = "its table of needed versions has no end"
                    raise BrokenElf(message)
                _, _, index, name, step = version.unpack(self.read(row_at, version.size))
                yield index & 0x7FFF, text_at(self.strings, name)
                if not step:
                    break
                row_at += step
            if not following:
                return
            at += following

    def defined_versions(self) -> Iterator[str]:
        """Yield the name of each symbol version that it has itself."""
        address, count = self.tag(DT_VERDEF), self.tag(DT_VERDEFNUM)
        if address is None or not count:
            return
        row, name = self._struct("HHHHIII"), self._struct("I")
        at = self.offset_of(address)
        for _ in range(min(count, _MOST_ROWS)):
            _, _, _, _, _, first, following = row.unpack(self.read(at, row.size))
            yield text_at(self.strings, name.unpack(self.read(at + first, name.size))[0])
            if not following:
                return
            at += following


def text_at(table: bytes, at: int) -> str:
    """Return the text that begins at a place of a string table, at most 4 KiB of it."""
    end = table.find(b"\0", at, at + 4096)
    return table[at : end if end >= 0 else min(at + 4096, len(table))].decode("utf-8", "replace")
