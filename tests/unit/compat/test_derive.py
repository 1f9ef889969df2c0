"""Rows of builds from METADATA, file names and bytes of libraries."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from envbuild.compat.derive import libraries, verify
from envbuild.compat.derive.builds import Derived
from envbuild.compat.derive.index import Index, Wheel, chosen, pythons
from envbuild.compat.derive.metadata import active, parse, pin
from envbuild.compat.derive.rows import toml
from envbuild.compat.model import FrameworkBuild
from envbuild.compat.row import Row
from envbuild.compat.tables import load
from envbuild.tools.index_files import IndexFile

TORCH = """\
Metadata-Version: 2.1
Name: torch
Requires-Python: >=3.8.0
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Python :: 3.11
Provides-Extra: opt-einsum
Requires-Dist: filelock
Requires-Dist: nvidia-cudnn-cu12 ==9.1.0.70 ; platform_machine == "x86_64"
Requires-Dist: cuda-toolkit[cublas,cudart]==13.0.2; platform_system == "Linux"
Requires-Dist: triton~=3.8.0; python_version < "3.15"
Requires-Dist: not a requirement at all
Requires-Dist: opt-einsum >=3.3 ; extra == 'opt-einsum'

nvidia-nccl-cu12==1 is text.
"""


def test_requirements_that_count() -> None:
    metadata = parse(TORCH)
    assert (metadata.requires_python, metadata.pythons) == (">=3.8.0", ("3.11",))
    assert len(metadata.requires) == 5
    required = active(metadata.requires, "linux-64", "3.11")
    assert list(required) == ["filelock", "nvidia-cudnn", "cuda-toolkit", "triton"]
    assert pin(required, "nvidia-cudnn") == "9.1.0.70"
    assert pin(required, "nvidia-cuda-runtime", "cuda-toolkit") == "13.0.2"
    assert pin(required, "triton") == "~=3.8.0"
    assert pin(required, "filelock") is None
    assert pin(required, "nvidia-nccl") is None
    assert list(active(metadata.requires, "linux-aarch64", "3.15")) == ["filelock", "cuda-toolkit"]
    assert list(active(metadata.requires, "linux-64", "3.11", "opt-einsum")) == ["opt-einsum"]


def wheel(name: str, *, build: int | None = None) -> Wheel:
    python, platform = name.split(" ")
    return Wheel(
        file=IndexFile(filename=name, url=f"https://index.example/{name}"),
        version=Version("1"),
        build=() if build is None else (build, ""),
        pythons=frozenset({python}),
        platforms=frozenset(platform.split(".")),
    )


def test_which_wheel_is_read() -> None:
    linux = "manylinux_2_17_x86_64.manylinux2014_x86_64"
    all_of = [wheel(f"{one} {linux}") for one in ("3.13t", "3.12", "3.11", "3.9")]
    assert pythons(all_of) == ("3.9", "3.11", "3.12", "3.13t")
    found = chosen(all_of)
    assert found is not None
    assert found.pythons == {"3.11"}
    assert chosen(all_of[:2]) == all_of[1]
    assert pythons([wheel("3.10 linux_x86_64"), wheel("2.7 linux_x86_64")]) == ("2.7", "3.10")
    assert chosen(all_of, "other") is None
    assert chosen([]) is None
    again = wheel("3.12 linux_x86_64", build=3)
    assert chosen([wheel("3.12 linux_x86_64"), again]) == again


@pytest.mark.parametrize(
    ("platforms", "glibc"),
    [
        ("manylinux1_x86_64", "2.5"),
        ("manylinux2010_x86_64", "2.12"),
        ("manylinux_2_17_x86_64.manylinux2014_x86_64", "2.17"),
        ("manylinux_2_28_aarch64", "2.28"),
        ("linux_x86_64", None),
        ("musllinux_1_2_x86_64", None),
    ],
)
def test_the_glibc_of_a_tag(platforms: str, glibc: str | None) -> None:
    one = wheel(f"3.11 {platforms}")
    assert one.glibc == glibc
    assert one.fits("linux-64") == (platforms.endswith("x86_64") and "musl" not in platforms)
    assert one.fits("linux-aarch64") == platforms.endswith("aarch64")


@pytest.mark.parametrize(
    ("data", "targets"),
    [
        (b"x\0sm_50 sm_90a compute_90\0", ("sm_50", "sm_90a", "compute_90")),
        (b"ipc_hsm_70 sm_100 sm_80\0sm_1\0sm_75\0", ("sm_70", "sm_80", "sm_100")),
        (b"sm_80 sm_90", ()),
        (b"", ()),
    ],
)
def test_targets_in_a_library(data: bytes, targets: tuple[str, ...]) -> None:
    assert libraries._targets(data) == targets  # noqa: SLF001


@pytest.mark.parametrize(
    ("names", "new"),
    [
        (["_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", "_ZN3c105ErrorC1ERKS0_"], False),
        (["_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcEE"], True),
        (["_ZN3c105ErrorC1ESs", "_ZN3c105ErrorC2ENSt7__cxx1112basic_stringIcEE"], None),
        (["_ZN3c105ErrorC1ERKS0_", "_ZN4othe5ErrorC1ESs"], None),
        ([], None),
    ],
)
def test_the_abi_of_a_library(names: list[str], new: bool | None) -> None:  # noqa: FBT001
    assert libraries._cxx11_abi("\0".join(names).encode()) is new  # noqa: SLF001


VALUES = {
    "cuda": "12.8",
    "cudnn": "9.10.2.21",
    "nccl": None,
    "pythons": ("3.11", "3.13t"),
    "codes": ("sm_80", "compute_80"),
    "cxx11_abi": False,
    "wheel": 'a"\\b.whl',
}
DERIVED = Derived(
    framework="pytorch",
    version="2.99.0",
    origin="pypi",
    platform="linux-64",
    values=VALUES,
    sources={"wheel": "METADATA, 'read' in \"parts\""},
)


def test_rows_are_a_file_of_facts(tmp_path: Path) -> None:
    text = toml([DERIVED, replace(DERIVED, platform="linux-aarch64")], day="2026-12-02")
    assert "nccl" not in text
    (tmp_path / "pytorch.toml").write_text(text)
    rows = {row.name: row for row in load(tmp_path).rows() if row.site}
    assert list(rows) == ["pytorch 2.99.0 pypi", "pytorch 2.99.0 pypi linux-aarch64"]
    row = rows["pytorch 2.99.0 pypi"]
    assert isinstance(row, FrameworkBuild)
    for column, value in VALUES.items():
        assert getattr(row, column) == value
    assert (row.read, row.sources) == ("2026-12-02", tuple(DERIVED.sources.values()))
    assert tomllib.loads(text)["build"][0]["confidence"] == "high"


def held(row: Row, derived: Derived = DERIVED) -> verify.Verified:
    return verify._held(row, {derived.key: derived})  # noqa: SLF001


def test_what_a_row_differs_in() -> None:
    row = FrameworkBuild(
        framework="pytorch",
        version="2.99.0",
        origin="pypi",
        platform="linux-64",
        sources=("a document",),
        read="2026-12-01",
        confidence="high",
        driver="580",
        **VALUES,  # type: ignore[arg-type]
    )
    same = held(row)
    assert (same.verdict, same.differences, same.documented) == ("same", (), ("driver",))
    assert same.checked == tuple(VALUES)
    for column, other in (("cudnn", "9"), ("cxx11_abi", None), ("nccl", "2"), ("codes", ())):
        found = held(replace(row, **{column: other}))  # type: ignore[arg-type]
        assert found.verdict == "differs"
        (one,) = found.differences
        assert (one.column, one.table, one.found) == (column, other, VALUES[column])
    gone = held(replace(row, version="2.98.0"))
    assert [one.column for one in gone.differences] == ["release"]


def test_what_no_index_can_say() -> None:
    rows = [row for row in load().rows() if not verify.is_derivable(row)]

    def never() -> Index:
        raise AssertionError

    found = verify.verify(rows, never, read_libraries=True, told=print)
    assert {one.verdict for one in found} == {"not derivable"}
    assert all(one.documented for one in found)
    assert "pytorch 2.4.0 cu124" in {one.row.name for one in found}
