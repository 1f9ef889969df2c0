"""`envbuild inspect` on real files: made by gcc and nvcc, packed as wheels and conda packages."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from integration.locking import envbuild
from integration.packages import File, make_package

from envbuild.native.inspect import inspect

KERNEL = """\
__global__ void kernel(float *x) { x[0] = sinf(x[1]); }
extern "C" void go(float *x) { kernel<<<1, 1>>>(x); }
"""


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}")
    return found


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Compile a library with a name, a needed library and a search path."""
    (tmp_path / "a.c").write_text("#include <math.h>\ndouble a(double x) { return pow(x, 2.5); }\n")
    made = tmp_path / "liba.so.1"
    argv = [tool("gcc"), "-shared", "-fPIC", "-Wl,-soname,liba.so.1", "-Wl,--no-as-needed"]
    argv += ["-Wl,-rpath,$ORIGIN/../lib:/opt/x", f"{tmp_path / 'a.c'}", "-lm", "-o", f"{made}"]
    subprocess.run(argv, check=True)
    return made


def printed(capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401
    return json.loads(capsys.readouterr().out)


def test_a_library_in_each_thing_that_it_comes_in(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "prefix"
    (folder / "lib").mkdir(parents=True)
    shutil.copy(library, folder / "lib")
    os.link(folder / "lib/liba.so.1", folder / "lib/twice.so")
    (folder / "lib/liba.so").symlink_to("liba.so.1")
    (folder / "readme.txt").write_text("no binary")
    wheel = tmp_path / "a-1-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(library, "a/liba.so.1")
        archive.writestr("a/__init__.py", "")
    files = {"lib/liba.so.1": File(content=library.read_bytes()), "readme.txt": File()}
    conda = make_package(tmp_path, "a", content=files).archive
    older = make_package(tmp_path, "a", content=files, kind="tar.bz2").archive
    found = []
    for path, others in ((library, 0), (folder, 1), (wheel, 1), (conda, 1), (older, 1)):
        assert envbuild("inspect", f"{path}", "--json") == 0
        told = printed(capsys)
        (one,) = told["files"]
        assert told["other_files"] == others
        assert (one["kind"], one["soname"], one["libc"]) == ("library", "liba.so.1", "glibc")
        assert (one["problem"], one["gpu_code"]) == (None, [])
        assert "libm.so.6" in one["needed"]
        assert one["rpath"] + one["runpath"] == ["$ORIGIN/../lib", "/opt/x"]
        assert [text.split()[0] for text in one["compilers"]] == ["GCC"]
        assert (one["sha256"] is None) == (path in (library, folder))
        found.append({**one, "path": "", "plain_name": "", "sha256": None})
    assert found == [found[0]] * 5


def test_code_for_cards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nvcc = tool("nvcc")
    (tmp_path / "k.cu").write_text(KERNEL)
    made = tmp_path / "k.so"
    argv = [nvcc, "-shared", "-Xcompiler", "-fPIC", "-cudart", "none", f"{tmp_path / 'k.cu'}"]
    for arch, code in (("80", "sm_80"), ("90a", "sm_90a"), ("100f", "sm_100f")):
        argv += ["-gencode", f"arch=compute_{arch},code={code}"]
    subprocess.run([*argv, "-o", f"{made}"], check=True)
    (facts,) = inspect(made).files
    assert sorted(map(str, facts.codes)) == ["sm_100f", "sm_80", "sm_90a"]
    assert envbuild("inspect", f"{made}", "--gpu", "9.0", "--gpu", "10.3", "--gpu", "8.9") == 0
    capsys.readouterr()
    assert envbuild("inspect", f"{made}", "--gpu", "12.0") == 1
    assert "12.0: k.so: NO CODE" in capsys.readouterr().out


def test_split_debug_files_are_no_code(library: Path, tmp_path: Path) -> None:
    debug = tmp_path / "liba.debug"
    subprocess.run([tool("objcopy"), "--only-keep-debug", library, debug], check=True)
    (facts,) = inspect(debug).files
    assert (facts.kind, facts.needed, facts.problem) == ("debug", (), None)
    assert facts.compilers


def test_without_a_comment_the_compiler_is_unknown(library: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.so"
    subprocess.run([tool("objcopy"), "-R", ".comment", "--strip-all", library, bare], check=True)
    (facts,) = inspect(bare).files
    assert (facts.compilers, facts.soname, facts.libc) == ((), "liba.so.1", "glibc")


def test_a_libstdcxx_without_a_version_table_hides_the_floor(tmp_path: Path) -> None:
    """Nothing says a version: linked to a libstdc++ of no versions, which the loader allows."""
    (tmp_path / "lib").mkdir()
    source = '#include <sstream>\nextern "C" int f() { std::ostringstream s; return s.good(); }\n'
    (tmp_path / "f.cc").write_text(source)
    start = [tool("g++"), "-O0", "-shared", "-fPIC", "-nodefaultlibs"]
    stub = ["-x", "c++", "/dev/null", "-Wl,-soname,libstdc++.so.6", "-o", "lib/libstdc++.so.6"]
    subprocess.run([*start, *stub], check=True, cwd=tmp_path)
    linked = ["f.cc", "-Wl,--no-as-needed", "lib/libstdc++.so.6", "-o", "f.so"]
    subprocess.run([*start, *linked], check=True, cwd=tmp_path)
    facts = inspect(tmp_path / "f.so")
    (file,) = facts.files
    assert (file.needed, file.glibcxx) == (("libstdc++.so.6",), None)
    assert facts.glibcxx == (3, 4, 26)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.whl", b"PK\x03\x04 and then nothing"),
        ("a.conda", b""),
        ("a.tar.bz2", b"BZh9 but not really"),
        ("a.so", b"no ELF file"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    assert envbuild("inspect", f"{tmp_path / name}") == 3
    told = capsys.readouterr().err.strip()
    assert told.startswith("error: ")
    assert name in told
    assert len(told.splitlines()) <= 2


def test_the_folder_that_one_is_in_has_a_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert envbuild("inspect", ".") == 0
    assert capsys.readouterr().out == f"{tmp_path.name}: 0 binaries, 0 other files\n"


def test_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert envbuild("inspect", f"{tmp_path / 'none.whl'}") == 3
    assert "none.whl: No such file or directory" in capsys.readouterr().err
    assert envbuild("inspect", f"{tmp_path}", "--gpu", "hopper") == 2


@pytest.mark.network
@pytest.mark.slow
def test_a_real_wheel_is_told_library_by_library(tmp_path: Path) -> None:
    """bitsandbytes 0.43.1: one library for each CUDA, LZ4-compressed code and PTX in each."""
    argv = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", f"{tmp_path}"]
    argv += ["--only-binary", ":all:", "bitsandbytes==0.43.1"]
    subprocess.run(argv, check=True)
    files = {file.path.rpartition("/")[2]: file for file in inspect(next(tmp_path.iterdir())).files}
    old = {"sm_50", "sm_52", "sm_60", "sm_61", "sm_70", "sm_75", "sm_80", "sm_86"}
    expected = {
        "libbitsandbytes_cuda117.so": {*old, "compute_86"},
        "libbitsandbytes_cuda118.so": {*old, "sm_89", "compute_89"},
        "libbitsandbytes_cuda124.so": {*old, "sm_89", "sm_90", "compute_90"},
        "libbitsandbytes_cpu.so": set(),
    }
    for name, codes in expected.items():
        assert set(map(str, files[name].codes)) == codes, name
    assert "libcudart.so.11.0" in files["libbitsandbytes_cuda117.so"].needed
    assert "libcudart.so.12" in files["libbitsandbytes_cuda124.so"].needed
    assert files["libbitsandbytes_cuda124.so"].runpath == ("/usr/local/cuda/lib64",)
