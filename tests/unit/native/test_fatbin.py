"""Fat binaries: made here as nvcc writes them, and broken ones."""

import io
import struct

import pytest

from envbuild.native.code import GpuCode, capability_of, code_of, verdict
from envbuild.native.fatbin import BrokenFatbin, Entry, entries

PTX, SASS = 1, 2


def entry(
    number: int, flags: int, *, kind: int = SASS, payload: bytes = bytes(24), unpacked: int = 0
) -> bytes:
    """Return an entry with a header of 64 bytes, as nvcc 13.0 writes it."""
    head = struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(payload), len(payload), 0, 0, 9, number)
    head = head.ljust(40, b"\0") + struct.pack("<QQQ", flags, 0, unpacked)
    return head + payload


def container(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def read(data: bytes) -> list[Entry]:
    return list(entries(io.BytesIO(b"\x7f" * 24 + data), offset=24, size=len(data)))


@pytest.mark.parametrize(
    ("number", "flags", "name"),
    [
        (80, 0x11, "sm_80"),
        (80, 0x8011, "sm_80"),
        (90, 0x100011, "sm_90a"),
        (90, 0x108011, "sm_90a"),
        (100, 0x1000011, "sm_100"),
        (100, 0x1200011, "sm_100f"),
        (100, 0x1100011, "sm_100a"),
        (100, 0x1108011, "sm_100a"),
    ],
)
def test_the_target_of_an_entry(number: int, flags: int, name: str) -> None:
    assert [str(one.code) for one in read(container(entry(number, flags)))] == [name]


def test_compression_and_sizes() -> None:
    plain, lz4, zstd = read(
        container(
            entry(80, 0x11, payload=bytes(48)),
            entry(80, 0x2011, payload=bytes(16), unpacked=640),
            entry(80, 0x8011, payload=bytes(8), unpacked=56056),
        )
    )
    assert (plain.compression, plain.stored_bytes, plain.unpacked_bytes) == ("none", 48, 48)
    assert (lz4.compression, lz4.stored_bytes, lz4.unpacked_bytes) == ("lz4", 16, 640)
    assert (zstd.compression, zstd.stored_bytes, zstd.unpacked_bytes) == ("zstd", 8, 56056)


def test_ptx_says_with_which_instruction_set_it_was_made() -> None:
    (one,) = read(container(entry(90, 0x100011, kind=PTX)))
    assert (str(one.code), one.isa) == ("compute_90a", (9, 0))


def test_containers_follow_each_other_with_padding() -> None:
    data = container(entry(80, 0x11, payload=bytes(20))) + bytes(4) + bytes(16)
    found = read(data + container(entry(90, 0x11)))
    assert [str(one.code) for one in found] == ["sm_80", "sm_90"]


@pytest.mark.parametrize(
    "data",
    [
        b"not a fat binary, but long enough",
        container(entry(80, 0x11))[:-4],
        struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 2**63) + bytes(64),
        struct.pack("<IHHQ", 0xBA55ED50, 1, 0, 0) + bytes(64),
        container(struct.pack("<HHIQIIHHI", 2, 0, 0, 0, 0, 0, 0, 9, 80) + bytes(64)),
        container(struct.pack("<HHIQIIHHI", 2, 0, 64, 2**62, 0, 0, 0, 9, 80) + bytes(64)),
    ],
)
def test_what_is_no_fat_binary_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(BrokenFatbin):
        read(data)


def codes(*names: str) -> frozenset[GpuCode]:
    return frozenset(map(code_of, names))


@pytest.mark.parametrize(
    ("names", "capability", "answer"),
    [
        (["sm_86"], "8.9", "native"),
        (["sm_86"], "8.0", "none"),
        (["sm_80", "sm_90a", "sm_100a"], "8.9", "native"),
        (["sm_80", "sm_90a", "sm_100a"], "9.0", "native"),
        (["sm_80", "sm_90a", "sm_100a"], "10.0", "native"),
        (["sm_80", "sm_90a", "sm_100a"], "10.3", "none"),
        (["sm_80", "sm_90a", "sm_100a"], "12.0", "none"),
        (["sm_80", "sm_90a", "sm_100a"], "7.0", "none"),
        (["sm_100"], "10.3", "native"),
        (["sm_100f"], "10.3", "native"),
        (["sm_100a"], "10.3", "none"),
        (["sm_100f"], "12.0", "none"),
        (["compute_80"], "10.0", "jit"),
        (["compute_80"], "7.0", "none"),
        (["compute_90a"], "9.0", "jit"),
        (["compute_90a"], "10.0", "none"),
        (["compute_100f"], "10.3", "jit"),
        (["compute_100f"], "12.0", "none"),
        ([], "9.0", "none"),
    ],
)
def test_which_card_runs_which_code(names: list[str], capability: str, answer: str) -> None:
    assert verdict(codes(*names), capability_of(capability)) == answer


@pytest.mark.parametrize("text", ["", "9", "9.0a", "sm_90", "0.9", "9.10", "9,0"])
def test_what_is_no_compute_capability(text: str) -> None:
    with pytest.raises(ValueError, match="not a compute capability"):
        capability_of(text)
