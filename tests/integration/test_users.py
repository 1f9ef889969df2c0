"""Root builds, others run; what is whose is said; nobody changes what is not his."""

import json
from collections.abc import Iterator

import pytest
from integration.locking import HOST, locker
from integration.users import ANNA, BERT, ROOT, Users, users

pytestmark = pytest.mark.slow
_RECIPE = HOST.replace("onhost", "site") + "smoke: {imports: [app]}\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
    """What root made under a umask that closes everything."""
    with locker(tmp_path_factory.mktemp("served")) as served:
        told = served.variables()
        with users(UV_DEFAULT_INDEX=told["UV_DEFAULT_INDEX"]) as made:
            (made.folder / "recipes/site.yaml").write_text(_RECIPE)
            done = made.envbuild(ROOT, "create", "site", umask=0o077)
            assert done.code == 0, done.err
            (made.folder / "lockfiles").chmod(0o755)
            (made.folder / "lockfiles/site").chmod(0o755)
            yield made


def test_others_run_what_root_made(built: Users) -> None:
    words = ("run", "site", "--", "python", "-c", "import app, sys; print(sys.prefix)")
    done = built.envbuild(ANNA, *words, umask=0o077)
    assert done.code == 0, done.err
    assert done.out.startswith(f"{built.system_store}/envs/site/generations/")
    assert done.err == ""
    assert built.envbuild(ANNA, "activate", "site").code == 0
    assert built.envbuild(ANNA, "shell", "site").code == 0


@pytest.mark.parametrize("command", ["status", "verify", "history", "list"])
def test_looking_works_and_says_whose_it_is(built: Users, command: str) -> None:
    done = built.envbuild(ANNA, command, "site")
    assert done.code == 0, done.err
    assert f"site is in the system's store, {built.system_store}" in done.err
    assert not (built.home(ANNA) / ".local").exists()


def test_lists_have_the_store(built: Users) -> None:
    done = built.envbuild(ANNA, "list", "--json")
    (row,) = json.loads(done.out)["environments"]
    assert (row["name"], row["store"]) == ("site", str(built.system_store))
    assert "STORE" in built.envbuild(ANNA, "list").out
    assert "STORE" not in built.envbuild(ROOT, "list").out
    told = json.loads(built.envbuild(ANNA, "info", "site", "--json").out)
    assert told["store"] == str(built.system_store)


@pytest.mark.parametrize(
    "words",
    [
        ("rollback", "site"),
        ("switch", "site", "1"),
        ("pin", "site", "1"),
        ("unpin", "site", "1"),
        ("gc", "site", "-y"),
        ("remove", "site", "-y"),
        ("verify", "site", "--repair"),
    ],
    ids=lambda words: words[0],
)
def test_changing_what_is_not_yours_is_refused(built: Users, words: tuple[str, ...]) -> None:
    done = built.envbuild(ANNA, *words)
    assert done.code == 6
    assert f"site is not yours: it is in the system's store, {built.system_store}" in done.err
    assert f"hint: sudo envbuild {words[0]}" in done.err
    assert built.envbuild(ROOT, "history", "site", "--json").code == 0


def test_a_store_that_is_named_stands_alone(built: Users) -> None:
    done = built.envbuild(ANNA, "run", "site", "--", "true", ENVBUILD_STORE="/nowhere")
    assert done.code == 125
    assert "no environment 'site' in /nowhere\n" in done.err
    done = built.envbuild(ANNA, "run", "nothing", "--", "true")
    own = built.home(ANNA) / ".local/share/envbuild"
    assert f"no environment 'nothing' in {own} or {built.system_store}" in done.err


def test_a_system_store_of_a_later_envbuild_is_in_nobodys_way(built: Users) -> None:
    newer = built.folder / "newer"
    newer.mkdir()
    (newer / "format.json").write_text('{"format": 99}')
    assert built.envbuild(ANNA, "list", ENVBUILD_SYSTEM_STORE=str(newer)).code == 0
    assert built.envbuild(ROOT, "list", ENVBUILD_SYSTEM_STORE=str(newer)).code == 6


def test_ones_own_comes_first(built: Users) -> None:
    done = built.envbuild(BERT, "create", "site")
    assert done.code == 0, done.err
    own = built.home(BERT) / ".local/share/envbuild"
    done = built.envbuild(
        BERT, "run", "site", "--", "python", "-c", "import sys; print(sys.prefix)"
    )
    assert done.out.startswith(f"{own}/envs/site/generations/"), done.err
    assert "STORE" not in built.envbuild(BERT, "list").out
    assert built.envbuild(BERT, "remove", "site", "-y").code == 0
    assert built.envbuild(BERT, "run", "site", "--", "true").code == 0
