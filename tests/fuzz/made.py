"""Small ELF files and packages, made byte by byte: what fuzzing starts from."""

import base64
import bz2
import hashlib
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import zstandard

_LOAD, _DYNAMIC, _INTERP, _STACK = 1, 2, 3, 0x6474E551
_PROGBITS, _STRTAB, _NOBITS, _DYNSYM = 1, 3, 8, 11
_TAGS = {"NEEDED": 1, "SONAME": 14, "RPATH": 15, "RUNPATH": 29}
_HEADER_BYTES = {True: 64, False: 52}


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbol:
    """One dynamic symbol; `version` is the place in `versions` plus 2, 1 for none."""

    name: str
    defined: bool = False
    version: int = 1
    weak: bool = False


def entry(number: int, flags: int, *, kind: int = 2, payload: bytes = b".text.k\0") -> bytes:
    """Return one entry of a fat binary, with a header of 64 bytes as nvcc 13.0 writes it."""
    head = struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(payload), len(payload), 0, 0, 9, number)
    return head.ljust(40, b"\0") + struct.pack("<QQQ", flags, 0, 640) + payload


def container(*parts: bytes) -> bytes:
    """Return a fat binary of entries."""
    body = b"".join(parts)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


class _Strings:
    def __init__(self) -> None:
        self.table = b"\0"

    def __call__(self, text: str) -> int:
        at = len(self.table)
        self.table += text.encode() + b"\0"
        return at


@dataclass(slots=True)
class _File:
    """What is made: the bytes after the header, and rows of the section headers."""

    wide: bool
    order: str
    body: bytearray
    rows: list[tuple[str, int, int, int]] = field(default_factory=list)

    def put(self, name: str, data: bytes, kind: int = _PROGBITS) -> int:
        """Append a section and return its place."""
        self.body.extend(bytes(-len(self.body) % 8))
        at = len(self.body)
        self.body.extend(data)
        self.rows.append((name, kind, at, len(data)))
        return at

    def words(self, rows: Iterable[tuple[int, int]]) -> bytes:
        """Return rows of the dynamic section."""
        layout = f"{self.order}2{'Q' if self.wide else 'I'}"
        return b"".join(struct.pack(layout, *row) for row in rows)

    def sections(self) -> int:
        """Append names and headers of the sections and return their place."""
        names = _Strings()
        self.rows.append((".shstrtab", _STRTAB, 0, 0))
        places = [names(row[0]) for row in self.rows]
        self.rows[-1] = (".shstrtab", _STRTAB, len(self.body), len(names.table))
        self.body.extend(names.table + bytes(-len(names.table) % 8))
        begin = len(self.body)
        layout = f"{self.order}{'IIQQQQIIQQ' if self.wide else 'IIIIIIIIII'}"
        self.body.extend(bytes(struct.calcsize(layout)))
        for place, (_, kind, at, size) in zip(places, self.rows, strict=True):
            self.body.extend(struct.pack(layout, place, kind, 0, at, at, size, 0, 0, 1, 0))
        return begin

    def segment(self, kind: int, flags: int, at: int, size: int, alignment: int) -> bytes:
        """Return a program header."""
        if self.wide:
            row = (kind, flags, at, at, at, size, size, alignment)
            return struct.pack(f"{self.order}IIQQQQQQ", *row)
        return struct.pack(f"{self.order}8I", kind, at, at, at, size, size, flags, alignment)


def elf(  # noqa: PLR0913 - each is a part of the file
    *,
    wide: bool = True,
    order: str = "<",
    kind: int = 3,
    machine: int = 62,
    texts: Mapping[str, Iterable[str]] | None = None,
    versions: Mapping[str, Iterable[str]] | None = None,
    defines: Iterable[str] = (),
    symbols: Iterable[Symbol] = (),
    sections: Mapping[str, bytes] | None = None,
    interpreter: str | None = None,
    stack_flags: int = 6,
    textrel: bool = False,
    alignment: int = 4096,
    debug: bool = False,
) -> bytes:
    """Return a small ELF file: addresses are offsets, one segment loads all of it.

    Args:
        wide: 64 bits.
        order: Of its bytes, as `struct` spells it.
        kind: `e_type`.
        machine: `e_machine`.
        texts: NEEDED, SONAME, RPATH and RUNPATH.
        versions: Symbol versions that it needs, by library.
        defines: Symbol versions that it has.
        symbols: Its dynamic symbols.
        sections: Others, by name.
        interpreter: Of a program.
        stack_flags: Rights of its stack.
        textrel: Whether its code has to be changed.
        alignment: Of its segment.
        debug: Whether its code is elsewhere.
    """
    head_bytes = _HEADER_BYTES[wide]
    made = _File(wide, order, bytearray(head_bytes + 4 * (56 if wide else 32)))
    strings = _Strings()
    dynamic = [
        (_TAGS[tag], strings(text)) for tag, every in (texts or {}).items() for text in every
    ]
    dynamic += [(22, 0)] if textrel else []
    every = list(symbols)
    if every:
        dynamic.append((6, made.put(".dynsym", _symbols(every, strings, made), _DYNSYM)))
        marks = struct.pack(f"{order}{len(every) + 1}H", 0, *(one.version for one in every))
        dynamic.append((0x6FFFFFF0, made.put(".gnu.version", marks)))
    if versions:
        needed = _versions(versions, strings, order)
        dynamic += [(0x6FFFFFFE, made.put(".gnu.version_r", needed)), (0x6FFFFFFF, len(versions))]
    if own := list(defines):
        table = _definitions(own, strings, order)
        dynamic += [(0x6FFFFFFC, made.put(".gnu.version_d", table)), (0x6FFFFFFD, len(own))]
    dynamic.append((5, made.put(".dynstr", strings.table, _STRTAB)))
    packed = made.words([*dynamic, (10, len(strings.table)), (0, 0)])
    segments = [(_DYNAMIC, 6, made.put(".dynamic", packed), len(packed), 8)]
    for name, data in (sections or {}).items():
        made.put(name, data)
    if debug:
        made.rows.append((".text", _NOBITS, 0x1000, 64))
    if interpreter:
        at = made.put(".interp", interpreter.encode() + b"\0")
        segments.append((_INTERP, 4, at, len(interpreter) + 1, 1))
    sections_at = made.sections()
    segments += [(_STACK, stack_flags, 0, 0, 16), (_LOAD, 5, 0, len(made.body), alignment)]
    table = b"".join(made.segment(*segment) for segment in segments)
    made.body[head_bytes : head_bytes + len(table)] = table
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]).ljust(12, b"\0")
    layout = f"{order}HHI{'QQQ' if wide else 'III'}IHHHHHH"
    sizes = (64, 56, len(segments), 64) if wide else (52, 32, len(segments), 40)
    rows = len(made.rows)
    head = (kind, machine, 1, 0, head_bytes, sections_at, 0, *sizes, rows + 1, rows)
    made.body[:head_bytes] = ident + struct.pack(layout, *head)
    return bytes(made.body)


def _symbols(symbols: Iterable[Symbol], texts: _Strings, made: _File) -> bytes:
    found = bytearray(24 if made.wide else 16)
    for one in symbols:
        name, info, section = texts(one.name), (2 if one.weak else 1) << 4, 7 if one.defined else 0
        row = (name, info, 0, section, 0, 0) if made.wide else (name, 0, 0, info, 0, section)
        found.extend(struct.pack(f"{made.order}{'IBBHQQ' if made.wide else 'IIIBBH'}", *row))
    return bytes(found)


def _versions(versions: Mapping[str, Iterable[str]], texts: _Strings, order: str) -> bytes:
    found = bytearray()
    index = 2
    for number, (library, names) in enumerate(versions.items()):
        every = list(names)
        size = 16 + 16 * len(every)
        following = size if number + 1 < len(versions) else 0
        found.extend(struct.pack(f"{order}HHIII", 1, len(every), texts(library), 16, following))
        for place, name in enumerate(every):
            step = 16 if place + 1 < len(every) else 0
            found.extend(struct.pack(f"{order}IHHII", 0, 0, index, texts(name), step))
            index += 1
    return bytes(found)


def _definitions(names: Iterable[str], texts: _Strings, order: str) -> bytes:
    """Return a table of versions that are defined, each in 28 bytes."""
    every = list(names)
    found = bytearray()
    for number, name in enumerate(every):
        step = 28 if number + 1 < len(every) else 0
        found.extend(struct.pack(f"{order}HHHHIII", 1, 0, number + 1, 1, 0, 20, step))
        found.extend(struct.pack(f"{order}II", texts(name), 0))
    return bytes(found)


def record_row(path: str, data: bytes) -> str:
    """Return a file's row of RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def wheel(files: Mapping[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a wheel of files, with a RECORD that agrees."""
    return packed_wheel(files, tag="cp311-cp311-linux_x86_64", method=method)


def packed_wheel(
    files: Mapping[str, bytes],
    *,
    tag: str = "py3-none-any",
    listed: Mapping[str, bytes] | None = None,
    method: int = zipfile.ZIP_DEFLATED,
) -> bytes:
    """Return a wheel of files.

    Args:
        files: What it holds.
        tag: What WHEEL says.
        listed: What RECORD lists of them; by default all.
        method: How it is compressed.
    """
    own = {"a-1.dist-info/WHEEL": f"Wheel-Version: 1.0\nTag: {tag}\n".encode()}
    rows = {**(files if listed is None else listed), **own}
    record = "".join(record_row(path, data) for path, data in rows.items())
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for path, data in {**files, **own}.items():
            archive.writestr(path, data)
        archive.writestr("a-1.dist-info/RECORD", f"{record}a-1.dist-info/RECORD,,\n")
    return made.getvalue()


def tar(files: Mapping[str, bytes], *, layout: int = tarfile.PAX_FORMAT) -> bytes:
    """Return a tar archive of files, with a link and a folder."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=layout) as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("lib/link.so")
        link.type, link.linkname = tarfile.SYMTYPE, "b.so"
        archive.addfile(link)
        folder = tarfile.TarInfo("lib")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    return made.getvalue().rstrip(b"\0") + bytes(512)


def conda(files: Mapping[str, bytes]) -> bytes:
    """Return a conda package of files."""
    rows = [
        {
            "_path": path,
            "path_type": "hardlink",
            "sha256": hashlib.sha256(data).hexdigest(),
            "size_in_bytes": len(data),
        }
        for path, data in files.items()
    ]
    own = {"info/paths.json": json.dumps({"paths": rows, "paths_version": 1}).encode()}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("metadata.json", b'{"conda_pkg_format_version": 2}')
        for name, part in (("pkg", files), ("info", own)):
            archive.writestr(f"{name}-a-1-0.tar.zst", zstandard.compress(tar(part)))
    return made.getvalue()


def older_conda(files: Mapping[str, bytes]) -> bytes:
    """Return a conda package of the older kind."""
    return bz2.compress(tar(files))


def code_library(*targets: str, payload: bytes = b".text.k\0") -> bytes:
    """Return a library with GPU code for targets (`sm_90a`, `compute_80`)."""
    flags = {"": 0x11, "a": 0x100011, "f": 0x200011}
    entries: list[bytes] = []
    for target in targets:
        name, _, number = target.partition("_")
        plain = number.rstrip("af")
        kind = 1 if name == "compute" else 2
        suffix = flags[number.removeprefix(plain)]
        entries.append(entry(int(plain), suffix, kind=kind, payload=payload))
    return elf(sections={".nv_fatbin": container(*entries), ".data": bytes(4096)})
