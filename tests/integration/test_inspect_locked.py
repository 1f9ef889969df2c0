"""`envbuild inspect NAME` without an environment: the packages of a lock, fetched by hash."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz.made import elf
from integration.index_server import BuiltWheel, Index, wheel
from integration.locking import Locker, envbuild, locker

RECIPE = """\
name: built
target: {platforms: [linux-64, linux-aarch64]}
python: ">=3.11,<3.15"
channels: [host]
pypi: [core, "only ; platform_machine == 'aarch64'"]
"""
MACHINES = {"x86_64": 62, "aarch64": 183}


def built(name: str, python: str, machine: str) -> BuiltWheel:
    made = elf(machine=MACHINES[machine], texts={"SONAME": [f"{python}-{machine}"]})
    tag = f"{python}-{python}-manylinux_2_17_{machine}"
    return wheel(name, "1", tag=tag, files={f"{name}/lib.so": made})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locker]:
    pythons = ("cp311", "cp312", "cp313", "cp314")
    every = [built("core", python, machine) for machine in MACHINES for python in pythons]
    more = [built("only", python, "aarch64") for python in pythons]
    with locker(tmp_path) as made:
        made.index.wheels[:] = Index(wheels=[*reversed(every), *more]).wheels
        for name in [one for one in os.environ if one.startswith(("ENVBUILD_", "UV_", "PIP_"))]:
            monkeypatch.delenv(name)
        for name, value in made.variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        made.write(RECIPE)
        yield made


def read(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    capsys.readouterr()
    assert envbuild("inspect", "built", "--json", *words) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    packages = told.get("packages", [told])
    return [file["soname"] for package in packages for file in package["files"]]


def test_wheels_are_those_of_the_platform_and_python(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lock for the machine's own Python has the hashes of wheels for each."""
    assert project.root.is_dir()
    assert envbuild("lock", "built") == 0
    for_both = read(capsys, "--platform", "linux-aarch64", "--python", "3.13")
    assert for_both == ["cp313-aarch64"] * 2
    assert read(capsys, "--platform", "linux-64", "--python", "3.12") == ["cp312-x86_64"]
    (own,) = read(capsys, "--platform", "linux-64")
    assert own.endswith("-x86_64")
    words = ("--platform", "linux-64", "--python", "3.9")
    assert envbuild("inspect", "built", *words) == 4
    assert "for Python 3.9 on linux-64" in capsys.readouterr().err


def test_a_requirement_of_an_unknown_package(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.root.is_dir()
    assert envbuild("inspect", "Nobody_s ==1") == 4
    assert "error: the index has no package nobody-s" in capsys.readouterr().err
