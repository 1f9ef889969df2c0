"""What the libraries of a framework's wheel say of how it was built."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, cast

from envbuild.native import elf
from envbuild.native.code import GpuCode, code_of
from envbuild.native.model import ElfFacts, version_text
from envbuild.tools.remote_zip import RemoteZip

COLUMNS = {
    "pytorch": ("cuda", "codes", "compiler", "cxx11_abi", "glibc"),
    "jax": ("codes", "compiler", "glibc"),
}
"""What libraries say of a build of a framework; METADATA mostly names PyTorch's CUDA too."""

_IN_MEMORY_BYTES = 64 << 20
_MOST_BYTES = 256 << 20

_CUDA = re.compile(r"^cuda\b[^=\n]*=\s*['\"](?P<version>[0-9]+\.[0-9]+)", re.MULTILINE)
_TARGETS = re.compile(rb"((?:(?:sm|compute)_[1-9][0-9]{1,2}[af]? ?){1,64})\0")
_MANGLED = re.compile(rb"_ZN3c10(?:6detail14torchCheckFail|5ErrorC[12])\w{1,400}")
_READ = re.compile(r"torch/lib/(?:libc10|libtorch_python)\.so|.*/libgomp[-.\w]*\.so[.\d]*")
_PLUGIN = re.compile(r"[^/]+/[^/]+\.so")


def pytorch(archive: RemoteZip) -> dict[str, object]:
    """Return what a wheel of PyTorch's says, by column of its row.

    Its version file names CUDA; `libtorch_python.so` holds the targets that it was told to make,
    which `torch.cuda.get_arch_list()` returns; `libc10.so` shows compiler and ABI.

    Raises:
        FetchError: It cannot be read.
    """
    read: dict[str, ElfFacts] = {}
    found: dict[str, object] = {}
    for name in archive.names:
        if not _READ.fullmatch(name):
            continue
        with _unpacked(archive, name) as file:
            read[name] = elf.read(file, path=name)
            file.seek(0)
            if name == "torch/lib/libtorch_python.so" and (targets := _targets(file.read())):
                found["codes"] = targets
            elif name == "torch/lib/libc10.so":
                found["cxx11_abi"] = _cxx11_abi(file.read())
                found["compiler"] = _compiler([read[name]])
    if "torch/version.py" in archive.names:
        with _unpacked(archive, "torch/version.py") as file:
            match = _CUDA.search(file.read().decode(errors="replace"))
        found["cuda"] = match["version"] if match else None
    return {**found, **_glibc(read)}


def jax(archive: RemoteZip) -> dict[str, object]:
    """Return what a wheel of JAX's CUDA plugin says, by column of its row.

    Raises:
        FetchError: It cannot be read.
    """
    read: dict[str, ElfFacts] = {}
    for name in archive.names:
        if _PLUGIN.fullmatch(name):
            with _unpacked(archive, name) as file:
                read[name] = elf.read(file, path=name)
    codes = {code for facts in read.values() for code in facts.codes}
    found: dict[str, object] = {"codes": _spelled(codes)} if codes else {}
    return {**found, "compiler": _compiler(read.values()), **_glibc(read)}


@contextmanager
def _unpacked(archive: RemoteZip, name: str) -> Iterator[BinaryIO]:
    """Yield a member of a wheel, unpacked."""
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as file:
        archive.copy(name, file, most_bytes=_MOST_BYTES)
        file.seek(0)
        yield cast("BinaryIO", file)


def _glibc(read: Mapping[str, ElfFacts]) -> dict[str, object]:
    known = [facts.glibc for facts in read.values() if facts.glibc]
    return {"glibc": version_text(max(known))} if known else {}


def _compiler(read: Iterable[ElfFacts]) -> str | None:
    """Return the compiler: clang where it took part, since objects of the C library name GCC."""
    named = [compiler for facts in read for compiler in facts.compilers]
    able = [name for name in named if name.startswith("clang")] or named
    return max(dict.fromkeys(able), key=able.count, default=None)


def _targets(data: bytes) -> tuple[str, ...]:
    """Return the longest list of targets that stands in a library as one text."""
    texts = (match[1].decode().split() for match in _TARGETS.finditer(data))
    return _spelled(map(code_of, max(texts, key=len, default=())))


def _spelled(codes: Iterable[GpuCode]) -> tuple[str, ...]:
    ordered = sorted(codes, key=lambda code: (code.kind == "ptx", code.number, code.suffix))
    return tuple(map(str, ordered))


def _cxx11_abi(data: bytes) -> bool | None:
    """Say whether the functions that a library is known for take strings of the newer ABI."""
    mangled = _MANGLED.findall(data)
    new = any(b"__cxx11" in name for name in mangled)
    old = any(b"Ss" in name for name in mangled)
    return None if new == old else new
