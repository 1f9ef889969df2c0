"""`switch`, `rollback`, `gc`, `remove` and their like as real, also concurrent, commands."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import generations as made
import pytest

from envbuild.store import history, present
from envbuild.store.layout import Generation, Place

_SCRIPT = str(Path(sys.executable).with_name("envbuild"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = made.place_in(tmp_path)
    for identifier in (made.FIRST, made.SECOND, made.THIRD):
        made.make_current(made.make(place, identifier))
    return place


def _start(place: Place, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [_SCRIPT, *words],
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(place.store.root.parent),
            "ENVBUILD_STORE": str(place.store.root),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _envbuild(place: Place, *words: str) -> tuple[int, str, str]:
    process = _start(place, *words)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def _json(place: Place, *words: str, code: int = 0) -> dict[str, Any]:
    status, out, err = _envbuild(place, *words, "--json")
    assert status == code, err
    data: dict[str, Any] = json.loads(out)
    assert data["version"] == 1
    return data


@pytest.fixture
def running(place: Place) -> Iterator[Generation]:
    """Yield a generation from which a process runs."""
    process = subprocess.Popen(
        [_SCRIPT, "run", "--generation", made.FIRST, "demo", "--", "sh", "-c", "echo on; read x"],
        env={"PATH": "/usr/bin:/bin", "ENVBUILD_STORE": str(place.store.root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "on\n"
    yield place.generation(made.FIRST)
    process.communicate("\n", timeout=20)


def test_switches_at_the_same_time_lose_no_line(place: Place) -> None:
    wanted = [made.FIRST, made.SECOND, made.THIRD] * 4
    processes = [_start(place, "switch", "demo", identifier) for identifier in wanted]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    moves = history.read(place)
    assert [move.origin for move in moves[1:]] == [move.to for move in moves[:-1]]
    here = present.current(place)
    assert here is not None
    assert here.identifier == moves[-1].to
    assert all(move.origin != move.to for move in moves)


def test_switch_rollback_and_history_tell_what_they_did(place: Place) -> None:
    assert _json(place, "switch", "demo", "1") == {
        "version": 1,
        "name": "demo",
        "from": made.THIRD,
        "to": made.FIRST,
        "moved": True,
    }
    assert _envbuild(place, "switch", "demo", "1")[:2] == (
        0,
        f"demo: {made.FIRST} is current already\n",
    )
    assert _envbuild(place, "rollback", "demo")[1] == f"demo: {made.FIRST} -> {made.THIRD}\n"
    rows = _json(place, "history", "demo")["history"]
    assert [row["what"] for row in rows] == ["create"] * 3 + ["switch", "rollback"]
    assert rows[-1]["number"] == 5
    table = _envbuild(place, "history", "demo")[1].splitlines()
    assert table[0].split() == ["NUMBER", "WHEN", "WHO", "WHAT", "FROM", "TO"]
    assert len(table) == 6


def test_gc_spares_what_runs(place: Place, running: Generation) -> None:
    planned = _json(place, "gc", "--keep", "0", "--dry-run")
    (demo,) = planned["environments"]
    assert demo["removed"] == [made.SECOND]
    assert planned["freed_bytes"] > 0
    assert demo["bytes"].keys() == {made.SECOND}
    assert 0 < demo["bytes"][made.SECOND] <= planned["freed_bytes"]
    assert len(present.generations(place)) == 3
    code, out, _ = _envbuild(place, "gc", "demo", "--keep", "0", "-y")
    assert code == 0
    assert "used by" in out
    assert running in present.generations(place)
    assert place.generation(made.SECOND) not in present.generations(place)
    assert _envbuild(place, "gc")[0] == 0


def test_remove_waits_for_nothing_that_runs(place: Place, running: Generation) -> None:
    code, _, err = _envbuild(place, "remove", "demo", "-y")
    assert code == 1
    assert f"{running.identifier} is used by" in err


def test_without_a_terminal_nothing_is_removed_unasked(place: Place) -> None:
    for words in (("remove", "demo"), ("gc", "--keep", "0")):
        code, _, err = _envbuild(place, *words)
        assert code == 2
        assert "--yes" in err
    assert len(present.generations(place)) == 3


def test_remove_removes(place: Place) -> None:
    done = _json(place, "remove", "demo", "-y")
    assert sorted(done["removed"]) == [made.FIRST, made.SECOND, made.THIRD]
    assert _json(place, "list")["environments"] == []
    assert _envbuild(place, "remove", "demo", "-y")[0] == 3


def test_pin_and_unpin(place: Place) -> None:
    assert _envbuild(place, "pin", "demo", "1")[1] == f"demo: {made.FIRST} is pinned\n"
    (demo,) = _json(place, "gc", "--keep", "0", "-n")["environments"]
    assert {"generation": made.FIRST, "reason": "pinned"} in demo["kept"]
    assert _envbuild(place, "unpin", "demo", "1")[0] == 0
    (demo,) = _json(place, "gc", "--keep", "0", "-n")["environments"]
    assert made.FIRST in demo["removed"]


def test_verify_answers_with_its_exit_code(place: Place) -> None:
    code, out, _ = _envbuild(place, "verify", "demo")
    assert code == 0
    assert "as they were installed" in out
    (place.generation(made.THIRD).prefix / made.SOURCE).write_text("x = 2\n")
    (finding,) = _json(place, "verify", "demo", code=1)["findings"]
    assert (finding["code"], finding["where"]) == ("file-changed", made.SOURCE)
    code, out, err = _envbuild(place, "verify", "demo")
    assert code == 1
    assert "[file-changed]" in out
    assert "envbuild verify demo --repair" in err
    assert _envbuild(place, "verify", "demo", "--generation", made.FIRST)[0] == 0


def test_a_damaged_manifest_is_one_line(place: Place) -> None:
    place.generation(made.THIRD).manifest.write_text("{")
    for words in (("verify", "demo"), ("info", "demo"), ("list", "demo")):
        code, _, err = _envbuild(place, *words)
        assert code == 6
        assert err.startswith("error: ")
        assert len(err.splitlines()) == 2
    assert _envbuild(place, "list")[0] == 0


def test_list_and_info(place: Place) -> None:
    (demo,) = _json(place, "list")["environments"]
    assert (demo["name"], demo["current"], demo["generations"]) == ("demo", made.THIRD, 3)
    packages = _json(place, "list", "demo")["packages"]
    assert [(each["name"], each["version"]) for each in packages] == [
        ("hello", "1.2"),
        ("pkg", "2.0"),
    ]
    about = _json(place, "info", "demo")
    assert about["packages"] == {"conda": 1, "pypi": 1}
    assert about["channels"] == ["https://conda.anaconda.org/conda-forge"]
    assert len(about["generations"]) == 3
    assert _json(place, "info")["store"] == str(place.store.root)
    for words in (("list",), ("list", "demo"), ("info",), ("info", "demo")):
        code, out, err = _envbuild(place, *words)
        assert (code, err) == (0, "")
        assert out
