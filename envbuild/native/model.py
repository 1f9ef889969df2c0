"""What reading binaries finds."""

from dataclasses import dataclass
from typing import Literal

from envbuild.native.code import GpuCode

ElfKind = Literal["library", "program", "object", "debug"]
Libc = Literal["glibc", "musl"]
Version = tuple[int, ...]


def version_text(version: Version | None) -> str | None:
    """Return a version as it is written, None for none."""
    return None if version is None else ".".join(map(str, version))


@dataclass(frozen=True, kw_only=True, slots=True)
class ElfFacts:
    """What one ELF file says of itself.

    Attributes:
        path: Where it lies in its tree.
        kind: `debug` is a split debug file: its code and symbols are elsewhere.
        machine: `x86_64`, `aarch64`, or what the ELF header has.
        soname: The name that others need it by, or None.
        needed: Names of the libraries that it needs, in order.
        rpath: Entries of RPATH.
        runpath: Entries of RUNPATH; the loader ignores RPATH beside it.
        comments: Every line of `.comment`, each once, in order.
        compilers: The compilers that they name, short (`GCC 12.2.0`); empty means unknown.
        libc: Whose C library it is linked to, or None for none or both unknown.
        glibc: The newest version of a GLIBC symbol that it needs, or None.
        glibcxx: The newest version of a GLIBCXX symbol that it needs, or None.
        codes: Targets of its GPU code.
        ptx_isa: The newest PTX instruction set of its PTX (major, minor), or None without PTX.
        zstd_code: Whether some of its GPU code is compressed with zstd.
        problem: Why it could not be read to its end, or None.
    """

    path: str
    kind: ElfKind
    machine: str
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    compilers: tuple[str, ...] = ()
    libc: Libc | None = None
    glibc: Version | None = None
    glibcxx: Version | None = None
    codes: frozenset[GpuCode] = frozenset()
    ptx_isa: tuple[int, int] | None = None
    zstd_code: bool = False
    problem: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NativeFacts:
    """What the binaries of a wheel, a conda package, a prefix or a file say of themselves.

    Attributes:
        name: What was read.
        files: Its ELF files, by path.
        other_files: How many files it has that are no ELF.
    """

    name: str
    files: tuple[ElfFacts, ...]
    other_files: int

    @property
    def glibc(self) -> Version | None:
        """The oldest glibc that all of it runs on, None where nothing needs glibc."""
        return max((file.glibc for file in self.files if file.glibc), default=None)

    @property
    def glibcxx(self) -> Version | None:
        """The oldest `GLIBCXX` that all of it runs with, None where nothing needs libstdc++."""
        return max((file.glibcxx for file in self.files if file.glibcxx), default=None)

    @property
    def codes(self) -> frozenset[GpuCode]:
        """Targets of all GPU code; what one card can run is a question to each file."""
        return frozenset(code for file in self.files for code in file.codes)
