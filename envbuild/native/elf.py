"""Reading one ELF file: what it needs, who compiled it, which GPU code it holds."""

import re
import struct
from collections.abc import Iterable
from dataclasses import replace
from typing import BinaryIO

from envbuild.native import fatbin, symbols, tables
from envbuild.native.code import GpuCode, code_of
from envbuild.native.compilers import compiler
from envbuild.native.known_symbols import known_symbols
from envbuild.native.model import ElfFacts, ElfKind, Family, Libc, Version, floor_of
from envbuild.native.tables import MAGIC, BrokenElf, Tables, text_at

__all__ = ["MAGIC", "linked", "read"]

_CUDA = 190
_MACHINES = {62: "x86_64", 183: "aarch64", _CUDA: "cuda"}
_TOOLS_SECTION = ".note.nv.tkinfo"
_FATBIN_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
_MOST_COMMENT_BYTES = 1 << 20
_MOST_COMMENTS, _MOST_LINE_BYTES = 1000, 500
_MOST_NAMES_BYTES = 1 << 20
_MOST_PATH_BYTES = 4096
_EXECUTABLE = 1
_GLIBC_OF_MARK = {"GLIBC_ABI_DT_RELR": (2, 36)}
_MUSL = re.compile(r"libc\.musl-.*\.so\.1|ld-musl-.*\.so\.1|libc\.so")
_TOOL = re.compile(
    rb"\0(?P<name>\w+)\0Cuda compilation tools, release [\d.]+, V(?P<version>\d+\.\d+\.\d+)\0"
)
_TARGET = re.compile(rb"-arch[ =](sm_[1-9]\d{1,2}[af]?)(?![\w.])")
_CUDART = re.compile(r"libcudart(?:[-.][0-9a-f]{8})?\.so\b.*")


def read(stream: BinaryIO, *, path: str) -> ElfFacts:
    """Return what an ELF file says of itself.

    A file that is broken gives what could be read of it, and `problem`.

    Args:
        stream: The file, seekable.
        path: Its path, for the answer.
    """
    facts = ElfFacts(path=path, kind="object", machine="unknown")
    try:
        elf = Tables(stream)
        machine = _MACHINES.get(elf.machine, f"{elf.machine}")
        facts = replace(facts, machine=machine, kind=_kind(elf))
        for part in (_comments, _segments, _linking, _gpu_code, _cubin):
            facts = part(elf, facts)
            if facts.kind == "debug":
                break
    except (BrokenElf, fatbin.BrokenFatbin, struct.error) as error:
        return replace(facts, problem=f"{error}" or "not a whole ELF file")
    return facts


def linked(stream: BinaryIO) -> ElfFacts | None:
    """Return a file's machine, links (names, folders, versions of symbols) and GPU code alone.

    Args:
        stream: The file, seekable; what is no ELF file, or is broken, gives None.
    """
    try:
        elf = Tables(stream)
        machine = _MACHINES.get(elf.machine, f"{elf.machine}")
        nothing = ElfFacts(path="", kind="object", machine=machine)
        return _gpu_code(elf, _links(elf, nothing))
    except (BrokenElf, struct.error):
        return None


def _kind(elf: Tables) -> ElfKind:
    if elf.kind == tables.ET_EXEC:
        return "program"
    if elf.kind != tables.ET_DYN:
        return "object"
    interpreted = any(segment.kind == tables.PT_INTERP for segment in elf.segments)
    return "program" if interpreted else "library"


def _comments(elf: Tables, facts: ElfFacts) -> ElfFacts:
    section = elf.section(".comment")
    lines: list[str] = []
    if section is not None and section.size <= _MOST_COMMENT_BYTES:
        parts = dict.fromkeys(elf.content(section).split(b"\0"))
        lines = [part[:_MOST_LINE_BYTES].decode("utf-8", "replace").strip() for part in parts]
    comments = tuple(dict.fromkeys(line for line in lines if line))[:_MOST_COMMENTS]
    named = (compiler(line) for line in comments)
    link = elf.section(".gnu_debuglink")
    return replace(
        facts,
        comments=comments,
        compilers=tuple(dict.fromkeys(name for name in named if name)),
        kind="debug" if _is_debug(elf) else facts.kind,
        debug_link=text_at(elf.content(link), 0) if link and link.size < _MOST_PATH_BYTES else None,
    )


def _is_debug(elf: Tables) -> bool:
    """Say whether code and symbols were left out (`objcopy --only-keep-debug`)."""
    return any(
        section.kind == tables.SHT_NOBITS and section.name in (".dynamic", ".text")
        for section in elf.sections
    )


def _segments(elf: Tables, facts: ElfFacts) -> ElfFacts:
    stack = next((one for one in elf.segments if one.kind == tables.PT_GNU_STACK), None)
    loaded = [one.alignment for one in elf.segments if one.kind == tables.PT_LOAD]
    flags = elf.tag(tables.DT_FLAGS) or 0
    relocated = elf.tag(tables.DT_TEXTREL) is not None or bool(flags & tables.DF_TEXTREL)
    return replace(
        facts,
        exec_stack=stack is not None and bool(stack.flags & _EXECUTABLE),
        text_relocations=relocated,
        alignment=min(loaded, default=None),
    )


def _linking(elf: Tables, facts: ElfFacts) -> ElfFacts:
    """Add what the dynamic section and the symbols say."""
    facts = _links(elf, facts)
    libc = _libc(elf, facts.needed, facts.glibc)
    found = symbols.read(elf)
    known = known_symbols()
    missing = found.open if libc != "musl" else frozenset[str]()
    cudart = any(map(_CUDART.fullmatch, facts.needed))
    shared = elf.kind == tables.ET_DYN and facts.soname is not None  # libc.so.6 can be run
    return replace(
        facts,
        kind="library" if shared else facts.kind,
        libc=libc,
        string_abi=found.string_abi,
        unversioned=tuple((name, known[name.encode()]) for name in sorted(missing)),
        exports=found.exports,
        cudart="shared" if cudart or found.registers_gpu_code else None,
    )


def _links(elf: Tables, facts: ElfFacts) -> ElfFacts:
    """Add what the dynamic section and the versions of symbols say."""
    texts = _texts(elf)
    floors = _newest(name for _, name in elf.needed_versions())
    return replace(
        facts,
        soname=next(iter(texts.get(tables.DT_SONAME, ())), None),
        needed=tuple(texts.get(tables.DT_NEEDED, ())),
        rpath=_folders(texts.get(tables.DT_RPATH)),
        runpath=_folders(texts.get(tables.DT_RUNPATH)),
        glibc=floors.get("GLIBC"),
        glibcxx=floors.get("GLIBCXX"),
        cxxabi=floors.get("CXXABI"),
        provides=tuple(sorted(_newest(elf.defined_versions()).items())),
    )


def _texts(elf: Tables) -> dict[int, list[str]]:
    """Return the texts of the dynamic section, by tag.

    Raises:
        BrokenElf: They are longer than any linker writes.
    """
    found: dict[int, list[str]] = {}
    total = 0
    for tag, value in elf.dynamic:
        if tag in (tables.DT_NEEDED, tables.DT_SONAME, tables.DT_RPATH, tables.DT_RUNPATH):
            text = text_at(elf.strings, value)
            found.setdefault(tag, []).append(text)
            total += len(text)
        if total > _MOST_NAMES_BYTES:
            message = "its dynamic section names more than 1 MiB of libraries and folders"
            raise BrokenElf(message)
    return found


def _folders(texts: list[str] | None) -> tuple[str, ...]:
    return tuple(part for text in texts or () for part in text.split(":") if part)


def _newest(names: Iterable[str]) -> dict[Family, Version]:
    """Return the newest version of each family among symbol versions."""
    found: dict[Family, Version] = {}
    for name in names:
        mark = _GLIBC_OF_MARK.get(name)
        floor = ("GLIBC", mark) if mark else floor_of(name)
        if floor is not None:
            family, version = floor
            found[family] = max(version, found.get(family, version))
    return found


def _libc(elf: Tables, needed: tuple[str, ...], glibc: Version | None) -> Libc | None:
    if glibc is not None or "libc.so.6" in needed:
        return "glibc"
    loaders = (
        text_at(elf.read(one.offset, one.size), 0)
        for one in elf.segments
        if one.kind == tables.PT_INTERP and one.size < _MOST_PATH_BYTES
    )
    names = (*needed, *(name.rpartition("/")[2] for name in loaders))
    return "musl" if any(_MUSL.fullmatch(name) for name in names) else None


def _gpu_code(elf: Tables, facts: ElfFacts) -> ElfFacts:
    idle: set[GpuCode] = set()
    kernels: set[GpuCode] = set()
    compressions: set[str] = set()
    ptx_isa: tuple[int, int] | None = None
    for name in _FATBIN_SECTIONS:
        section = elf.section(name)
        if section is None:
            continue
        try:
            for entry in fatbin.entries(elf.stream, offset=section.offset, size=section.size):
                (idle if entry.is_empty else kernels).add(entry.code)
                compressions.add(entry.compression)
                if entry.code.kind == "ptx":
                    ptx_isa = max(entry.isa, ptx_isa or entry.isa)
        except fatbin.BrokenFatbin as error:
            facts = replace(facts, problem=f"{name}: {error}")
    built_in = bool(idle or kernels) and facts.cudart is None and elf.kind != tables.ET_REL
    return replace(
        facts,
        codes=frozenset(idle | kernels),
        idle_codes=frozenset(idle - kernels),
        compressions=frozenset(compressions),
        ptx_isa=ptx_isa,
        cudart="static" if built_in else facts.cudart,
    )


def _cubin(elf: Tables, facts: ElfFacts) -> ElfFacts:
    """Add which tool made a file of GPU code alone, and for what, as CUDA 13 notes in each.

    Its `e_flags` have the SM number only: `sm_90` and `sm_90a` are the same there.
    """
    section = elf.section(_TOOLS_SECTION)
    if elf.machine != _CUDA or section is None or section.size > _MOST_COMMENT_BYTES:
        return facts
    content = elf.content(section)
    tools = dict.fromkeys(
        f"{tool['name'].decode()} {tool['version'].decode()}" for tool in _TOOL.finditer(content)
    )
    targets = {code_of(target[1].decode()) for target in _TARGET.finditer(content)}
    return replace(facts, compilers=(*facts.compilers, *tools), codes=facts.codes | targets)
