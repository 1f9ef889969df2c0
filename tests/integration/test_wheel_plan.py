"""`envbuild wheel plan` on wheels with real libraries: of a generation, of a cache, fetched."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.index_server import Index, wheel
from integration.locking import Locker, envbuild, locker

RECIPE = """\
name: built
target: {platforms: [linux-64]}
python: ">=3.11,<3.15"
channels: [host]
pypi: [core, ext, other]
build:
  compiler: gcc 12
  packages: {core: {}}
"""
TAG = "py3-none-linux_x86_64"
OLD = b"GCC: (GNU) 10.2.1 20210130 (Red Hat 10.2.1-11)\0GCC: (GNU) 4.8.5 20150623\0"
NEW = b"GCC: (GNU) 13.3.1 20240611 (Red Hat 13.3.1-2)\0GCC: (GNU) 4.8.5 20150623\0"


def library(folder: Path, name: str, comment: bytes, *needed: Path) -> bytes:
    """Return a library that says it was compiled by somebody else."""
    source, made, said = folder / "a.c", folder / name, folder / "comment"
    source.write_text(f"int {name.partition('.')[0]}(void) {{ return 1; }}\n")
    said.write_bytes(comment)
    libraries = ["-Wl,--no-as-needed", *(f"-l:{one.name}" for one in needed)]
    argv = ["gcc", "-shared", "-fPIC", f"{source}", f"-Wl,-soname,{name}", "-o", f"{made}"]
    subprocess.run([*argv, f"-L{folder}", *libraries], check=True)
    argv = ["objcopy", "--update-section", f".comment={said}", f"{made}"]
    subprocess.run(argv, check=True)
    return made.read_bytes()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    for program in ("gcc", "objcopy"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = tmp_path_factory.mktemp("libraries")
    core = library(folder, "libcore.so", OLD)
    ext = library(folder, "ext.so", NEW, folder / "libcore.so")
    other = library(folder, "other.so", OLD)
    return Index(
        wheels=[
            wheel("core", "1", tag=TAG, files={"core/libcore.so": core}),
            wheel("ext", "1", tag=TAG, files={"ext/ext.so": ext}, requires=["core"]),
            wheel("other", "1", tag=TAG, files={"other/other.so": other}),
        ]
    )


@pytest.fixture
def project(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locker]:
    with locker(tmp_path) as made:
        made.index.wheels[:] = index.wheels
        for name in [one for one in os.environ if one.startswith(("ENVBUILD_", "UV_", "PIP_"))]:
            monkeypatch.delenv(name)
        for name, value in made.variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("ENVBUILD_COMPILE", "0")
        monkeypatch.chdir(tmp_path)
        made.write(RECIPE)
        yield made


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:  # noqa: ANN401
    capsys.readouterr()
    assert envbuild("wheel", "plan", "built", "--json", *words) == code
    return json.loads(capsys.readouterr().out)


def where_read(plan: Any) -> dict[str, set[str]]:  # noqa: ANN401
    return {
        one["name"]: {each["read"] for why in one["why"] for each in why["evidence"]}
        for one in plan["rebuild"]
    }


@pytest.mark.slow
def test_from_a_lock_to_a_generation_and_back(
    project: Locker, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert envbuild("lock", "built") == 0
    locked = told(capsys, "--check")  # nothing is known, so nothing is said to need a rebuild
    assert locked["rebuild"] == []
    assert [one["name"] for one in locked["unknown"]] == ["core"]

    fetched = told(capsys, "--fetch", "--check", code=1)
    assert where_read(fetched) == {"core": {"fetched"}, "ext": {"fetched"}}
    core, ext = fetched["rebuild"]
    (why,) = core["why"]
    assert why["evidence"] == [
        {
            "where": "core/libcore.so",
            "what": ".comment: GCC 10.2.1, GCC 4.8.5",
            "read": "fetched",
        }
    ]
    assert ext["after"] == ["core"]
    assert [one["cause"] for one in ext["why"]] == ["links"]
    assert [one["name"] for one in fetched["spared"]] == ["other"]
    assert not (project.root / "store/envs/built/current").exists()

    assert where_read(told(capsys)) == {"core": {"cache"}, "ext": {"cache"}}

    assert envbuild("create", "built") == 0
    made = told(capsys)
    assert where_read(made) == {"core": {"generation"}, "ext": {"generation"}}
    assert [one["name"] for one in made["spared"]] == ["other"]
    assert envbuild("inspect", "built", "--json") == 0
    read = json.loads(capsys.readouterr().out)
    assert read["name"] == "built"
    assert {"libcore.so", "ext.so", "other.so"} <= {one["soname"] for one in read["files"]}

    project.write(RECIPE.replace("gcc 12", "gcc 10"))
    assert told(capsys, "--check")["rebuild"] == []
    project.write(RECIPE.replace("gcc 12", "gcc ==13.*"))
    assert [one["name"] for one in told(capsys)["rebuild"]] == ["core", "ext"]

    # the generation has core 1, which says nothing of core 2
    project.write(RECIPE)
    newer = library(tmp_path, "libcore.so", NEW)
    project.index.wheels.append(wheel("core", "2", tag=TAG, files={"core/libcore.so": newer}))
    assert envbuild("lock", "-U", "built") == 0
    plan = told(capsys)
    assert plan["rebuild"] == []
    assert [one["name"] for one in plan["unknown"]] == ["core"]
    assert told(capsys, "--fetch")["rebuild"] == []


@pytest.mark.usefixtures("project")
def test_without_a_lock(capsys: pytest.CaptureFixture[str]) -> None:
    assert envbuild("wheel", "plan", "built") == 3
    assert "hint: envbuild lock built" in capsys.readouterr().err


@pytest.mark.network
def test_the_demo_says_yes_with_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENVBUILD_STORE", f"{tmp_path}/store")
    assert envbuild("wheel", "plan", "rebuild-demo", "--fetch", "--check", "--json") == 1
    (kiwi,) = json.loads(capsys.readouterr().out)["rebuild"]
    assert [(one["cause"], one["evidence"][0]["what"]) for one in kiwi["why"]] == [
        ("compiler", ".comment: GCC 10.2.1"),
        ("string-abi", "string ABI: old"),
    ]
    assert kiwi["source"] == {
        "kind": "sdist",
        "name": "kiwisolver",
        "version": "1.4.9",
        "index": None,
    }
