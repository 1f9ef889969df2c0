"""`facts derive` and `facts verify` against an index on localhost, with libraries made by gcc."""

import io
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.faults import LOGIN_PAGE, Fault
from integration.index_server import BuiltWheel, Index, IndexServer, default_index, serving
from integration.locking import envbuild

from envbuild.access import Access
from envbuild.tools import uv

NAME = "torch-2.99.0-cp311-cp311-manylinux_2_28_x86_64.whl"
PINS = ("nvidia-cuda-runtime-cu12==12.8.90", "nvidia-cudnn-cu12==9.10.2.21", "triton==3.5.1")
PYTHON = 'const char *targets(void) { return "sm_80 sm_90 sm_120 compute_120"; }\n'
C10 = """\
#include <string>
namespace c10 { namespace detail {
void torchCheckFail(const char *, const char *, unsigned, std::string const &text) { (void)text; }
} }
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the members of a wheel of PyTorch's that are read."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    folder = tmp_path_factory.mktemp("libraries")
    for name, source in (("libtorch_python", PYTHON), ("libc10", C10)):
        suffix = "cpp" if source is C10 else "c"
        (folder / f"{name}.{suffix}").write_text(source)
        argv = ["gcc" if suffix == "c" else "g++", "-shared", "-fPIC", f"{name}.{suffix}"]
        subprocess.run([*argv, "-o", f"{name}.so"], cwd=folder, check=True)
    return {
        "torch/version.py": b"from typing import Optional\ncuda: Optional[str] = '12.8'\n",
        **{f"torch/lib/{path.name}": path.read_bytes() for path in folder.glob("*.so")},
    }


def built(
    filename: str, members: dict[str, bytes], *lines: str, requires: tuple[str, ...] = ()
) -> BuiltWheel:
    """Make a wheel of bytes."""
    name, version = filename.split("-")[:2]
    metadata = "\n".join(
        [
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}",
            "Requires-Python: >=3.10",
            *lines,
            *(f"Requires-Dist: {one}" for one in requires),
        ]
    )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
        archive.writestr(f"{name}-{version}.dist-info/METADATA", metadata)
    return BuiltWheel(filename=filename, data=content.getvalue(), metadata=metadata + "\n")


@pytest.fixture
def server(
    libraries: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[IndexServer]:
    other = built(NAME.replace("cp311-cp311", "cp313-cp313t"), {})
    index = Index(wheels=[built(NAME, libraries, requires=PINS), other])
    monkeypatch.setenv("HOME", f"{tmp_path}")
    monkeypatch.setenv("ENVBUILD_HTTP_TIMEOUT", "2")
    monkeypatch.setenv("ENVBUILD_HTTP_RETRIES", "1")
    with serving(main=index) as running:
        monkeypatch.setenv("UV_DEFAULT_INDEX", running.url("main"))
        yield running


def index_of(server: IndexServer) -> Index:
    index = server.indexes["main"]
    assert isinstance(index, Index)
    return index


def derived(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert envbuild("facts", "derive", *(words or ("pytorch==2.99.0",))) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    """Return the one line of a command that fails, with its hint."""
    assert envbuild("-q", "facts", *(words or ("derive", "pytorch==2.99.0"))) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: ")
    assert len(told.err.splitlines()) <= 2
    assert "s3cret" not in told.err
    return told.err


@pytest.mark.parametrize("kind", ["json", "html", "no sidecars", "no parts", "login"])
def test_a_release_is_read_and_verified(
    server: IndexServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    index = index_of(server)
    index.only_html = kind == "html"
    index.sidecars = kind != "no sidecars"
    index.ranges = kind != "no parts"
    if kind == "login":
        index.login = ("bob", "s3cret")
        monkeypatch.setenv("UV_DEFAULT_INDEX", server.url("main", login="bob:s3cret"))
    text = derived(capsys)
    for line in (
        'cuda = "12.8"',
        'cudnn = "9.10.2.21"',
        'triton = "3.5.1"',
        'pythons = ["3.11", "3.13t"]',
        'requires_python = ">=3.10"',
        'codes = ["sm_80", "sm_90", "sm_120", "compute_120"]',
        "cxx11_abi = true",
        'glibc = "2.28"',
        f'wheel = "{NAME}"',
        f'sha256 = "{index.wheels[0].sha256}"',
    ):
        assert line in text.splitlines()
    assert "not computed" in text
    assert "s3cret" not in text
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts/pytorch.toml").write_text(text)
    monkeypatch.setenv("ENVBUILD_FACTS", f"{tmp_path}/facts")
    assert envbuild("facts", "verify", "pytorch", "2.99.0", "--libraries") == 0
    assert "1 of 1 rows that PyPI has files for are as they were read" in capsys.readouterr().out
    changed = text.replace('"9.10.2.21"', '"9.9"').replace('"sm_80", ', "")
    (tmp_path / "facts/pytorch.toml").write_text(changed)
    assert envbuild("facts", "verify", "2.99.0") == 1
    told = capsys.readouterr().out
    assert "pytorch 2.99.0 pypi: cudnn: the table has 9.9, found 9.10.2.21" in told
    assert "not read of 1 rows without --libraries: codes, compiler, cxx11_abi, glibc" in told
    assert envbuild("facts", "verify", "2.99.0", "--libraries", "--json") == 1
    (row,) = json.loads(capsys.readouterr().out)["facts"]
    assert [each["column"] for each in row["differences"]] == ["cudnn", "codes"]


def test_a_build_that_is_gone(
    server: IndexServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts/pytorch.toml").write_text(derived(capsys))
    monkeypatch.setenv("ENVBUILD_FACTS", f"{tmp_path}/facts")
    del index_of(server).wheels[0]
    assert envbuild("facts", "verify", "2.99.0") == 1
    assert f"release: the table has {NAME}, found nothing" in capsys.readouterr().out


def test_jax_with_its_plugin(
    server: IndexServer, libraries: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    extras = "Provides-Extra: cuda12\nProvides-Extra: cuda13"
    jax = (
        'jax-cuda12-plugin[with-cuda]<=0.99.1,>=0.99.1; extra == "cuda12"',
        'jax-cuda13-plugin[with-cuda]==0.99.1; extra == "cuda13"',
    )
    own = (
        "jax-cuda12-pjrt==0.99.1",
        'nvidia-cudnn-cu12<10.0,>=9.8; extra == "with-cuda"',
        'nvidia-cuda-nvcc-cu12>=12.6.85; extra == "with-cuda"',
    )
    plugin = "jax_cuda12_plugin-0.99.1-cp312-cp312-manylinux_2_27_x86_64.whl"
    members = {"jax_cuda12_plugin/_prng.so": libraries["torch/lib/libc10.so"]}
    wheels = index_of(server).wheels
    wheels.append(built("jax-0.99.1-py3-none-any.whl", {}, extras, requires=jax))
    wheels.append(built(plugin, members, requires=own))
    wheels.append(built(plugin.replace("12_plugin", "13_plugin").replace("x86_64", "s390x"), {}))
    text = derived(capsys, "jax==0.99.1")
    assert text.count("[[build]]") == 1  # cuda13 has nothing that could be installed
    for line in (
        'origin = "cuda12"',
        'cuda_major = "12"',
        'cudnn = "<10.0,>=9.8"',
        'nvcc = ">=12.6.85"',
        'pythons = ["3.12"]',
        'glibc = "2.27"',
        f'wheel = "{plugin}"',
    ):
        assert line in text.splitlines()


def test_a_release_without_code_for_cuda(
    server: IndexServer, capsys: pytest.CaptureFixture[str]
) -> None:
    index_of(server).wheels.append(built("jax-0.99.2-py3-none-any.whl", {}))
    told = refused(capsys, 3, "derive", "jax==0.99.2")
    assert "PyPI has no build for CUDA on Linux of jax 0.99.2" in told


def test_json_says_what_was_fetched(
    server: IndexServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert envbuild("facts", "derive", "pytorch==2.98.1", "--json") == 3
    assert "2.99.0" in capsys.readouterr().out
    assert envbuild("facts", "derive", "pytorch==2.99", "--json") == 0
    (build,) = json.loads(capsys.readouterr().out)["builds"]
    assert (build["version"], build["uploaded"]) == ("2.99.0", "2024-01-01T00:00:00Z")
    assert 0 < build["fetched_bytes"] <= 4 * len(index_of(server).wheels[0].data)
    assert any("not computed" in source for source in build["sources"])


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["derive", "pytorch==9"], 3, "PyPI has no pytorch 9"),
        (["derive", "torch==2.9.1"], 2, "did you mean pytorch?"),
        (["derive", "pytorch"], 2, "is not FRAMEWORK==VERSION"),
        (["derive", "pytorch==new"], 2, "is not FRAMEWORK==VERSION"),
        (["derive", "pytorch==2.99.0", "jax==0.9.0"], 2, "holds the builds of one framework"),
        (["derive", "jax==0.9.0"], 8, "404 Not Found"),
        (["verify", "voodoo"], 2, "no fact has 'voodoo'"),
    ],
)
def test_what_cannot_be_read(
    server: IndexServer,  # noqa: ARG001 - the index that is asked
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    told: str,
) -> None:
    assert told in refused(capsys, code, *words)


def test_offline_nothing_is_asked(
    server: IndexServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENVBUILD_OFFLINE", "1")
    assert "cannot be done offline" in refused(capsys, 8)
    assert "cannot be done offline" in refused(capsys, 8, "verify", "2.9.1", "pypi")
    assert envbuild("facts", "verify", "gpu h100") == 0
    assert server.log == []


def test_where_nobody_names_an_index_it_is_that_of_uv_and_pip(tmp_path: Path) -> None:
    engine = uv.Engine(access=Access(), cache=tmp_path / "cache", python=Path(sys.executable))
    assert uv.default_index(engine).rstrip("/") == default_index().rstrip("/")


@pytest.mark.parametrize("place", ["page", "wheel"])
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault(body=LOGIN_PAGE), "page"),
        (Fault(status=403), "403 Forbidden"),
        (Fault(status=503), "503 Service Unavailable"),
        (Fault(cut=10), "the connection was closed"),
    ],
)
def test_faults_of_the_index_are_one_line(
    server: IndexServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
    fault: Fault,
    told: str,
) -> None:
    path = "/main/simple/torch/" if place == "page" else f"/main/files/{NAME}"
    index_of(server).faults[path] = fault
    monkeypatch.setenv("UV_DEFAULT_INDEX", server.url("main", login="bob:s3cret"))
    assert told in refused(capsys, 8)


def test_a_wheel_that_is_none(server: IndexServer, capsys: pytest.CaptureFixture[str]) -> None:
    wheels = index_of(server).wheels
    wheels[0] = BuiltWheel(filename=NAME, data=b"PK" * 5000, metadata=wheels[0].metadata)
    assert f"{NAME}: no zip file that can be read" in refused(capsys, 8)


def test_libraries_that_are_none(server: IndexServer, capsys: pytest.CaptureFixture[str]) -> None:
    """A row then says nothing of what they would have told."""
    members = {"torch/lib/libc10.so": b"\x7fELF and no more", "torch/version.py": b"cuda = None\n"}
    index_of(server).wheels[0] = built(NAME, members, requires=PINS)
    text = derived(capsys)
    assert 'glibc = "2.28"' in text
    for column in ("codes", "compiler", "cxx11_abi", "cuda "):
        assert f"\n{column}" not in text
