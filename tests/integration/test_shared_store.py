"""A store that a group shares: two of its users create, roll back and collect in it."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.locking import HOST, locker
from integration.users import ANNA, BERT, GROUP, ROOT, Users, users

pytestmark = pytest.mark.slow
_RECIPE = HOST.replace("onhost", "site") + "smoke: {imports: [app]}\n"


@pytest.fixture
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
    with locker(tmp_path_factory.mktemp("served")) as served:
        told = served.variables()
        with users(UV_DEFAULT_INDEX=told["UV_DEFAULT_INDEX"]) as found:
            (found.folder / "recipes/site.yaml").write_text(_RECIPE)
            (found.folder / "shared").mkdir()
            os.chown(found.folder / "shared", ANNA, ANNA)
            (found.folder / "lockfiles").mkdir()
            (found.folder / "lockfiles").chmod(0o777)
            yield found


def _store(made: Users) -> Path:
    return made.folder / "shared/store"


def _run(made: Users, user: int, *words: str, code: int = 0) -> str:
    done = made.envbuild(user, *words, umask=0o077, ENVBUILD_STORE=str(_store(made)))
    assert done.code == code, done.err
    return done.out + done.err


def _generations(made: Users) -> list[Path]:
    return sorted((_store(made) / "envs/site/generations").iterdir())


def test_two_users_of_a_group(made: Users) -> None:
    _run(made, ANNA, "store", "share", str(GROUP))
    assert "site: generation" in _run(made, ANNA, "create", "site")
    assert "generation" in _run(made, BERT, "create", "site", "--reinstall")
    first, second = _generations(made)
    assert [path.stat().st_uid for path in (first, second)] == [ANNA, BERT]
    for user in (ANNA, BERT):
        _run(made, user, "run", "site", "--", "python", "-c", "import app")
        assert "are as they were installed" in _run(made, user, "verify", "site")
    assert f"-> {first.name}" in _run(made, BERT, "rollback", "site")
    assert f"-> {second.name}" in _run(made, ANNA, "switch", "site", second.name)
    told = _run(made, BERT, "gc", "site", "--keep", "0", "-y")
    assert f"made by user {ANNA}, who may remove it" in told
    assert _generations(made) == [first, second]
    _run(made, BERT, "remove", "site", "-y", code=6)
    _run(made, ANNA, "gc", "site", "--keep", "0", "-y")
    assert _generations(made) == [second]
    _run(made, ANNA, "create", "site")
    entries = json.loads(_run(made, ANNA, "history", "--json"))["journal"]
    assert [entry["what"] for entry in entries] == [
        "share", "create", "create", "rollback", "switch", "gc",
    ]  # fmt: skip
    _run(made, ROOT, "remove", "site", "-y")


def test_what_others_may_change_and_what_not(made: Users) -> None:
    _run(made, ANNA, "store", "share", str(GROUP))
    _run(made, ANNA, "create", "site")
    store = _store(made)
    (generation,) = _generations(made)
    for path in (store, store / "envs", store / "envs/site", generation.parent, store / "cache"):
        status = path.stat()
        assert (stat.S_IMODE(status.st_mode), status.st_gid) == (0o2775, GROUP), path
    for path in (store / "envs/site/lock", store / "journal.jsonl", store / "ledger.sqlite"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o664, path
    for folder, _, names in os.walk(generation):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            assert path.is_symlink() or not path.stat().st_mode & 0o022, path


def test_a_store_that_was_ones_own_is_shared_later(made: Users) -> None:
    _run(made, ANNA, "create", "site")
    before = (_store(made) / "cache").stat().st_mode
    _run(made, BERT, "create", "site", "--reinstall", code=6)
    _run(made, ANNA, "store", "share", str(GROUP))
    assert before != (_store(made) / "cache").stat().st_mode
    _run(made, BERT, "create", "site", "--reinstall")
    _run(made, ANNA, "create", "site", "--reinstall", "--offline")
    assert len(_generations(made)) == 3


def test_what_a_killed_build_of_another_left_is_in_nobodys_way(made: Users) -> None:
    _run(made, ANNA, "store", "share", str(GROUP))
    _run(made, ANNA, "create", "site")
    (generation,) = _generations(made)
    (generation / ".envbuild/manifest.json").unlink()
    _run(made, BERT, "create", "site")
    assert [path.name for path in _generations(made)] == [generation.name, f"{generation.name}-2"]
    assert "incomplete, made by" in _run(made, BERT, "gc", "-y")
    _run(made, ANNA, "gc", "-y")
    assert [path.name for path in _generations(made)] == [f"{generation.name}-2"]


def test_a_group_that_is_none_or_not_yours(made: Users) -> None:
    assert "there is no group 'nobodys'" in _run(made, ANNA, "store", "share", "nobodys", code=2)
    assert "cannot be given to the group 1" in _run(made, ANNA, "store", "share", "1", code=7)
    _run(made, ANNA, "store", "share", str(GROUP))
    assert "cannot be given" in _run(made, BERT, "store", "share", str(GROUP), code=7)
