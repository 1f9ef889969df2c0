"""SIGTERM, SIGHUP and Ctrl-C in the middle of commands: one line, and nothing half done stays.

Each signal is sent before a call that changes a file; `ENVBUILD_KILLS=all` tries more of them.
"""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration import kills, tracing
from integration.kills import LOCKS, NAME

_LINES = {
    signal.SIGTERM: "ended by SIGTERM\n",
    signal.SIGHUP: "ended by SIGHUP\n",
    signal.SIGINT: "interrupted\n",
}
_CUTOFF = re.compile(rb"cutoff: .*")
_COUNT = 100 if os.environ.get("ENVBUILD_KILLS") == "all" else 4


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kills.Arena]:
    if (reason := tracing.missing()) is not None:
        pytest.skip(reason)
    with kills.arena(tmp_path_factory.mktemp("signals")) as made:
        yield made


def _signalled(arena: kills.Arena, words: tuple[str, ...], state: str) -> Iterator[str]:
    """Yield where each signal came, evenly spread, once the command has ended after it."""
    arena.restore(state)
    whole = arena.traced((*words, "--quiet"))
    assert whole.status == 0, whole.err
    tries = min(_COUNT, len(whole.calls))
    for count in range(tries):
        number = list(_LINES)[count % len(_LINES)]
        at = (2 * count + 1) * len(whole.calls) // (2 * tries)
        arena.restore(state)
        ended = arena.traced((*words, "--quiet"), at=at, number=number)
        where = f"{number.name} at call {at} of {len(whole.calls)}, {ended.signalled_at}"
        assert (ended.status, ended.err) == (128 + number, _LINES[number]), where
        assert ended.orphans == (), where
        yield where


@pytest.mark.slow
@pytest.mark.parametrize("name", kills.CASES)
def test_a_signal_leaves_the_old_or_the_new_and_nothing_else(arena: kills.Arena, name: str) -> None:
    case = kills.case_of(arena, name)
    problems: list[str] = []
    for where in _signalled(arena, case.words, case.state):
        version = arena.version()
        wrong = [*kills.state(arena, version, case.after), *kills.usable(arena, version)]
        if name == "remove" and version is None:  # it goes on where it was
            code, out, err = arena.run(*case.words)
            wrong += [] if code in case.codes else [f"again, it ends with {code}: {out}{err}"]
        if case.state != "3":  # which has leftovers of its own
            wrong += kills.left(arena, version)
        problems += [f"{where}: {one}" for one in wrong]
    assert problems == []


@pytest.mark.slow
def test_a_signal_leaves_the_old_or_the_new_lock(arena: kills.Arena) -> None:
    words = ("lock", NAME, "--recipes", "v2", "--locks", LOCKS)
    old, new = (_content(arena.root / folder / NAME) for folder in ("v1", "v2"))
    for where in _signalled(arena, words, "1"):
        found = _content(arena.root / LOCKS / NAME)
        assert found.keys() == old.keys(), where
        wanted = [(found[path] == old[path], found[path] == new[path]) for path in found]
        assert all(one for one, _ in wanted) or all(one for _, one in wanted), where
        assert [*kills.state(arena, "1", {"1"}), *kills.left(arena, "1")] == [], where


def _content(folder: Path) -> dict[str, bytes]:
    """Return the files of a lock, but when it was solved."""
    texts = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    return {name: _CUTOFF.sub(b"", text) for name, text in texts.items()}
