"""What reading binaries finds."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from envbuild.native.code import GpuCode
from envbuild.native.mangled import StringAbi
from envbuild.native.package import PackageFacts

ElfKind = Literal["library", "program", "object", "debug"]
Libc = Literal["glibc", "musl"]
Version = tuple[int, ...]
Family = Literal["GLIBC", "GLIBCXX", "CXXABI"]
Floor = tuple[Family, Version]
FAMILIES: tuple[Family, ...] = ("GLIBC", "GLIBCXX", "CXXABI")
Place = Literal["inside", "environment", "host", "driver", "nowhere"]

_FLOOR = re.compile(r"(?P<family>GLIBC|GLIBCXX|CXXABI)_(?P<version>[0-9]+(?:\.[0-9]+)+)")
_BOTH_ABIS = re.compile(r"libstdc\+\+(?:[-.][0-9a-f]{8})*\.so\.6|libc\+\+\.so\.1")


def version_text(version: Version | None) -> str | None:
    """Return a version as it is written, None for none."""
    return None if version is None else ".".join(map(str, version))


def floor_of(text: str) -> Floor | None:
    """Return family and version of a symbol version such as `GLIBCXX_3.4.29`, or None."""
    match = _FLOOR.fullmatch(text)
    if match is None:
        return None
    families: dict[str, Family] = {name: name for name in ("GLIBC", "GLIBCXX", "CXXABI")}
    return families[match["family"]], tuple(map(int, match["version"].split(".")))


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """Where one needed library comes from.

    Attributes:
        name: What is needed.
        place: `inside` what was read, the `environment` around it, the `host` (glibc, libstdc++
            and what an absolute search path has), its `driver`, or `nowhere` that the file says.
        path: The file inside, or the entry of the search path that leads out; None for neither.
    """

    name: str
    place: Place
    path: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ElfFacts:
    """What one ELF file says of itself.

    Attributes:
        path: Where it lies in its tree.
        kind: `debug` is a split debug file: its code and symbols are elsewhere.
        machine: `x86_64`, `aarch64`, or the number that the ELF header has.
        soname: The name that others need it by, or None.
        needed: Names of the libraries that it needs, in order.
        links: Where they come from; filled where a whole tree was read.
        rpath: Entries of RPATH.
        runpath: Entries of RUNPATH; the loader ignores RPATH beside it.
        comments: Every line of `.comment`, each once, in order.
        compilers: The compilers that they name, short (`GCC 12.2.0`); empty means unknown.
        string_abi: Which string ABI of libstdc++ its symbols speak.
        libc: Whose C library it is linked to, or None for none or both unknown.
        glibc: The newest version of a GLIBC symbol that it needs, or None.
        glibcxx: The newest version of a GLIBCXX symbol that it needs, or None.
        cxxabi: The newest version of a CXXABI symbol that it needs, or None.
        unversioned: Symbols of libstdc++ or glibc that it needs without naming a version, and that
            no library of the tree that it needs exports.
        exports: Symbols of those that it exports itself.
        provides: The newest version of each family that it has for others, as libstdc++ does.
        outside: The oldest versions that have to come from outside of what was read, for it and all
            that it needs there; filled where a whole tree was read.
        codes: Targets of its GPU code.
        idle_codes: Those of them that have no kernel in this file, so that no card needs them.
        compressions: How that is stored (`none`, `lz4`, `zstd`).
        ptx_isa: The newest PTX instruction set of its PTX (major, minor), or None without PTX.
        cudart: Whether the CUDA runtime is part of it or needed of a library; None for neither.
        exec_stack: Whether it makes the stack executable.
        text_relocations: Whether its code has to be changed when it is loaded (TEXTREL).
        alignment: The least alignment of its loaded segments (bytes); a kernel with larger pages
            cannot load it. None without segments.
        debug_link: Name of its split debug file, or None.
        sha256: Hex digest of the file, where a package was read; equal files are one library.
        problem: Why it could not be read to its end, or None.
    """

    path: str
    kind: ElfKind
    machine: str
    soname: str | None = None
    needed: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    compilers: tuple[str, ...] = ()
    string_abi: StringAbi = "none"
    libc: Libc | None = None
    glibc: Version | None = None
    glibcxx: Version | None = None
    cxxabi: Version | None = None
    unversioned: tuple[tuple[str, Floor], ...] = ()
    exports: frozenset[str] = field(default=frozenset(), repr=False)
    provides: tuple[Floor, ...] = ()
    outside: tuple[Floor, ...] = ()
    codes: frozenset[GpuCode] = frozenset()
    idle_codes: frozenset[GpuCode] = frozenset()
    compressions: frozenset[str] = frozenset()
    ptx_isa: tuple[int, int] | None = None
    cudart: Literal["static", "shared"] | None = None
    exec_stack: bool = False
    text_relocations: bool = False
    alignment: int | None = None
    debug_link: str | None = None
    sha256: str | None = None
    problem: str | None = None

    @property
    def zstd_code(self) -> bool:
        """Whether some of its GPU code is compressed with zstd."""
        return "zstd" in self.compressions

    @property
    def kernels(self) -> frozenset[GpuCode]:
        """Targets of the GPU code that a card may have to run.

        Of files that are nothing else, the program that loads them chooses: they do not count.
        """
        return frozenset() if self.machine == "cuda" else self.codes - self.idle_codes

    def outer_floor(self, family: Family) -> Version | None:
        """Return the oldest version of a family that has to be outside of what was read."""
        return dict(self.outside).get(family)

    def floor(self, family: Family) -> Version | None:
        """Return the oldest version of a family that it runs with, symbols without one counted."""
        named = {"GLIBC": self.glibc, "GLIBCXX": self.glibcxx, "CXXABI": self.cxxabi}[family]
        found = [version for _, (other, version) in self.unversioned if other == family]
        return max([*found, *([named] if named else [])], default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class NativeFacts:
    """What the binaries of a wheel, a conda package, a prefix or a file say of themselves.

    Attributes:
        name: What was read.
        files: Its ELF files, by path.
        other_files: How many files it has that are no ELF.
        package: What a wheel or a conda package declares of itself, against its content.
    """

    name: str
    files: tuple[ElfFacts, ...]
    other_files: int
    package: PackageFacts | None = None

    def floor(self, family: Family) -> Version | None:
        """Return the oldest version of a family that has to be outside of it, None for any.

        What libraries inside have for the others does not count: a wheel or prefix with a libstdc++
        of its own needs none of the host's.
        """
        found = (file.outer_floor(family) for file in self.files)
        return max((version for version in found if version), default=None)

    @property
    def glibc(self) -> Version | None:
        """The oldest glibc that all of it runs on, None where nothing needs glibc."""
        return self.floor("GLIBC")

    @property
    def glibcxx(self) -> Version | None:
        """The oldest `GLIBCXX` that all of it runs with, None where nothing needs libstdc++."""
        return self.floor("GLIBCXX")

    @property
    def codes(self) -> frozenset[GpuCode]:
        """Targets of all GPU code; what one card can run is a question to each file."""
        return frozenset(code for file in self.files for code in file.codes)

    @property
    def compilers(self) -> tuple[str, ...]:
        """The compilers that its files name, each once; files that name none are unknown."""
        return tuple(dict.fromkeys(name for file in self.files for name in file.compilers))

    @property
    def string_abi(self) -> StringAbi:
        """The string ABI of all of it; libstdc++ itself has both and says nothing."""
        return joined_abi(
            file.string_abi for file in self.files if not _BOTH_ABIS.search(file.soname or "")
        )


def joined_abi(found: Iterable[StringAbi]) -> StringAbi:
    """Return the string ABI of several files."""
    seen = set(found) - {"none"}
    if len(seen) > 1:
        return "mixed"
    return seen.pop() if seen else "none"
