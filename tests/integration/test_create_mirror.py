"""A create from a lock behind a mirror: every wheel comes from there, and hashes still count."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from integration.index_server import Index, IndexServer, serving
from integration.locking import Locker, locker, wheels

RECIPE = """\
name: onhost
target: {platforms: [linux-64, linux-aarch64]}
python: ">=3.11,<3.15"
channels: [host]
pypi: [app]
smoke: {imports: [app, leaf]}
"""
Told = Callable[[IndexServer, Path], dict[str, str]]
NOWHERE = "http://127.0.0.1:9"
"""A proxy that answers nobody: what is not on the loopback cannot be reached through it."""


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locker]:
    """Lock against an index that is gone before anything is created."""
    with locker(tmp_path_factory.mktemp("locked")) as project:
        name = project.write(RECIPE)
        done = envbuild(project.root, "lock", name, variables=project.variables())
        assert done.returncode == 0, done.stderr
        yield project


@pytest.fixture
def mirror() -> Iterator[IndexServer]:
    with serving(company=wheels()) as server:
        yield server


def envbuild(
    folder: Path, *words: str, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command line in a folder, with nothing of our own environment but PATH."""
    return subprocess.run(
        [sys.executable, "-m", "envbuild", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def behind(project: Locker, folder: Path) -> dict[str, str]:
    """Return the variables of a host that reaches the loopback only, its store empty."""
    shared = project.root / "host-python"
    shared.mkdir(exist_ok=True)
    cache = folder / "store/cache"
    cache.mkdir(parents=True)
    (cache / "host").symlink_to(shared)  # the Python is packed once
    return {
        "ENVBUILD_STORE": f"{folder / 'store'}",
        "ENVBUILD_COMPILE": "0",
        "HOME": f"{folder / 'home'}",
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), NOWHERE),
        "NO_PROXY": "127.0.0.1",
    }


def by_variable(mirror: IndexServer, _home: Path) -> dict[str, str]:
    return {"UV_DEFAULT_INDEX": mirror.url("company")}


def by_uv_file(mirror: IndexServer, home: Path) -> dict[str, str]:
    file = home / ".config/uv/uv.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'[[index]]\nurl = "{mirror.url("company")}"\ndefault = true\n')
    return {}


@pytest.mark.parametrize("told", [by_variable, by_uv_file])
def test_a_frozen_create_uses_the_configured_mirror(
    locked: Locker, mirror: IndexServer, tmp_path: Path, told: Told
) -> None:
    variables = behind(locked, tmp_path)
    variables |= told(mirror, tmp_path / "home")
    asked_before = len(locked.server.log)
    done = envbuild(locked.root, "create", "--frozen", "onhost", variables=variables)
    assert done.returncode == 0, done.stderr
    files = {path.rpartition("/")[2] for path in mirror.asked("/company/files/")}
    assert {name for name in files if name.endswith(".whl")} == {
        "app-2-py3-none-any.whl",
        "leaf-2-py3-none-any.whl",
    }
    assert len(locked.server.log) == asked_before
    done = envbuild(locked.root, "verify", "onhost", variables=variables)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("told", [by_variable, by_uv_file])
def test_hashes_are_checked_behind_the_mirror(
    locked: Locker, mirror: IndexServer, tmp_path: Path, told: Told
) -> None:
    variables = behind(locked, tmp_path)
    variables |= told(mirror, tmp_path / "home")
    company = mirror.indexes["company"]
    assert isinstance(company, Index)
    mirror.indexes["company"] = replace(company, spoilt={"leaf-2-py3-none-any.whl"})
    done = envbuild(locked.root, "create", "--frozen", "onhost", variables=variables)
    assert done.returncode == 8, done.stderr
    assert "leaf" in done.stderr
    assert not (tmp_path / "store/envs/onhost/current").exists()


def test_without_a_mirror_nothing_is_reached(locked: Locker, tmp_path: Path) -> None:
    done = envbuild(locked.root, "create", "--frozen", "onhost", variables=behind(locked, tmp_path))
    assert done.returncode == 8, done.stderr
    assert not (tmp_path / "store/envs/onhost/current").exists()
