"""`envbuild check`, and what `lock` refuses before it solves."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.index_server import Index, serving, wheel
from integration.locking import Locker, envbuild, locker

B200 = """\
name: train
target: {platforms: [linux-64], gpus: [b200], driver: ">=570.26"}
python: "3.11"
channels: [conda-forge]
pypi:
  - torch ==2.4.0
"""
ALLOWED = """\
allow:
  - code: no-gpu-code
    reason: only the processor is used
    until: 2099-12-31
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locker]:
    with locker(tmp_path) as made:
        for name, value in made.variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        yield made


@pytest.mark.parametrize("recipe", ["quickstart", "h100-pt24", "h100-pt24-wheel", "a100-jax0428"])
def test_what_ships_is_fine(recipe: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert envbuild("check", recipe) == 0
    assert f"{recipe}: fine, its lock answers it" in capsys.readouterr().out


def test_a_wheel_without_code_is_refused_before_any_download(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(B200)
    assert envbuild("check", name) == 1
    told = capsys.readouterr().out
    assert "no code for 10.0" in told
    assert "train: not fine" in told
    assert envbuild("lock", name) == 1
    assert "train is not locked: what is known speaks against it" in capsys.readouterr().err
    assert envbuild("create", name) == 1
    assert "no code for 10.0" in capsys.readouterr().err
    assert project.server.log == []
    assert not (project.root / "lockfiles").exists()


def test_a_recipe_lets_it_through(project: Locker, capsys: pytest.CaptureFixture[str]) -> None:
    project.write(B200 + ALLOWED)
    assert envbuild("check", "recipes/train.yaml", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["recipes"]
    assert (row["name"], row["fine"], row["locked"]) == ("train", True, False)
    assert [one["severity"] for one in row["findings"]] == ["note"]


def test_an_unknown_recipe_and_a_broken_one(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert envbuild("check", "nothing") == 3
    name = project.write(B200.replace("python:", "pyhton:"))
    assert envbuild("check", name) == 3
    assert "train.yaml:3:1" in capsys.readouterr().err


def test_what_was_let_through_is_an_error_again_after_its_day(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(B200 + ALLOWED.replace("2099-12-31", "2026-11-30"))
    assert envbuild("check", name, "--json") == 1
    (row,) = json.loads(capsys.readouterr().out)["recipes"]
    assert {one["code"]: one["severity"] for one in row["findings"]} == {
        "no-gpu-code": "error",
        "allow-expired": "warning",
    }


TORCH = Index(wheels=[wheel("torch", "2.4.0")])


def test_one_run_lets_it_through(
    project: Locker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(B200)
    allow = ("--allow", "no-gpu-code")
    assert envbuild("check", name, *allow) == 0
    assert "let through until" in capsys.readouterr().out
    assert envbuild("check", name) == 1
    with serving(main=TORCH) as server:
        monkeypatch.setenv("UV_DEFAULT_INDEX", server.url("main"))
        assert envbuild("lock", name) == 1
        assert envbuild("lock", name, *allow) == 0
    assert envbuild("create", name) == 1
    assert "no code for 10.0" in capsys.readouterr().err
    assert envbuild("create", name, "--offline", *allow) != 1  # goes on to what it cannot fetch
    assert "no code for 10.0" not in capsys.readouterr().err
    assert envbuild("create", name) == 1


def test_a_code_that_there_is_not(project: Locker, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("check", "lock", "create"):
        assert envbuild(command, project.write(B200), "--allow", "no-gpu-cod") == 2
        assert "did you mean 'no-gpu-code'?" in capsys.readouterr().err
