"""`envbuild check`, and what `lock` refuses before it solves."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
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
