"""The readers of what strangers send, each as a function of bytes that must come to an end.

What a reader may say of bad input is an answer or the error that it documents; anything else that
is raised is a bug of ours. `run.py` gives them what atheris invents, and
`tests/unit/native/test_fuzz_corpus.py` what is kept of that in `tests/data/fuzz`.
"""

import contextlib
import io
import zipfile
import zlib
from collections.abc import Callable
from unittest import mock

from envbuild.native import declared, elf, fatbin, inflate, judge, tar
from envbuild.native.inspect import gathered
from envbuild.native.model import NativeFacts
from envbuild.native.package import PackageFacts
from envbuild.native.resolve import resolved
from envbuild.native.sparse import Sparse
from envbuild.native.tree import Unreadable, of_stream

WHEEL = "a-1-cp311-cp311-manylinux_2_17_x86_64.whl"
VARIANT = "a-1-cp311-cp311-manylinux_2_17_x86_64-cu130.whl"
CONDA = "a-1-0.conda"
_SEPARATOR = b"\0\0"
_BLOCK = 512
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)


class Differs(Exception):
    """Two ways to read the same input that tell different things."""


def read_elf(data: bytes) -> None:
    """One ELF file, what it needs, and what is wrong with it."""
    facts = elf.read(io.BytesIO(data), path="a/b.cpython-311-x86_64-linux-gnu.so")
    whole = NativeFacts(name="b.so", files=resolved([facts], {"a/c.so": "b.so"}), other_files=0)
    judge.findings(whole)


def read_fatbin(data: bytes) -> None:
    """A section of GPU code."""
    with contextlib.suppress(fatbin.BrokenFatbin):
        for entry in fatbin.entries(io.BytesIO(data), offset=0, size=len(data)):
            str(entry.code)


def read_sparse(data: bytes) -> None:
    """An ELF file that is kept without its GPU code: it reads as the whole file does."""
    step, body = 37 + 32 * (data[-1] if data else 0), data[:-1]
    sparse = Sparse(io.BytesIO(), lambda: [body])
    for at in range(0, len(body), step):
        sparse.write(body[at : at + step])
    sparse.finish()
    whole = elf.read(io.BytesIO(body), path="a")
    kept = elf.read(sparse, path="a")  # type: ignore[arg-type]
    if kept != whole:
        message = f"whole: {whole}\nkept: {kept}"
        raise Differs(message)


def read_deflated(data: bytes) -> None:
    """A deflated member, read as large ones are: the same bytes as by zipfile, or an error too.

    The first byte says what is wrong with the archive: with bit 0 another checksum, with bit 1 a
    size that the next two bytes have, with bit 2 one byte less of what is compressed, with bit 3
    one that is changed. The fourth says how the rest is compressed, and how often it is repeated.
    """
    told, *size, how = data[:4].ljust(4, b"\0")
    plain = data[4:] * (1 + how // 5)
    deflate = zlib.compressobj(how % 10, zlib.DEFLATED, -zlib.MAX_WBITS, 8, how % 5)
    packed = bytearray(deflate.compress(plain) + deflate.flush())
    if told & 8:
        packed[int.from_bytes(size, "little") % len(packed)] ^= 1 << (how % 8)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a", bytes(packed))
        info = archive.getinfo("a")
        info.compress_type = zipfile.ZIP_DEFLATED
        info.CRC = zlib.crc32(plain) ^ (told & 1)
        info.file_size = int.from_bytes(size, "little") if told & 2 else len(plain)
        info.compress_size -= told >> 2 & 1
    with zipfile.ZipFile(stream) as archive:
        answers = [
            _member(archive, stream, large_bytes=large_bytes) for large_bytes in (0, 1 << 40)
        ]
    if answers[0] != answers[1]:
        message = f"ours {answers[0]!r}, of zipfile {answers[1]!r}"
        raise Differs(message)


def _member(archive: zipfile.ZipFile, stream: io.BytesIO, *, large_bytes: int) -> bytes | None:
    with (
        contextlib.suppress(*_DAMAGED),
        mock.patch.object(inflate, "_LARGE_BYTES", large_bytes),
        inflate.opened(archive, stream, archive.getinfo("a")) as member,
    ):
        return b"".join(iter(lambda: member.read(1 << 16), b""))
    return None


def _read_package(data: bytes, name: str) -> None:
    with contextlib.suppress(Unreadable, ValueError):
        judge.findings(gathered(of_stream(io.BytesIO(data), name=name), name=name))


def read_wheel(data: bytes) -> None:
    """A whole wheel."""
    _read_package(data, VARIANT)


def read_conda(data: bytes) -> None:
    """A whole conda package; what begins as bzip2 is one of the older kind."""
    _read_package(data, "a-1-0.tar.bz2" if data.startswith(b"BZh") else CONDA)


def read_tar(data: bytes) -> None:
    """A tar stream; sums of headers are made right, since no mutation would guess them."""
    with contextlib.suppress(tar.BrokenTar):
        for member in tar.members(io.BytesIO(_summed(data))):
            while member.content.read(1 << 16):
                pass


def _summed(data: bytes) -> bytes:
    mended = bytearray(data)
    for at in range(0, len(data) - _BLOCK + 1, _BLOCK):
        if data[at + 257 : at + 262] == b"ustar":
            mended[at + 148 : at + 156] = b" " * 8
            mended[at + 148 : at + 155] = b"%06o\0" % sum(mended[at : at + _BLOCK])
    return bytes(mended)


def read_lists(data: bytes) -> None:
    """Texts in which packages describe themselves: RECORD, WHEEL, variant.json, paths.json."""
    parts = (*data.split(_SEPARATOR, 4), b"", b"", b"", b"")[:4]
    names = ("RECORD", "WHEEL", "variant.json")
    texts = {f"a-1.dist-info/{name}": text for name, text in zip(names, parts, strict=False)}
    content = {"a/b.py": ("0" * 64, 3), "a/c.py": ("1" * 64, 0)}
    paths = {"info/paths.json": parts[3]}
    with contextlib.suppress(ValueError):
        _judge(declared.wheel(VARIANT, texts, content, ()))
    with contextlib.suppress(ValueError):
        _judge(declared.conda(CONDA, paths, content, frozenset(), ()))


def _judge(package: PackageFacts) -> None:
    judge.findings(NativeFacts(name="a", files=(), other_files=2, package=package))


READERS: dict[str, Callable[[bytes], None]] = {
    "elf": read_elf,
    "fatbin": read_fatbin,
    "sparse": read_sparse,
    "deflated": read_deflated,
    "wheel": read_wheel,
    "conda": read_conda,
    "tar": read_tar,
    "lists": read_lists,
}
