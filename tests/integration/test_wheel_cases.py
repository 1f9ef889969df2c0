"""Cases from the field of binaries in wheels, on small files that are made byte by byte."""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fuzz.made import Symbol, code_library, container, elf, entry, packed_wheel
from integration.locking import envbuild

PTX, SASS = 1, 2
LIBC = {"NEEDED": ["libc.so.6"]}
THROW = "_ZSt28__throw_bad_array_new_lengthv"  # GLIBCXX_3.4.29
STREAM = "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev"  # GLIBCXX_3.4.26


@dataclass(kw_only=True)
class Told:
    """What `inspect --json` printed, and its exit code."""

    exit_code: int
    data: dict[str, Any]

    def findings(self, code: str) -> list[dict[str, Any]]:
        return [one for one in self.data["findings"] if one["code"] == code]

    def files(self) -> dict[str, dict[str, Any]]:
        return {one["path"]: one for one in self.data["files"]}

    def file(self) -> dict[str, Any]:
        (found,) = self.data["files"]
        return dict(found)


@pytest.fixture
def inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    """Return what packs files as a wheel and inspects it, against a host if one is named."""

    def inspect(
        files: Mapping[str, bytes] | bytes,
        against: str | None = None,
        tag: str = "py3-none-manylinux_2_17_x86_64",
        *,
        listed: Mapping[str, bytes] | None = None,
    ) -> Told:
        members = {"a/lib.so": files} if isinstance(files, bytes) else files
        path = tmp_path / f"a-1-{tag}.whl"
        path.write_bytes(packed_wheel(members, tag=tag, listed=listed))
        words = [] if against is None else ["--against", against]
        code = envbuild("inspect", f"{path}", "--json", *words)
        return Told(exit_code=code, data=json.loads(capsys.readouterr().out))

    return inspect


Inspect = Callable[..., Told]


@pytest.mark.parametrize(
    ("gpu", "runs"),
    [
        ("a100", True), ("l40s", True), ("h100", True), ("h200", True), ("b200", True),
        ("b300", False), ("rtx-5090", False), ("rtx-pro-6000", False), ("v100", False),
    ],
)  # fmt: skip
def test_arch_specific_code_does_not_cover_the_next_minor(
    inspected: Inspect, gpu: str, *, runs: bool
) -> None:
    found = inspected(code_library("sm_80", "sm_90a", "sm_100a"), f"gpu={gpu}")
    assert found.data["gpu_code"] == ["sm_80", "sm_90a", "sm_100a"]
    assert found.exit_code == (0 if runs else 1)
    lacking = found.findings("no-gpu-code")
    assert len(lacking) == (0 if runs else 1)
    assert all("sm_80 sm_90a sm_100a" in one["what"] for one in lacking)


@pytest.mark.parametrize("compressed", [0, 0x8000])
def test_stored_and_compressed_entries_count_alike(inspected: Inspect, compressed: int) -> None:
    flags = ((80, 0x11), (90, 0x100011), (100, 0x1100011))
    code = container(*(entry(number, flag | compressed) for number, flag in flags))
    file = inspected(elf(sections={".nv_fatbin": code})).file()
    assert file["gpu_code"] == ["sm_80", "sm_90a", "sm_100a"]
    assert file["compression"] == ["zstd" if compressed else "none"]


@pytest.mark.parametrize(
    ("number", "flags", "name", "runs", "not_on"),
    [
        (100, 0x1000011, "sm_100", ["10.0", "10.3"], ["12.0", "9.0"]),
        (100, 0x1200011, "sm_100f", ["10.0", "10.3"], ["12.0", "9.0"]),
        (100, 0x1100011, "sm_100a", ["10.0"], ["10.3", "12.0"]),
        (90, 0x11, "sm_90", ["9.0"], ["10.0", "8.9"]),
        (90, 0x100011, "sm_90a", ["9.0"], ["10.0", "8.9"]),
    ],
)
def test_plain_family_and_arch_specific_targets(
    inspected: Inspect, number: int, flags: int, name: str, runs: list[str], not_on: list[str]
) -> None:
    library = elf(sections={".nv_fatbin": container(entry(number, flags))})
    for card in (*runs, *not_on):
        found = inspected(library, f"gpu={card}")
        assert found.data["gpu_code"] == [name]
        assert found.exit_code == (0 if card in runs else 1), card


def test_only_ptx(inspected: Inspect) -> None:
    library = code_library("compute_80")
    for gpu in ("a100", "h100", "b200"):
        found = inspected(library, f"gpu={gpu},driver=580.65.06")
        assert found.exit_code == 0
        (jit,) = found.findings("gpu-code-compiled")
        assert "CUDA 13.0" in jit["why"]
        old = inspected(library, f"gpu={gpu},driver=550.54")
        assert old.exit_code == 1
        assert any("580" in one["what"] for one in old.findings("driver-too-old"))
    assert inspected(library, "gpu=v100").findings("no-gpu-code")
    file = inspected(library).file()
    assert (file["gpu_code"], file["ptx_isa"]) == (["compute_80"], "9.0")
    arch_specific = code_library("compute_90a")
    assert inspected(arch_specific, "gpu=9.0").exit_code == 0
    assert inspected(arch_specific, "gpu=10.0").findings("no-gpu-code")


def test_one_library_for_each_cuda_is_told_apart(inspected: Inspect) -> None:
    """As bitsandbytes 0.43.1: alternatives, of which no union is made."""
    libraries = {
        "b/libb_cuda117.so": (["sm_50", "sm_86", "compute_86"], "libcudart.so.11.0"),
        "b/libb_cuda124.so": (["sm_50", "sm_90", "compute_90"], "libcudart.so.12"),
    }
    built = {
        path: elf(texts={"NEEDED": [cudart]}, sections={".nv_fatbin": _lz4(targets)})
        for path, (targets, cudart) in libraries.items()
    }
    found = inspected({**built, "b/libb_cpu.so": elf(texts=LIBC)}, "gpu=b200,driver=580.65.06")
    files = found.files()
    for path, (targets, cudart) in libraries.items():
        assert files[path]["gpu_code"] == targets
        assert files[path]["needed"] == [cudart]
        assert (files[path]["compression"], files[path]["cudart"]) == (["lz4"], "shared")
    assert files["b/libb_cpu.so"]["gpu_code"] == []
    assert found.exit_code == 0
    assert len(found.findings("gpu-code-compiled")) == 1
    assert not any("libcudart" in one["what"] for one in found.data["findings"])


def _lz4(targets: list[str]) -> bytes:
    kinds = {"sm": SASS, "compute": PTX}
    parts = (target.split("_") for target in targets)
    return container(*(entry(int(sm), 0x2011, kind=kinds[kind]) for kind, sm in parts))


@pytest.mark.parametrize(
    ("flags", "driver", "fails"),
    [
        (0x8011, "535.183.01", True),
        (0x8011, "550.54.14", False),
        (0x11, "535.183.01", False),
        (0x2011, "535.183.01", False),
    ],
)
def test_zstd_raises_the_driver_floor(
    inspected: Inspect, flags: int, driver: str, *, fails: bool
) -> None:
    library = elf(sections={".nv_fatbin": container(entry(80, flags))})
    found = inspected(library, f"driver={driver}")
    assert found.data["gpu_code"] == ["sm_80"]
    assert found.exit_code == int(fails)
    told = found.findings("driver-too-old")
    assert len(told) == int(fails)
    for one in told:
        assert "CUDA 12.4 or newer (550)" in one["what"]
        assert "device kernel image is invalid" in one["why"]


def test_the_tag_promises_an_older_glibc(inspected: Inspect) -> None:
    """As pyscn 1.31.1: two programs, of another glibc than the tag's."""
    programs = {
        f"a/bin/{name}": elf(
            kind=2,
            texts=LIBC,
            versions={"libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.34"]},
            sections={".comment": b"GCC: (Ubuntu 13.3.0-6ubuntu2~24.04.1) 13.3.0\0"},
            interpreter="/lib64/ld-linux-x86-64.so.2",
        )
        for name in ("one", "two")
    }
    found = inspected(programs)
    assert found.data["glibc"] == "2.34"
    (told,) = found.findings("tag-too-old")
    assert "glibc 2.17, and a/bin/one, a/bin/two need 2.34" in told["what"]
    assert told["hint"].endswith("manylinux_2_34_x86_64")
    for file in found.data["files"]:
        assert (file["kind"], file["compilers"]) == ("program", ["GCC 13.3.0"])
        assert (file["glibcxx"], file["string_abi"]) == (None, "none")


def _bindings(*needed: str, symbols: tuple[str, ...]) -> bytes:
    return elf(
        texts={"NEEDED": [*needed, "libstdc++.so.6"]},
        versions={"libstdc++.so.6": ["GLIBCXX_3.4.22"]},
        symbols=[Symbol(name="_ZSt4cout", version=2), *(Symbol(name=one) for one in symbols)],
    )


def test_symbols_without_a_version_raise_the_floor(inspected: Inspect) -> None:
    """As xgrammar 0.2.4, whose table of versions ends at GLIBCXX_3.4.22."""
    library = _bindings("libtvm_ffi.so", symbols=(THROW, STREAM))
    found = inspected(library, "glibcxx=3.4.28")
    assert found.exit_code == 1
    assert found.data["glibcxx"] == "3.4.29"
    (note,) = found.findings("symbols-without-version")
    assert f"GLIBCXX_3.4.29 by symbols that name no version: {THROW}, {STREAM}" in note["what"]
    assert "open as long as libtvm_ffi.so may export them" in note["why"]
    (refused,) = found.findings("libstdcxx-too-old")
    assert THROW in refused["why"]
    assert inspected(library, "glibcxx=3.4.29").exit_code == 0
    assert inspected(_bindings(symbols=(STREAM,))).data["glibcxx"] == "3.4.26"


def test_a_needed_library_that_exports_the_symbol_settles_it(inspected: Inspect) -> None:
    """As jaxlib 0.4.30; in sgl-kernel 0.3.10 the one that has the symbol is not needed."""
    api = elf(texts={"SONAME": ["libapi.so"]}, symbols=[Symbol(name=STREAM, defined=True)])
    found = inspected({"a/x.so": _bindings("libapi.so", symbols=(STREAM,)), "a/libapi.so": api})
    assert found.data["glibcxx"] == "3.4.22"
    assert found.findings("symbols-without-version") == []
    apart = inspected({"a/x.so": _bindings(symbols=(STREAM,)), "a/libapi.so": api})
    assert apart.data["glibcxx"] == "3.4.26"


def test_a_libstdcxx_inside_needs_none_outside(inspected: Inspect) -> None:
    own = elf(
        texts={"SONAME": ["libstdc++.so.6"], **LIBC},
        versions={"libc.so.6": ["GLIBC_2.36"]},
        defines=["GLIBCXX_3.4", "GLIBCXX_3.4.30", "CXXABI_1.3.13"],
    )
    extension = elf(
        texts={"NEEDED": ["libstdc++.so.6", "libc.so.6"], "RPATH": ["$ORIGIN/../a.libs"]},
        versions={"libstdc++.so.6": ["GLIBCXX_3.4.29"], "libc.so.6": ["GLIBC_2.17"]},
    )
    tag = "cp311-cp311-manylinux_2_28_x86_64"
    found = inspected({"a/x.so": extension, "a.libs/libstdc++-0a1b2c3d.so.6.0.30": own}, tag=tag)
    assert (found.data["glibc"], found.data["glibcxx"]) == ("2.36", None)
    files = found.files()
    assert files["a/x.so"]["glibc"] == "2.17"
    assert files["a/x.so"]["closure"] == {"glibc": "2.36", "glibcxx": None, "cxxabi": None}
    (told,) = found.findings("tag-too-old")
    assert "libstdc++-0a1b2c3d.so.6.0.30 needs 2.36" in told["what"]


def test_two_string_abis_and_none(
    inspected: Inspect, program: Callable[[str], str], tmp_path: Path
) -> None:
    source = (
        "#include <sstream>\n"
        'extern "C" int f(int x) { std::ostringstream s; s << x; return s.str().size(); }\n'
    )
    none = 'extern "C" int f(int x) { return x + 1; }\n'
    built = {
        "a/new.so": _compiled(program("g++"), tmp_path, source),
        "a/old.so": _compiled(program("g++"), tmp_path, source, "-D_GLIBCXX_USE_CXX11_ABI=0"),
        "a/none.so": _compiled(program("g++"), tmp_path, none),
    }
    found = inspected(built)
    told = {path: file["string_abi"] for path, file in found.files().items()}
    assert told == {"a/new.so": "new", "a/old.so": "old", "a/none.so": "none"}
    assert found.data["string_abi"] == "mixed"
    (note,) = found.findings("string-abi-mixed")
    assert (note["severity"], "old: a/old.so; new: a/new.so" in note["what"]) == ("note", True)


def _compiled(compiler: str, folder: Path, source: str, *flags: str) -> bytes:
    made = folder / "compiled.so"
    argv = [compiler, "-x", "c++", "-O2", "-shared", "-fPIC", *flags, "-", "-o", f"{made}"]
    subprocess.run(argv, input=source.encode(), check=True)
    return made.read_bytes()


def test_a_name_that_claims_the_other_abi(tmp_path: Path) -> None:
    path = tmp_path / "a-1+cu12torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    symbols = [Symbol(name=STREAM, version=2)]
    versions = {"libstdc++.so.6": ["GLIBCXX_3.4.26"]}
    path.write_bytes(packed_wheel({"a.so": elf(versions=versions, symbols=symbols)}))
    from envbuild.native import judge
    from envbuild.native.inspect import inspect

    (found,) = (one for one in judge.findings(inspect(path)) if one.code == "string-abi-claim")
    assert found.severity == "error"


@pytest.mark.parametrize(
    ("comments", "compilers"),
    [
        (
            ["GCC: (GNU) 9.3.1 20200408 (Red Hat 9.3.1-2)", "GCC: (GNU) 4.7.3",
             "Debian clang version 17.0.6 (++20231208085846+6009708b4367)"],
            ["GCC 9.3.1", "GCC 4.7.3", "clang 17.0.6"],
        ),
        (
            ["GCC: (GNU) 4.8.5 20150623 (Red Hat 4.8.5-44)",
             "rustc version 1.81.0 (eeb90cda1 2024-09-04)", "Linker: LLD 18.1.0",
             "clang version 18.1.0rc"],
            ["GCC 4.8.5", "rustc 1.81.0", "clang 18.1.0rc"],
        ),
        (
            ["GCC: (GNU) 14.2.0", "Linker: Intel(R) oneAPI DPC++/C++ LLD 19.0.0",
             "Intel(R) oneAPI DPC++/C++ Compiler 2025.0.1 (2025.0.1.20241113)"],
            ["GCC 14.2.0", "Intel oneAPI DPC++ 2025.0.1"],
        ),
        (["Linker: LLD 18.1.6", "clang version 18.1.6"], ["clang 18.1.6"]),
        (["GCC: (Alpine 13.2.1_git20240309) 13.2.1 20240309"], ["GCC 13.2.1"]),
    ],
)  # fmt: skip
def test_several_compilers_in_one_file(
    inspected: Inspect, comments: list[str], compilers: list[str]
) -> None:
    text = "\0".join(["", *comments, ""]).encode()
    file = inspected(elf(sections={".comment": text})).file()
    assert file["comment"] == comments
    assert file["compilers"] == compilers


def test_without_comment_the_rest_is_still_given(inspected: Inspect) -> None:
    texts = {"SONAME": ["liba.so.1"], **LIBC}
    library = elf(texts=texts, versions={"libc.so.6": ["GLIBC_2.2.5"]})
    file = inspected(library).file()
    assert (file["compilers"], file["comment"]) == ([], [])
    assert (file["soname"], file["needed"], file["glibc"]) == ("liba.so.1", ["libc.so.6"], "2.2.5")


def test_split_debug_files_are_not_read_as_code(
    inspected: Inspect, program: Callable[[str], str], tmp_path: Path
) -> None:
    compiled = _compiled(program("g++"), tmp_path, "int f(int x) { return x; }\n", "-g")
    whole, debug, stripped = (tmp_path / name for name in ("whole", "dbg.so.debug", "dbg.so"))
    whole.write_bytes(compiled)
    objcopy = program("objcopy")
    subprocess.run([objcopy, "--only-keep-debug", whole, debug], check=True)
    shutil.copy(whole, stripped)
    subprocess.run([program("strip"), "-g", stripped], check=True)
    subprocess.run(
        [objcopy, "--add-gnu-debuglink=dbg.so.debug", "dbg.so"], check=True, cwd=tmp_path
    )
    files = {f"a/{path.name}": path.read_bytes() for path in (stripped, debug)}
    listed = {"a/dbg.so": files["a/dbg.so"]}
    found = inspected(files, listed=listed)
    code, split = found.files()["a/dbg.so"], found.files()["a/dbg.so.debug"]
    assert (code["kind"], code["debug_link"]) == ("library", "dbg.so.debug")
    assert (split["kind"], split["problem"]) == ("debug", None)
    assert split["compilers"] == code["compilers"] != []
    nothing = (split["needed"], split["soname"], split["glibc"], split["unversioned"])
    assert nothing == ([], None, None, [])
    (unlisted,) = found.findings("record-unlisted")
    assert unlisted["where"].endswith("a/dbg.so.debug")


def test_copies_and_extensions_of_an_abi3_wheel(inspected: Inspect) -> None:
    """As sgl-kernel 0.3.10."""
    flash = code_library("sm_80", "sm_86", "sm_90a")
    common = code_library("sm_80", "sm_90a", "sm_100a")
    proxy = elf(
        texts={"SONAME": ["mscclpp.so.0"]}, sections={".nv_fatbin": container(entry(80, 17))}
    )
    files = {
        "k/flash_ops.abi3.so": flash,
        "k/common_ops.abi3.so": common,
        "k/_mscclpp.cpython-310-x86_64-linux-gnu.so": elf(texts=LIBC),
        **{f"lib/mscclpp.so{end}": proxy for end in ("", ".0", ".0.6.0")},
    }
    found = inspected(files, "gpu=b200", tag="cp310-abi3-manylinux2014_x86_64")
    lacking = {one["where"]: one["what"] for one in found.findings("no-gpu-code")}
    assert "partly: 1 of 3 libraries have code for it" in lacking["k/flash_ops.abi3.so"]
    assert len(lacking) == 2  # the three equal copies are one library
    (other,) = found.findings("not-abi3")
    assert other["where"] == "k/_mscclpp.cpython-310-x86_64-linux-gnu.so"


def test_absolute_and_leaked_library_paths(inspected: Inspect) -> None:
    """As bitsandbytes 0.43.1 and dpctl 0.18.3."""
    leaked = f"/build/{'_placehold' * 3}/lib:/../..:/../../.."
    files = {
        "a/runpath.so": elf(texts={"RUNPATH": ["/usr/local/cuda/lib64"]}),
        "a/rpath.so": elf(texts={"RPATH": [leaked]}),
        "a/fine.so": elf(texts={"RUNPATH": ["$ORIGIN/../lib:${ORIGIN}"]}),
    }
    found = inspected(files)
    told = {one["where"]: one["what"] for one in found.findings("library-path-outside")}
    assert told["a/runpath.so"] == ("RUNPATH leads out of the environment: /usr/local/cuda/lib64")
    assert told["a/rpath.so"].startswith("RPATH leads out of the environment: /build/_placehold")
    assert told["a/rpath.so"].endswith("/lib, /../.., /../../..")
    assert set(told) == {"a/runpath.so", "a/rpath.so"}
    rows = found.files()
    assert rows["a/runpath.so"]["runpath"] == ["/usr/local/cuda/lib64"]
    assert (rows["a/rpath.so"]["runpath"], len(rows["a/rpath.so"]["rpath"])) == ([], 3)


def test_renamed_libraries_of_another_libc(inspected: Inspect) -> None:
    """As numpy 2.2.6 for musl: names with one hash, with two, and one library twice."""
    musl = {"NEEDED": ["libc.musl-x86_64.so.1"]}
    comment = {".comment": b"GCC: (Alpine 13.2.1_git20240309) 13.2.1 20240309\0"}
    names = (
        "libgfortran-a63d0bbe-fe50215f.so.5.0.0", "libgcc_s-0cd532bd.so.1",
        "libgcc_s-1e52349c.so.1",
    )  # fmt: skip
    vendored = {
        f"a.libs/{name}": elf(texts={**musl, "SONAME": [name]}, sections=comment) for name in names
    }
    found = inspected(vendored, "glibc=2.36", tag="cp311-cp311-musllinux_1_2_x86_64")
    assert found.data["glibc"] is None
    assert [one["libc"] for one in found.data["files"]] == ["musl"] * 3
    plain = [one["plain_name"] for one in found.data["files"]]
    assert plain == ["a.libs/libgcc_s.so.1"] * 2 + ["a.libs/libgfortran.so.5.0.0"]
    assert found.exit_code == 1
    (refused,) = found.findings("other-libc")
    assert "musl" in refused["what"]


def test_a_bundled_library_of_the_driver(inspected: Inspect) -> None:
    library = elf(texts={"SONAME": ["libcuda-5e6f7a8b.so.1"]})
    found = inspected({"a.libs/libcuda-5e6f7a8b.so.1": library})
    (told,) = found.findings("driver-library-bundled")
    assert told["severity"] == "error"


def test_where_each_library_comes_from(inspected: Inspect) -> None:
    texts = {
        "NEEDED": ["libb-01234567.so.1", "libtorch.so", "libcuda.so.1", "libc.so.6"],
        "RUNPATH": ["$ORIGIN/../a.libs:$ORIGIN/../torch/lib"],
    }
    files = {"a/x.so": elf(texts=texts), "a.libs/libb-01234567.so.1": elf(texts=LIBC)}
    links = {one["name"]: one for one in inspected(files).files()["a/x.so"]["links"]}
    places = {name: link["place"] for name, link in links.items()}
    assert places == {
        "libb-01234567.so.1": "inside",
        "libtorch.so": "environment",
        "libcuda.so.1": "driver",
        "libc.so.6": "host",
    }
    assert links["libb-01234567.so.1"]["path"] == "a.libs/libb-01234567.so.1"
    lost = inspected(elf(texts={"NEEDED": ["libnone.so"]})).file()["links"]
    assert lost == [{"name": "libnone.so", "place": "nowhere", "path": None}]


def test_marks_of_the_loader(inspected: Inspect) -> None:
    found = inspected(elf(stack_flags=7, textrel=True))
    file = found.file()
    assert (file["executable_stack"], file["text_relocations"]) == (True, True)
    assert found.findings("executable-stack")
    assert found.findings("text-relocations")
    small = inspected(elf(machine=183, alignment=4096), tag="py3-none-manylinux_2_17_aarch64")
    assert (small.file()["machine"], small.file()["alignment"]) == ("aarch64", 4096)
    assert small.findings("small-pages")
    large = inspected(elf(machine=183, alignment=65536), tag="py3-none-manylinux_2_17_aarch64")
    assert not large.findings("small-pages")


def test_a_runtime_that_is_part_of_the_library_or_not(inspected: Inspect) -> None:
    code = {".nv_fatbin": container(entry(80, 0x11))}
    register = Symbol(name="__cudaRegisterFatBinary")
    told = {
        path: file["cudart"]
        for path, file in inspected(
            {
                "a/static.so": elf(sections=code),
                "a/shared.so": elf(sections=code, texts={"NEEDED": ["libcudart.so.12"]}),
                "a/other.so": elf(sections=code, symbols=[register]),
                "a/none.so": elf(texts=LIBC),
            }
        )
        .files()
        .items()
    }
    assert told == {
        "a/static.so": "static",
        "a/shared.so": "shared",
        "a/other.so": "shared",
        "a/none.so": None,
    }


def test_a_variant_that_declares_code_which_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = b'{"variants": {"cu130": {"nvidia": {"sm_arch": ["90_real", "100_virtual"]}}}}'
    path = tmp_path / "a-1-cp311-cp311-manylinux_2_28_x86_64-cu130.whl"
    files = {"a/k.so": code_library("sm_90"), "a-1.dist-info/variant.json": declared}
    path.write_bytes(packed_wheel(files, tag="cp311-cp311-manylinux_2_28_x86_64"))
    assert envbuild("inspect", f"{path}", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["package"]["variant"] == "cu130"
    assert told["package"]["properties"] == [
        {"namespace": "nvidia", "feature": "sm_arch", "values": ["90_real", "100_virtual"]}
    ]
    (found,) = (one for one in told["findings"] if one["code"] == "variant-contradicted")
    assert "declares compute_100, and holds sm_90" in found["what"]
