"""Reading ELF files: real ones of this machine, and what damage makes of them."""

import io
import random
import sys
import sysconfig
from pathlib import Path

import pytest

from envbuild.native import elf


def extension() -> Path:
    """Return a small extension module of this interpreter that calls the C library."""
    folder = Path(sysconfig.get_config_var("DESTSHARED"))
    modules = sorted(folder.glob("*.so"), key=lambda path: path.stat().st_size)
    calling = (path for path in modules if b"GLIBC_2." in path.read_bytes())
    found = next(calling, None)
    if found is None:
        pytest.skip(f"no extension module in {folder}")
    return found


def test_a_library() -> None:
    path = extension()
    with path.open("rb") as file:
        facts = elf.read(file, path="x.so")
    assert facts.problem is None
    assert (facts.path, facts.kind, facts.codes) == ("x.so", "library", frozenset())
    assert facts.libc == "glibc"
    assert "libc.so.6" in facts.needed
    assert facts.glibc is not None
    assert facts.glibc >= (2, 2)


def test_a_program() -> None:
    with Path(sys.executable).resolve().open("rb") as file:
        facts = elf.read(file, path="python")
    assert (facts.kind, facts.problem) == ("program", None)


@pytest.mark.parametrize("part", [0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_short_is_said_to_be_broken(part: float) -> None:
    data = extension().read_bytes()
    facts = elf.read(io.BytesIO(data[: int(len(data) * part)]), path="x.so")
    assert facts.problem


def test_whatever_is_in_it_there_is_an_answer() -> None:
    data = extension().read_bytes()
    chance = random.Random(20)  # noqa: S311 - the same damage each time
    for _ in range(200):
        damaged = bytearray(data)
        for _ in range(8):
            end = chance.choice((64, 4096, len(data)))
            damaged[chance.randrange(4, end)] = chance.choice((0, 1, 0x7F, 0xFF))
        start = len(data) - 64 * 40  # the section headers, at the end
        damaged[chance.randrange(start, len(data))] = 0xFF
        facts = elf.read(io.BytesIO(bytes(damaged)), path="x.so")
        assert facts.path == "x.so"


def test_a_huge_number_of_versions_is_not_believed() -> None:
    """The section header claims four billion versions, each the same one again."""
    from elftools.elf.elffile import ELFFile

    data = bytearray(extension().read_bytes())
    tables = ELFFile(io.BytesIO(bytes(data)))
    index = tables.get_section_index(".gnu.version_r")
    assert index is not None
    header = tables["e_shoff"] + index * tables["e_shentsize"]
    data[header + 44 : header + 48] = b"\xff" * 4  # sh_info
    section = tables.get_section(index)
    data[section["sh_offset"] + 12 : section["sh_offset"] + 16] = bytes(4)  # vn_next
    facts = elf.read(io.BytesIO(bytes(data)), path="x.so")
    assert facts.needed  # and it came to an end


def test_a_made_file_is_read_in_all_its_parts() -> None:
    """What fuzzing starts from reaches what it is meant to reach."""
    from fuzz.seeds import SEEDS

    library, _, foreign, program, cubin, debug, *_ = (
        elf.read(io.BytesIO(seed), path="x.so") for seed in SEEDS["elf"]
    )
    assert [one.problem for one in (library, foreign, program, cubin, debug)] == [None] * 5
    assert library.compilers[:2] == ("GCC 9.3.1", "clang 17.0.6")
    assert (library.glibc, library.glibcxx, library.cxxabi) == ((2, 2, 5), (3, 4, 29), (1, 3))
    assert sorted(map(str, library.codes)) == ["compute_100f", "sm_80", "sm_90a"]
    assert (library.exec_stack, library.text_relocations) == (True, True)
    assert (foreign.machine, foreign.string_abi) == ("20", "old")
    assert (program.kind, debug.kind, cubin.kind) == ("program", "debug", "object")
