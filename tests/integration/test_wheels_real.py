"""Real wheels from the field, read whole: 2 GB of downloads, a few minutes.

`ENVBUILD_TEST_WHEELS=FOLDER` (the nox session `wheels`) says where they are kept; without it these
tests skip. What is expected was read with other tools.
"""

import os
import subprocess
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from integration.test_inspect import KERNEL

from envbuild.access import Access
from envbuild.compat.binaries import Host, against
from envbuild.compat.derive import index
from envbuild.compat.tables import load
from envbuild.findings import Findings
from envbuild.native import judge
from envbuild.native.code import capability_of
from envbuild.native.inspect import inspect
from envbuild.native.model import ElfFacts, NativeFacts
from envbuild.tools.http import Session

pytestmark = [pytest.mark.network, pytest.mark.slow]

FOLDER = os.environ.get("ENVBUILD_TEST_WHEELS")
DATA = Path(__file__).parents[1] / "data/inspect"
LISTED: dict[str, dict[str, object]] = {
    row["file"]: row
    for name in ("wheels.toml", "large.toml")
    for row in tomllib.loads((DATA / name).read_text(encoding="utf-8"))["wheel"]
}


@cache
def fetched(name: str) -> Path:
    """Return a wheel of the lists, fetched once into the folder."""
    if FOLDER is None:
        pytest.skip("set ENVBUILD_TEST_WHEELS to a folder for large wheels, as nox -s wheels does")
    (filename,) = (file for file in LISTED if file.startswith(f"{name}-"))
    path = Path(FOLDER, filename)
    if not path.exists():
        Path(FOLDER).mkdir(parents=True, exist_ok=True)
        project = filename.split("-")[0].lower().replace("_", "-")
        releases = index.default(Access()).versions(project).values()
        file = next(
            one.file for wheels in releases for one in wheels if one.file.filename == filename
        )
        Session(Access()).download(file.url, path, sha256=str(LISTED[filename]["sha256"]))
    return path


@cache
def read(name: str) -> NativeFacts:
    return inspect(fetched(name))


def files(facts: NativeFacts) -> dict[str, ElfFacts]:
    return {file.path.rpartition("/")[2]: file for file in facts.files}


def codes(file: ElfFacts) -> set[str]:
    return set(map(str, file.codes))


def told(facts: NativeFacts, code: str, host: Host | None = None) -> Findings:
    found = judge.findings(facts) if host is None else against(facts, host, load())
    return tuple(one for one in found if one.code == code)


def card(capability: str, driver: str | None = None) -> Host:
    return Host(gpus=((capability, capability_of(capability)),), driver=driver)


TORCH = ("libtorch_cuda.so", "libtorch_cuda_linalg.so", "libtorch_cpu.so", "libc10.so")


def test_torch(tmp_path: Path) -> None:
    facts = read("torch-2.4.0")
    own = {name: files(facts)[name] for name in TORCH}
    assert all(set(file.compilers) <= {"GCC 9.3.1", "GCC 4.8.5"} for file in own.values())
    assert {name for file in own.values() for name in file.compilers} == {"GCC 9.3.1", "GCC 4.8.5"}
    assert {file.string_abi for file in own.values()} == {"old"}
    assert facts.string_abi == "old"
    found = {"sm_50", "sm_60", "sm_70", "sm_80", "sm_86", "sm_90"}
    assert codes(own["libtorch_cuda.so"]) == {*found, "sm_75"}
    assert codes(own["libtorch_cuda_linalg.so"]) == found
    assert told(facts, "no-gpu-code", card("10.0"))
    assert not told(facts, "no-gpu-code", card("9.0"))
    with zipfile.ZipFile(fetched("torch-2.4.0")) as archive:
        archive.extractall(tmp_path)
    prefix = inspect(tmp_path)
    assert [replace(file, sha256=None) for file in facts.files] == list(prefix.files)


def test_arch_specific_code_alone() -> None:
    facts = read("fbgemm_gpu-1.7.0")
    with_code = [file for file in facts.files if file.codes]
    assert len(with_code) == 14
    assert all(codes(file) == {"sm_80", "sm_90a", "sm_100a"} for file in with_code)
    assert "zstd" in files(facts)["fbgemm_gpu_tbe_inference.so"].compressions
    for gpu, count in (("8.0", 0), ("8.9", 0), ("9.0", 0), ("10.0", 0), ("10.3", 1), ("12.0", 1)):
        assert bool(told(facts, "no-gpu-code", card(gpu))) == bool(count), gpu
    assert told(facts, "no-gpu-code", card("7.0"))


def test_alternatives_for_each_cuda() -> None:
    facts = read("bitsandbytes-0.43.1")
    jit = told(facts, "gpu-code-compiled", card("10.0", "580.65.06"))
    assert any("libbitsandbytes_cuda124.so" in one.where for one in jit)
    assert not told(facts, "no-gpu-code", card("10.0"))
    outside = told(facts, "library-path-outside")
    assert any("RUNPATH leads out" in one.what and "/usr/local/cuda/lib64" in one.what
               for one in outside)  # fmt: skip
    assert not any("libcudart" in one.what for one in judge.findings(facts))


def test_an_older_tag_than_the_programs() -> None:
    facts = read("pyscn-1.31.1")
    assert facts.glibc == (2, 34)
    assert [(file.kind, file.compilers) for file in facts.files] == [
        ("program", ("GCC 13.3.0",))
    ] * 2
    (finding,) = told(facts, "tag-too-old")
    assert "manylinux_2_34_x86_64" in (finding.hint or "")
    assert all(file.path in finding.what for file in facts.files)


@pytest.mark.parametrize(
    ("name", "glibcxx", "is_open"),
    [("xgrammar-0.2.4", (3, 4, 29), True), ("jaxlib-0.4.30", (3, 4, 19), False)],
)
def test_symbols_without_a_version(name: str, glibcxx: tuple[int, ...], *, is_open: bool) -> None:
    facts = read(name)
    assert facts.glibcxx == glibcxx
    assert facts.glibc == (2, 17)
    found = told(facts, "symbols-without-version")
    assert bool(found) == is_open
    assert all("_ZSt28__throw_bad_array_new_lengthv" in one.what for one in found)
    assert bool(told(facts, "libstdcxx-too-old", Host(glibcxx=(3, 4, 28)))) == is_open


def test_two_string_abis() -> None:
    facts = read("jaxlib-0.4.30")
    by_name = files(facts)
    for name in ("xla_extension.so", "utils.so", "_lapack.so", "libjaxlib_mlir_capi.so"):
        assert by_name[name].string_abi == "old", name
    assert by_name["_chlo.so"].string_abi == by_name["_stablehlo.so"].string_abi == "new"
    assert by_name["cpu_feature_guard.so"].string_abi == "none"
    assert facts.string_abi == "mixed"


@pytest.mark.parametrize(
    ("name", "file", "main", "beside"),
    [
        ("jaxlib-0.4.30", "utils.so", "clang 17.0.6", {"GCC 9.3.1", "GCC 4.7.3"}),
        ("ruff-0.6.9", "ruff", "rustc 1.81.0", {"GCC 10.2.1", "GCC 4.8.5"}),
        ("dpctl-0.18.3", "_types.cpython-311-x86_64-linux-gnu.so", "Intel oneAPI DPC++ 2025.0.1",
         {"GCC 14.2.0"}),
        ("ziglang-0.13.0", "zig", "clang 18.1.6", set()),
    ],
)  # fmt: skip
def test_several_compilers(name: str, file: str, main: str, beside: set[str]) -> None:
    found = files(read(name))
    one = found.get(file) or next(each for each in found.values() if main in each.compilers)
    assert main in one.compilers
    assert beside <= set(one.compilers)
    assert not any(compiler.startswith("Linker") for compiler in one.compilers)


def test_a_file_that_record_does_not_list() -> None:
    rows = told(read("cadquery_ocp-7.7.0a0"), "record-unlisted")
    assert [one.where.rpartition("/")[2].rpartition(" ")[2] for one in rows] == [
        "LICENSES_bundled.txt"
    ]
    assert not told(read("cadquery_ocp-7.7.0a0"), "record-contradicted")


def test_tags_and_targets_that_differ() -> None:
    facts = read("sgl_kernel-0.3.10")
    (tags,) = told(facts, "wheel-tags-differ")
    assert "cp310-abi3-linux_x86_64" in tags.what
    assert "cp310-abi3-manylinux2014_x86_64" in tags.what
    by_name = files(facts)
    assert {"sm_80", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a"} <= codes(
        by_name["common_ops.abi3.so"]
    )
    assert codes(by_name["flash_ops.abi3.so"]) == {"sm_80", "sm_86", "sm_90a"}
    lacking = told(facts, "no-gpu-code", card("10.0"))
    assert any("flash_ops" in one.where and "partly" in one.what for one in lacking)
    (other,) = told(facts, "not-abi3")
    assert "_mscclpp.cpython-310" in other.where


def test_leaked_paths_and_another_libc() -> None:
    leaked = told(read("dpctl-0.18.3"), "library-path-outside")
    assert any("_placehold" in one.what for one in leaked)
    musl = read("numpy-2.2.6")
    assert musl.glibc is None
    assert {file.libc for file in musl.files} == {"musl", None}  # None: some need no library
    assert told(musl, "other-libc", Host(glibc=(2, 36)))
    plain = [judge.plain_name(file.path) for file in musl.files]
    assert plain.count("numpy.libs/libgcc_s.so.1") == 2
    assert "numpy.libs/libgfortran.so.5.0.0" in plain


@dataclass(frozen=True)
class Nvcc:
    """What nvcc is told, and what is then in the library."""

    options: tuple[str, ...]
    codes: frozenset[str]
    compression: str = "none"


@pytest.mark.parametrize(
    "case",
    [
        Nvcc(("100/sm_100",), frozenset({"sm_100"})),
        Nvcc(("100f/sm_100f",), frozenset({"sm_100f"})),
        Nvcc(("100a/sm_100a",), frozenset({"sm_100a"})),
        Nvcc(("80/sm_80", "90a/sm_90a", "100a/sm_100a"),
             frozenset({"sm_80", "sm_90a", "sm_100a"})),
        Nvcc(("80/compute_80",), frozenset({"compute_80"})),
        Nvcc(("90a/compute_90a",), frozenset({"compute_90a"})),
    ],
    ids=lambda case: "-".join(sorted(case.codes)),
)  # fmt: skip
def test_what_nvcc_makes(case: Nvcc, program: Callable[[str], str], tmp_path: Path) -> None:
    if FOLDER is None:
        pytest.skip("set ENVBUILD_TEST_WHEELS, as nox -s wheels does: nvcc takes its time")
    (facts,) = compiled(program("nvcc"), tmp_path, KERNEL, *case.options).files
    assert codes(facts) == case.codes
    assert [name.split()[0] for name in facts.compilers] == ["GCC"]  # the host compiler


def compiled(nvcc: str, folder: Path, source: str, *targets: str, mode: str = "") -> NativeFacts:
    (folder / "k.cu").write_text(source)
    argv = [nvcc, "-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "k.cu", "-o", "k.so"]
    argv += [f"--compress-mode={mode}"] if mode else []
    for target in targets:
        arch, _, code = target.partition("/")
        argv += ["-gencode", f"arch=compute_{arch},code={code}"]
    subprocess.run(argv, check=True, cwd=folder)
    return inspect(folder / "k.so")


@pytest.mark.parametrize(("mode", "compression"), [("size", "zstd"), ("none", "none")])
def test_what_nvcc_compresses(
    mode: str, compression: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    if FOLDER is None:
        pytest.skip("set ENVBUILD_TEST_WHEELS, as nox -s wheels does: nvcc takes its time")
    loops = "".join(
        f"__global__ void k{n}(float *x, int m) {{ for (int i = 0; i < m; i++)"
        f" x[i] = sinf(x[i]) * cosf(x[i] + {n}) + __expf(x[i]); }}\n"
        for n in range(12)
    )
    facts = compiled(program("nvcc"), tmp_path, loops, "80/sm_80", mode=mode)
    (file,) = facts.files
    assert codes(file) == {"sm_80"}
    assert file.compressions == frozenset({compression})
    for driver, fails in (("535.183.01", mode == "size"), ("550.54.14", False)):
        assert bool(told(facts, "driver-too-old", Host(driver=driver))) == fails
