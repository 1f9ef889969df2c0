"""`envbuild lock` as it is typed: exit codes, what is printed, what is written."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.index_server import wheel
from integration.locking import HOST, SMALL, Locker, envbuild, locker

from envbuild.lock import files


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locker]:
    with locker(tmp_path_factory.mktemp("served")) as made:
        yield made


@pytest.fixture
def project(served: Locker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Locker:
    """Return a project folder, which is also the current one, with the servers' caches."""
    for name in [name for name in os.environ if name.startswith(("ENVBUILD_", "UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    for name, value in served.variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return Locker(root=tmp_path, channels=served.channels, server=served.server, index=served.index)


def printed(capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401
    return json.loads(capsys.readouterr().out)


def test_lock_then_unchanged_then_check(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(SMALL)
    assert envbuild("lock", name) == 0
    assert "small: locked, linux-64: " in capsys.readouterr().out
    before = project.files(name)
    assert sorted(before) == ["conda-lock.yml", "requirements.linux-64.txt"]
    times = [path.stat().st_mtime_ns for path in (project.root / "lockfiles/small").iterdir()]
    assert envbuild("lock", name) == 0
    assert capsys.readouterr().out == "small: unchanged, nothing was written\n"
    assert project.files(name) == before
    after = [path.stat().st_mtime_ns for path in (project.root / "lockfiles/small").iterdir()]
    assert after == times
    for option in ("--check", "--locked", "--frozen"):
        assert envbuild("lock", name, option) == 0


def test_a_stale_lock_is_named_by_line(project: Locker, capsys: pytest.CaptureFixture[str]) -> None:
    name = project.write(SMALL)
    assert envbuild("lock", name) == 0
    project.write(SMALL.replace("- libzlib", "- libzlib >=99"))
    asked = len(project.channels.log), len(project.server.log)
    capsys.readouterr()
    for option in ("--check", "--locked"):
        assert envbuild("lock", name, option) == 1
        seen = capsys.readouterr()
        assert "recipes/small.yaml:5:5: `libzlib >=99` is not met" in seen.out
        assert "lock small" in seen.err
    assert envbuild("lock", name, "--frozen") == 0
    assert envbuild("lock", name, "--check", "--json") == 1
    capsys.readouterr()
    assert (len(project.channels.log), len(project.server.log)) == asked


def test_check_as_json(project: Locker, capsys: pytest.CaptureFixture[str]) -> None:
    name = project.write(HOST)
    assert envbuild("lock", name, "--json") == 0
    made = printed(capsys)
    assert made["version"] == 1
    (row,) = made["locks"]
    assert (row["changed"], row["written"], row["findings"]) == (True, True, [])
    assert row["folder"] == "lockfiles/onhost"
    assert {change["change"] for change in row["changes"]["packages"]} == {"added"}
    project.write(HOST.replace("3.15", "3.14"))
    assert envbuild("lock", name, "--check", "--json") == 1
    (row,) = printed(capsys)["locks"]
    assert row["answers"] is False
    assert [finding["code"] for finding in row["findings"]] == ["lock-python"]


def test_dry_run_shows_and_writes_nothing(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(HOST)
    assert envbuild("lock", name, "--dry-run") == 0
    assert "+ app 2" in capsys.readouterr().out
    assert not (project.root / "lockfiles").exists()
    assert envbuild("lock", name, "--exclude-newer", "2026-01-01") == 0
    before = project.files(name)
    capsys.readouterr()
    assert envbuild("lock", name, "--upgrade", "--dry-run") == 0
    seen = capsys.readouterr().out
    assert "onhost: would be locked" in seen
    assert "pypi, linux-64 and linux-aarch64:\n  ~ app 1 -> 2\n  ~ leaf 1 -> 2\n" in seen
    assert project.files(name) == before


def test_no_solution_leaves_the_old_lock(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(SMALL)
    assert envbuild("lock", name) == 0
    before = project.files(name)
    for wish in ("- libzlib >=99", "- libzlib\n  - python_abi 3.12.*"):
        project.write(SMALL.replace("- libzlib", wish))
        capsys.readouterr()
        assert envbuild("lock", name) == 4
        assert "recipes/small.yaml:5:5: libzlib" in capsys.readouterr().err
    project.write(SMALL.replace("- app", "- app >=3"))
    assert envbuild("lock", name) == 4
    assert project.files(name) == before


def test_a_lock_says_how_much_is_fetched(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(SMALL)
    assert envbuild("lock", name) == 0
    folder = project.root / "lockfiles" / name
    (half,) = files.read(folder).platforms
    size = half.download_bytes
    assert size is not None
    assert size > sum(len(one.data) for one in project.index.wheels if "-2-" in one.filename)
    text = (folder / "conda-lock.yml").read_text()
    assert f'    download.linux-64: "{size}"\n' in text
    capsys.readouterr()
    assert envbuild("doctor", name) in {0, 1}
    (row,) = (one for one in capsys.readouterr().out.splitlines() if one.startswith("disk "))
    assert "lock: its archives, before unpacking" in row
    older = text.replace(f'    download.linux-64: "{size}"\n', "")
    (folder / "conda-lock.yml").write_text(older)
    assert files.read(folder).platforms[0].download_bytes is None
    assert envbuild("lock", name) == 0
    assert (folder / "conda-lock.yml").read_text() == older
    capsys.readouterr()
    assert envbuild("doctor", name) in {0, 1}
    assert "the lock has no sizes" in capsys.readouterr().out
    (folder / "conda-lock.yml").write_text(text.replace(f'"{size}"', '"much"'))
    assert envbuild("lock", "--check", name) == 3
    assert "expected a number of bytes" in capsys.readouterr().err


def test_findings_that_are_errors_write_nothing(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    project.index.wheels.append(wheel("nvidia-cudnn-cu12", "9.1"))
    name = project.write(SMALL)
    assert envbuild("lock", name) == 0
    before = project.files(name)
    both = SMALL.replace("- libzlib", "- cudnn").replace("- app", "- app\n  - nvidia-cudnn-cu12")
    both += "target: {cuda: '12.9'}\n"
    project.write(both)
    capsys.readouterr()
    assert envbuild("lock", name) == 1
    seen = capsys.readouterr()
    assert "small is not locked: what is known speaks against it" in seen.err
    assert "[cuda-from-both]" in seen.err
    assert seen.out == ""
    assert project.files(name) == before
    assert envbuild("lock", name, "--dry-run") == 1
    project.write(both + "allow: [{code: cuda-from-both, reason: tried, until: 2999-01-01}]\n")
    assert envbuild("lock", name) == 0
    assert project.files(name) != before


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--locked", "--frozen"], "cannot be used together"),
        (["--check", "--frozen"], "cannot be used together"),
        (["--check", "--upgrade"], "has no meaning where nothing is solved"),
        (["--locked", "-P", "app"], "has no meaning where nothing is solved"),
        (["--frozen", "--exclude-newer", "14d"], "has no meaning where nothing is solved"),
        (["--all"], "name the recipes to lock, or give --all"),
        (["--exclude-newer", "soon"], "--exclude-newer: expected"),
        (["-P", "app"], "there is no lock"),
    ],
)
def test_usage(
    project: Locker, words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert envbuild("lock", project.write(HOST), *words) == 2
    assert text in capsys.readouterr().err


def test_neither_names_nor_all(project: Locker, capsys: pytest.CaptureFixture[str]) -> None:
    assert envbuild("lock") == 2
    assert envbuild("lock", "--all") == 2
    assert "there is no recipe in recipes" in capsys.readouterr().err
    assert envbuild("lock", "unheard-of") == 3
    assert project.root.exists()


def test_all_recipes_of_the_project(project: Locker, capsys: pytest.CaptureFixture[str]) -> None:
    project.write(SMALL)
    project.write(HOST)
    assert envbuild("lock", "--all") == 0
    seen = capsys.readouterr().out
    assert "onhost: locked" in seen
    assert "small: locked" in seen
    assert "quickstart" not in seen
    assert envbuild("lock", "--all", "--check") == 0


def test_one_recipe_that_cannot_be_answered_stops_no_other(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write(HOST)
    project.write(SMALL.replace("small", "bad").replace("- libzlib", "- libzlib >=99"))
    project.write(SMALL.replace("small", "worse") + "colour: red\n")
    assert envbuild("lock", "worse", "bad", "onhost") == 4
    seen = capsys.readouterr()
    assert "onhost: locked" in seen.out
    assert "worse.yaml:8" in seen.err
    assert "recipes/bad.yaml:5:5: libzlib" in seen.err
    assert envbuild("lock", "--all", "--check") == 3
    seen = capsys.readouterr()
    assert "onhost: the lock in lockfiles/onhost answers the recipe" in seen.out
    assert "there is no lock of bad" in seen.err
    assert envbuild("lock", "--all", "--check", "--json") == 3
    rows = printed(capsys)["locks"]
    assert [row["name"] for row in rows] == ["bad", "onhost", "worse"]
    assert [row.get("error", {}).get("exit_code") for row in rows] == [3, None, 3]


@pytest.mark.parametrize("option", ["--check", "--locked", "--frozen"])
def test_there_is_no_lock_to_check(
    project: Locker, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert envbuild("lock", project.write(HOST), option) == 3
    assert "there is no lock of onhost (looked in lockfiles" in capsys.readouterr().err


def test_a_shipped_lock_is_not_that_of_an_own_recipe(project: Locker) -> None:
    project.write(HOST.replace("onhost", "quickstart"))
    assert envbuild("lock", "quickstart", "--check") == 3


def test_locks_elsewhere(project: Locker, monkeypatch: pytest.MonkeyPatch) -> None:
    name = project.write(HOST)
    assert envbuild("lock", name, "--locks", "elsewhere") == 0
    assert (project.root / "elsewhere/onhost/conda-lock.yml").is_file()
    assert envbuild("lock", name, "--check") == 3
    monkeypatch.setenv("ENVBUILD_LOCKFILES", "elsewhere")
    assert envbuild("lock", name, "--check") == 0


def test_an_unchanged_lock_that_lies_elsewhere_is_written_here(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(HOST)
    assert envbuild("lock", name) == 0
    capsys.readouterr()
    assert envbuild("lock", name, "--locks", "here", "--dry-run") == 0
    assert capsys.readouterr().out == "onhost: unchanged, nothing was written\n"
    assert envbuild("lock", name, "--locks", "here") == 0
    assert capsys.readouterr().out == "onhost: unchanged, written to here/onhost\n"
    here = {path.name: path.read_bytes() for path in (project.root / "here/onhost").iterdir()}
    assert here == project.files(name)


def test_a_damaged_lock(project: Locker, capsys: pytest.CaptureFixture[str]) -> None:
    name = project.write(HOST)
    assert envbuild("lock", name) == 0
    file = project.root / "lockfiles/onhost/conda-lock.yml"
    whole = file.read_text()
    file.write_text(whole.replace("package:", "<<<<<<< HEAD\npackage:"))
    for words in ((), ("--check",), ("--frozen",), ("--dry-run",)):
        capsys.readouterr()
        assert envbuild("lock", name, *words) == 3
        seen = capsys.readouterr().err
        assert "lockfiles/onhost/conda-lock.yml:" in seen
        assert "a conflict marker of git" in seen
        assert "Traceback" not in seen
    assert envbuild("lock", name, "--upgrade") == 0
    assert envbuild("lock", name, "--check") == 0
    requirements = file.with_name("requirements.linux-64.txt")
    requirements.write_text(requirements.read_text().replace("app==2", "app==3"))
    assert envbuild("lock", name, "--check") == 3
    assert "requirements.linux-64.txt: its lines are not" in capsys.readouterr().err


def test_a_lock_made_with_the_flag_is_not_stale(project: Locker) -> None:
    name = project.write(SMALL + "cutoff: 2026-11-30\n")
    assert envbuild("lock", name, "--exclude-newer", "2026-01-15T00:00:00+09:00") == 0
    assert b'cutoff: "2026-01-14T15:00:00Z"' in project.files(name)["conda-lock.yml"]
    assert envbuild("lock", name, "--check") == 0


def test_offline(project: Locker, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name = project.write(HOST)
    assert envbuild("lock", name) == 0
    assert envbuild("lock", name, "--offline") == 0
    empty = ["--store", str(tmp_path / "empty")]
    capsys.readouterr()
    assert envbuild("lock", name, "--offline", *empty) == 8
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
def test_every_dry_run_has_the_same_code(project: Locker) -> None:
    name = project.write(SMALL)
    codes = [envbuild("lock", name, "--dry-run", "-q") for _ in range(20)]
    assert codes == [0] * 20
