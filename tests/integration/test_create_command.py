"""`envbuild create` as it is typed: exit codes, what is printed, when there is nothing to do."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.locking import Locker, envbuild, locker

from envbuild.store import noop
from envbuild.store.layout import Generation, Place

ENVBUILD = (sys.executable, "-m", "envbuild")

HOST = """\
name: onhost
target: {platforms: [linux-64, linux-aarch64]}
python: ">=3.11,<3.15"
channels: [host]
pypi: [app]
smoke: {imports: [app]}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locker]:
    with locker(tmp_path_factory.mktemp("served")) as made:
        yield made


@pytest.fixture
def project(served: Locker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Locker:
    for name in [name for name in os.environ if name.startswith(("ENVBUILD_", "UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    for name, value in served.variables().items():
        monkeypatch.setenv(name, value)
    (tmp_path / "store").mkdir()
    (served.root / "cache").mkdir(exist_ok=True)
    (tmp_path / "store/cache").symlink_to(served.root / "cache")  # the Python is packed once
    monkeypatch.setenv("ENVBUILD_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("ENVBUILD_COMPILE", "0")
    monkeypatch.chdir(tmp_path)
    return Locker(root=tmp_path, channels=served.channels, server=served.server, index=served.index)


def printed(capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401
    return json.loads(capsys.readouterr().out)


def test_from_a_recipe_to_a_command_that_runs(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(HOST)
    assert envbuild("create", name) == 0
    told = capsys.readouterr()
    assert "onhost: generation" in told.out
    assert "nothing ->" in told.out
    assert "run onhost -- python" in told.err
    assert "conda-lock.yml" in project.files(name)
    assert (project.root / "home").exists() is False
    assert envbuild("create", name) == 0
    assert capsys.readouterr().out.startswith("onhost is up to date (")
    assert envbuild("verify", name) == 0
    done = subprocess.run(
        [*ENVBUILD, "run", name, "--", "python", "-c", "import app"],
        check=False,
        env={**os.environ},
    )
    assert done.returncode == 0


def test_json_says_what_was_built_and_what_is_current(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(HOST)
    assert envbuild("create", name, "--json", "--no-switch") == 0
    first = printed(capsys)
    assert (first["version"], first["built"], first["current"]) == (1, True, False)
    assert envbuild("create", name, "--json") == 0
    second = printed(capsys)
    assert (second["built"], second["current"]) == (False, True)
    assert second["generation"] == first["generation"]
    assert envbuild("create", name, "--json") == 0
    third = printed(capsys)
    assert third == {**second, "from": first["generation"], "seconds": 0.0}


def test_what_another_process_takes_away_meanwhile_is_created(
    project: Locker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = project.write(HOST)
    assert envbuild("create", name) == 0
    capsys.readouterr()
    look = noop.unchanged

    def looked(place: Place, **asked: Any) -> Generation | None:  # noqa: ANN401
        found = look(place, **asked)
        assert found is not None
        assert subprocess.run([*ENVBUILD, "remove", name, "-y"], check=False).returncode == 0
        return found

    monkeypatch.setattr(noop, "unchanged", looked)
    assert envbuild("create", name, "--json") == 0
    assert printed(capsys)["built"] is True


@pytest.mark.parametrize("option", ["--locked", "--frozen"])
def test_without_a_lock_locked_and_frozen_make_none(
    project: Locker, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    name = project.write(HOST)
    assert envbuild("create", name, option) == 3
    assert f"has no lock, and {option}" in capsys.readouterr().err
    assert not (project.root / "lockfiles").exists()


def test_locked_and_frozen_together_are_a_usage_error(project: Locker) -> None:
    assert envbuild("create", project.write(HOST), "--locked", "--frozen") == 2


def test_a_stale_lock_is_refused_and_frozen_takes_it(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(HOST)
    assert envbuild("lock", name) == 0
    project.write(HOST.replace("pypi: [app]", "pypi: [app, leaf >5]"))
    capsys.readouterr()
    for option in ((), ("--locked",)):
        assert envbuild("create", name, *option) == 1
        told = capsys.readouterr().err
        assert "does not answer its recipe" in told
        assert "onhost.yaml:5" in told
    for _ in ("built", "was there already"):
        assert envbuild("create", name, "--frozen") == 0
        told = capsys.readouterr().err
        assert "lock-not-checked" in told
        assert "checking that the lock answers" not in told
    assert envbuild("create", name) == 1


def test_frozen_forgets_nothing_of_what_was_checked(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(HOST)
    assert envbuild("create", name) == 0
    assert envbuild("create", name, "--frozen") == 0
    capsys.readouterr()
    assert envbuild("create", name) == 0
    told = capsys.readouterr()
    assert "up to date" in told.out
    assert envbuild("info", name) == 0
    assert "lock-not-checked" not in capsys.readouterr().out


def test_a_damaged_generation_is_made_again(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(HOST)
    assert envbuild("create", name) == 0
    current = project.root / "store/envs" / name / "current"
    first = current.readlink().name
    (current / ".envbuild/manifest.json").write_text("{")
    capsys.readouterr()
    assert envbuild("create", name) == 6
    assert f"envbuild create {name} --reinstall" in capsys.readouterr().err
    assert envbuild("create", name, "--reinstall") == 0
    assert current.readlink().name == f"{first}-2"


def test_a_recipe_called_as_one_that_ships_gets_a_lock_of_its_own(project: Locker) -> None:
    name = project.write(HOST.replace("onhost", "quickstart"))
    assert envbuild("create", name) == 0
    assert "app==2" in project.files(name)["requirements.linux-64.txt"].decode()


def test_what_is_no_matter_of_the_environment_makes_no_new_one(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(HOST)
    assert envbuild("create", name, "--json") == 0
    first = printed(capsys)
    project.write(HOST + "description: another\n")
    assert envbuild("create", name, "--json") == 0
    second = printed(capsys)
    assert (second["built"], second["generation"]) == (False, first["generation"])
    assert envbuild("create", name) == 0
    assert "up to date" in capsys.readouterr().out


def test_an_unknown_recipe_and_a_wrong_name(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.root.exists()
    assert envbuild("create", "nothing-like-it") == 3
    assert envbuild("create", "a b") == 2
    assert "nothing-like-it" in capsys.readouterr().err


def test_a_lock_for_other_platforms_names_them(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "linux-aarch64" if os.uname().machine == "x86_64" else "linux-64"
    name = project.write(HOST.replace("[linux-64, linux-aarch64]", f"[{other}]"))
    assert envbuild("create", name) == 3
    assert f"is for {other}, not for" in capsys.readouterr().err


def test_a_failed_smoke_test_is_exit_1_and_one_line(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(HOST.replace("[app]}", "[app, not_there]}"))
    assert envbuild("create", name) == 1
    told = capsys.readouterr().err
    assert "error: the smoke test failed: importing app, not_there ended with status 1" in told
    assert "hint: the whole output is in" in told


def test_a_python_that_is_none_is_a_host_error(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert envbuild("create", project.write(HOST), "--python", "/bin/sh") == 7
    assert "/bin/sh" in capsys.readouterr().err


def test_a_python_cannot_be_named_where_conda_brings_it(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write("name: conda-only\nchannels: [conda-forge]\nconda: [libzlib]\n")
    assert envbuild("create", name, "--python", sys.executable) == 2
    assert "--python: conda-only takes its Python from conda" in capsys.readouterr().err
    assert not (project.root / "store/envs").exists()


def test_sync_is_an_alias_and_compile_is_an_option(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(HOST)
    assert envbuild("sync", name, "--compile", "--quiet") == 0
    capsys.readouterr()
    assert envbuild("verify", name) == 0
    current = project.root / "store/envs" / name / "current"
    assert list(current.glob("lib/python3*/site-packages/__pycache__/app.*.pyc"))


def test_a_conda_recipe_is_read_once(project: Locker, capsys: pytest.CaptureFixture[str]) -> None:
    name = project.write("name: plain\nchannels: [conda-forge]\nconda: [libzlib]\n")
    assert envbuild("lock", name) == 0
    for _ in range(2):
        assert envbuild("create", name) == 8
        assert "libzlib" in capsys.readouterr().err
    orders = (project.root / "store/cache/orders").iterdir()
    assert sum('"plain"' in path.read_text() for path in orders) == 1


def test_a_generation_becomes_a_recipe_that_locks_the_same(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(HOST)
    assert envbuild("create", name) == 0
    prefix = project.root / "store/envs" / name / "current"
    assert envbuild("new", "again", "--from", str(prefix)) == 0
    assert envbuild("lock", "again") == 0
    assert "not-carried" not in capsys.readouterr().err
    before, after = (
        [line for line in text.decode().splitlines() if line and not line.startswith("#")]
        for text in (
            next(v for k, v in project.files(one).items() if k == "requirements.linux-64.txt")
            for one in (name, "again")
        )
    )
    assert [line for line in after if "==" in line] == [line for line in before if "==" in line]
