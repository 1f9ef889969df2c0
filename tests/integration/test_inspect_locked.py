"""`envbuild inspect NAME` without an environment: the packages of a lock, fetched by hash."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz.made import elf
from integration.index_server import BuiltWheel, Index, serving, wheel
from integration.locking import Locker, envbuild, locker
from integration.packages import File, make_package

from envbuild.access import Access
from envbuild.lock.model import PlatformLock
from envbuild.packages import PipPackage
from envbuild.pipeline import inspecting
from envbuild.progress import Quiet

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


def test_packages_of_both_halves_are_read(tmp_path: Path) -> None:
    library = File(content=elf(texts={"SONAME": ["libconda.so.1"]}))
    made = make_package(tmp_path / "channel", "a", content={"lib/libconda.so.1": library})
    wheels = [built("core", "cp312", machine) for machine in MACHINES]
    with serving(main=Index(wheels=wheels)) as server:
        half = PlatformLock(
            platform="linux-64",
            conda=(made.package((tmp_path / "channel").as_uri()),),
            pip=(PipPackage(name="core", version="1", hashes=(wheels[0].sha256,)),),
        )
        conda, wheel = inspecting.locked(
            half,
            inspecting.For(platform="linux-64", python=(3, 12)),
            (),
            cache=tmp_path / "cache",
            access=Access(default_index=server.url("main")),
            progress=Quiet(),
        )
    assert (conda.name, wheel.name) == ("a-1.0-0.conda", wheels[0].filename)
    read = [file.soname for facts in (conda, wheel) for file in facts.files]
    assert read == ["libconda.so.1", "cp312-x86_64"]


def test_a_requirement_of_an_unknown_package(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.root.is_dir()
    assert envbuild("inspect", "Nobody_s ==1") == 4
    assert "error: the index has no package nobody-s" in capsys.readouterr().err
