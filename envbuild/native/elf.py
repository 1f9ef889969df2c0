"""Reading one ELF file: what it needs, who compiled it, which GPU code it holds.

pyelftools reads the tables; sizes and counts that a file claims are bounded before they are
believed, since packages come from strangers.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, cast

from envbuild.native import fatbin
from envbuild.native.code import GpuCode
from envbuild.native.compilers import compiler
from envbuild.native.model import ElfFacts, ElfKind, Libc, Version

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

MAGIC = b"\x7fELF"

_MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64", "EM_CUDA": "cuda"}
_FATBIN_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
_MOST_SECTIONS = 100_000
_MOST_ROWS = 10_000
_MOST_COMMENT_BYTES = 1 << 20
_VERSION = re.compile(r"(?P<family>GLIBC|GLIBCXX)_(?P<version>[0-9]+(?:\.[0-9]+)+)")
_GLIBC_OF_MARK = {"GLIBC_ABI_DT_RELR": (2, 36)}
_MUSL = re.compile(r"libc\.musl-.*\.so\.1|ld-musl-.*\.so\.1|libc\.so")


def read(stream: BinaryIO, *, path: str) -> ElfFacts:
    """Return what an ELF file says of itself.

    A file that is broken gives what could be read of it, and `problem`.

    Args:
        stream: The file, seekable.
        path: Its path, for the answer.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    facts = ElfFacts(path=path, kind="object", machine="unknown")
    try:
        elf = ELFFile(stream)
        machine = str(elf.header["e_machine"])
        facts = replace(facts, machine=_MACHINES.get(machine, machine), kind=_kind(elf))
        return _sections(elf, facts)
    except (ELFError, fatbin.BrokenFatbin) as error:
        return replace(facts, problem=f"{error}" or "not a whole ELF file")
    except Exception as error:  # noqa: BLE001 - the library meets what hostile tables make it meet
        return replace(facts, problem=f"not a whole ELF file ({type(error).__name__})")


def _kind(elf: "ELFFile") -> ElfKind:
    kind = elf.header["e_type"]
    if kind == "ET_EXEC":
        return "program"
    if kind != "ET_DYN":
        return "object"
    interpreted = any(segment["p_type"] == "PT_INTERP" for segment in elf.iter_segments())
    return "program" if interpreted else "library"


def _sections(elf: "ELFFile", facts: ElfFacts) -> ElfFacts:
    if elf.num_sections() > _MOST_SECTIONS:
        return replace(facts, problem=f"it claims {elf.num_sections()} sections")
    comments = _comments(elf)
    named = (compiler(line) for line in comments)
    compilers = tuple(dict.fromkeys(name for name in named if name))
    facts = replace(facts, comments=comments, compilers=compilers)
    if _is_debug(elf):
        return replace(facts, kind="debug")
    facts = _linking(elf, facts)
    return _gpu_code(elf, facts)


def _is_debug(elf: "ELFFile") -> bool:
    """Say whether code and symbols were left out (`objcopy --only-keep-debug`)."""
    return any(
        section["sh_type"] == "SHT_NOBITS"
        for name in (".dynamic", ".text")
        if (section := elf.get_section_by_name(name)) is not None
    )


def _comments(elf: "ELFFile") -> tuple[str, ...]:
    section = elf.get_section_by_name(".comment")
    if section is None or section["sh_size"] > _MOST_COMMENT_BYTES:
        return ()
    lines = (line.decode("utf-8", "replace").strip() for line in section.data().split(b"\0"))
    return tuple(dict.fromkeys(line for line in lines if line))


def _linking(elf: "ELFFile", facts: ElfFacts) -> ElfFacts:
    """Add what the dynamic section and the versions of the needed symbols say."""
    from elftools.elf.dynamic import DynamicSegment

    dynamic = next((one for one in elf.iter_segments() if isinstance(one, DynamicSegment)), None)
    needed: list[str] = []
    texts: dict[str, str] = {}
    for tag in islice(dynamic.iter_tags() if dynamic else (), _MOST_ROWS):
        name = tag.entry.d_tag
        if name == "DT_NEEDED":
            needed.append(str(vars(tag)["needed"]))
        elif name in ("DT_SONAME", "DT_RPATH", "DT_RUNPATH"):
            texts[name] = str(vars(tag)[name.removeprefix("DT_").lower()])
    versions = list(_versions(elf))
    glibc = max((v for family, v in versions if family == "GLIBC"), default=None)
    shared = elf.header["e_type"] == "ET_DYN" and "DT_SONAME" in texts  # libc.so.6 can be run
    return replace(
        facts,
        kind="library" if shared else facts.kind,
        soname=texts.get("DT_SONAME"),
        needed=tuple(needed),
        rpath=_folders(texts.get("DT_RPATH")),
        runpath=_folders(texts.get("DT_RUNPATH")),
        libc=_libc(elf, needed, glibc),
        glibc=glibc,
        glibcxx=max((v for family, v in versions if family == "GLIBCXX"), default=None),
    )


def _folders(text: str | None) -> tuple[str, ...]:
    return tuple(part for part in (text or "").split(":") if part)


def _versions(elf: "ELFFile") -> Iterator[tuple[str, Version]]:
    """Yield the symbol versions that are needed of other libraries, with their family."""
    from elftools.elf.gnuversions import GNUVerNeedSection

    section = elf.get_section_by_name(".gnu.version_r")
    if not isinstance(section, GNUVerNeedSection):
        return
    for _, rows in islice(section.iter_versions(), _MOST_ROWS):
        for row in islice(rows, _MOST_ROWS):
            if row.name in _GLIBC_OF_MARK:
                yield "GLIBC", _GLIBC_OF_MARK[row.name]
            elif match := _VERSION.fullmatch(row.name):
                yield match["family"], tuple(map(int, match["version"].split(".")))


def _libc(elf: "ELFFile", needed: list[str], glibc: Version | None) -> Libc | None:
    from elftools.elf.segments import InterpSegment

    if glibc is not None or "libc.so.6" in needed:
        return "glibc"
    loaders = [
        one.get_interp_name() for one in elf.iter_segments() if isinstance(one, InterpSegment)
    ]
    names = [*needed, *(name.rpartition("/")[2] for name in loaders)]
    return "musl" if any(_MUSL.fullmatch(name) for name in names) else None


def _gpu_code(elf: "ELFFile", facts: ElfFacts) -> ElfFacts:
    codes: set[GpuCode] = set()
    ptx_isa: tuple[int, int] | None = None
    zstd = False
    for name in _FATBIN_SECTIONS:
        section = elf.get_section_by_name(name)
        if section is None or section["sh_type"] == "SHT_NOBITS":
            continue
        place = {"offset": section["sh_offset"], "size": section["sh_size"]}
        try:
            for entry in fatbin.entries(cast("BinaryIO", elf.stream), **place):
                codes.add(entry.code)
                zstd |= entry.compression == "zstd"
                if entry.code.kind == "ptx":
                    ptx_isa = max(entry.isa, ptx_isa or entry.isa)
        except fatbin.BrokenFatbin as error:
            facts = replace(facts, problem=f"{name}: {error}")
    return replace(facts, codes=frozenset(codes), ptx_isa=ptx_isa, zstd_code=zstd)
