"""kill -9 at every call that changes a file: nothing breaks, no lock is lost, nobody is left.

`ENVBUILD_KILLS=all` kills at all of them (the nox session `kills`), else at a tenth, which
`ENVBUILD_KILLS_SEED` chooses: by default another one each day.
"""

import os
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
