"""kill -9 at every call that changes a file: nothing breaks, no lock is lost, nobody is left.

`ENVBUILD_KILLS=all` kills at all of them (the nox session `kills`), else at a tenth, which
`ENVBUILD_KILLS_SEED` chooses: by default another one each day.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest
from integration import kills, tracing

_PARTS = 1 if os.environ.get("ENVBUILD_KILLS") == "all" else 10
_SEED = int(os.environ.get("ENVBUILD_KILLS_SEED") or time.time() // 86400)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kills.Arena]:
    if (reason := tracing.missing()) is not None:
        pytest.skip(reason)
    with kills.arena(tmp_path_factory.mktemp("kills")) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("name", kills.CASES)
def test_killed_anywhere_nothing_is_broken(
    arena: kills.Arena, name: str, record_property: Callable[[str, object], None]
) -> None:
    tally = kills.kill(arena, kills.case_of(arena, name), part=_SEED % _PARTS, of=_PARTS)
    record_property("kills", f"{tally}")
    print(f"ENVBUILD_KILLS_SEED={_SEED}\n{name}: {tally}")  # noqa: T201 - shown where it fails
    assert tally.problems == []
    assert tally.by_name.total() > 0


@pytest.mark.slow
def test_where_create_is_killed_nobody_goes_on_compiling(arena: kills.Arena) -> None:
    arena.restore("0")
    words = kills.many(arena)
    for at in (0, 100, 199):  # of the writes, an opening and a rename for each of 200 sources
        arena.restore("0")
        ended = arena.traced(words, at=3 * at, path=".pyc")
        assert (ended.status, ended.orphans) == (-signal.SIGKILL, ())
        assert ended.signalled_at is not None
        assert not ended.signalled_at.by_parent
        assert arena.run(*words)[0] == 0
        assert arena.run("verify", "many")[0] == 0
