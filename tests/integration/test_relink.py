"""A store that was moved says so before anything is imported, and is relinked where it lies."""

import hashlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from integration.creating import NOW, PLACEHOLDER, WHO, Creator, damage, order
from integration.packages import File, Made, make_package, program

from envbuild.cli.main import main
from envbuild.progress import Quiet
from envbuild.store import collect, history, present, relink, use
from envbuild.store.create import Created
from envbuild.store.layout import Generation, Place, Store
from envbuild.store.prefixes import Exchange
from envbuild.store.relink import Relinked
from envbuild.tools import files

HELLO = f"#!/bin/sh\necho hello from {PLACEHOLDER}\n"


@pytest.fixture
def creator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Creator:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ENVBUILD_STORE", str(tmp_path / "moved"))
    return Creator(root=tmp_path / "store", home=tmp_path / "home")


@pytest.fixture
def tools(tmp_path: Path) -> Made:
    return make_package(
        tmp_path / "channel",
        "tools",
        content={
            "bin/hello": program(HELLO, placeholder=PLACEHOLDER),
            "bin/python-tool": program(f"#!{PLACEHOLDER}/bin/python\n", placeholder=PLACEHOLDER),
            "lib/tools.bin": File(
                content=b"\0\1" + PLACEHOLDER.encode() + b"/lib:" + PLACEHOLDER.encode() + b"/x\0e",
                placeholder=PLACEHOLDER,
                file_mode="binary",
            ),
            "share/tools.txt": File(content=b"tools\n"),
            "share/link": File(content=b"tools.txt", link=True),
            "etc/conda/activate.d/tools.sh": File(content=b'export TOOLS="$CONDA_PREFIX/share"\n'),
        },
    )


def move(creator: Creator, name: str = "moved") -> Place:
    """Rename the store, and return the place of the environment in it."""
    creator.root = creator.root.rename(creator.root.with_name(name))
    return creator.place


def relinked(creator: Creator, *, dry_run: bool = False) -> tuple[Relinked, ...]:
    home = creator.root.parent / "home"
    return relink.relink(
        creator.place, home=home, progress=Quiet(), who=WHO, now=NOW, dry_run=dry_run
    )


def in_place(place: Place, created: Created) -> Generation:
    return place.generation(created.generation.identifier)


def printed(capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["m", "moved", "a folder of some length and with an ümlaut in it"])
def test_every_file_that_holds_the_path_gets_the_new_one(
    creator: Creator, tools: Made, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    created = creator.create(order([tools]))
    old = f"{created.generation.prefix}".encode()
    size = (created.generation.prefix / "lib/tools.bin").stat().st_size
    place = move(creator, name)
    assert [one.findings for one in relinked(creator)] == [()]
    generation = in_place(place, created)
    prefix = generation.prefix
    assert damage(Created(**{**_fields(created), "generation": generation})) == []
    whole = [path.read_bytes() for path in prefix.rglob("*") if path.is_file()]
    assert not any(old in content for content in whole)
    binary = (prefix / "lib/tools.bin").read_bytes()
    assert binary.startswith(b"\0\1" + f"{prefix}/lib:{prefix}/x\0".encode())
    assert (len(binary), binary[-1:]) == (size, b"e")
    activated = use.read(generation).environment.apply({"PATH": "/bin"})
    assert activated["TOOLS"] == f"{prefix}/share"
    subprocess.run([prefix / "bin/hello"], check=True)
    assert capfd.readouterr().out == f"hello from {prefix}\n"
    listed = (creator.root.parent / "home/.conda/environments.txt").read_text()
    assert listed == f"{place.by_name}\n"
    assert relinked(creator) == ()


def _fields(created: Created) -> dict[str, Any]:
    return {name: getattr(created, name) for name in Created.__dataclass_fields__}


def test_back_and_forth_gives_the_first_bytes_again(creator: Creator, tools: Made) -> None:
    created = creator.create(order([tools]))
    first = _digests(created.generation.prefix)
    move(creator)
    relinked(creator)
    move(creator, "store")
    relinked(creator)
    assert _digests(creator.place.generation(created.generation.identifier).prefix) == first


def _digests(prefix: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(prefix)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mode,
        )
        for path in sorted(prefix.rglob("*"))
        if path.is_file()
    }


def test_order_history_and_pins_stay_and_a_cache_is_not_written(
    creator: Creator, tools: Made
) -> None:
    first = creator.create(order([tools]))
    creator.create(order([tools]), reinstall=True)

    collect.pin(creator.place, first.generation.identifier, who=WHO, now=NOW)
    before = [one.identifier for one in present.generations(creator.place)]
    moves = history.read(creator.place)
    shared = (first.generation.prefix / "share/tools.txt").stat()
    place = move(creator)
    assert len(relinked(creator)) == 2
    assert [one.identifier for one in present.generations(place)] == before
    assert history.read(place) == moves
    assert collect.is_pinned(in_place(place, first))
    now = (in_place(place, first).prefix / "share/tools.txt").stat()
    assert (now.st_ino, now.st_nlink, now.st_mtime_ns) == (
        shared.st_ino,
        shared.st_nlink,
        shared.st_mtime_ns,
    )
    cached = [path for path in place.store.package_cache.rglob("*") if path.is_file()]
    assert not any(f"{creator.root}".encode() in path.read_bytes() for path in cached)


def test_a_path_without_room_is_refused_by_name_and_nothing_is_touched(
    creator: Creator, tools: Made, tmp_path: Path
) -> None:
    created = creator.create(order([tools]))
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    folder.mkdir(parents=True)
    before = _digests(created.generation.prefix)
    creator.root = creator.root.rename(folder / "store")
    (one,) = relinked(creator)
    assert [(found.code, found.where) for found in one.findings] == [
        ("prefix-too-long", "lib/tools.bin")
    ]
    generation = in_place(creator.place, created)
    what, hint = one.findings[0].what, one.findings[0].hint
    room = len(PLACEHOLDER)
    assert f"{len(str(generation.prefix))} bytes, there is room for {room} (conda:tools)" in what
    below = len(str(generation.prefix)) - len(str(creator.root))
    assert hint == f"move the store to a path of at most {room - below} bytes"
    assert _digests(generation.prefix) == before
    shorter = tmp_path / ("z" * (room - below - len(f"{tmp_path}/")))
    creator.root = creator.root.rename(shorter)
    assert [one.findings for one in relinked(creator)] == [()]


def test_damage_is_not_taken_over(creator: Creator, tools: Made) -> None:
    created = creator.create(order([tools]))
    place = move(creator)
    (in_place(place, created).prefix / "share/tools.txt").unlink()
    (one,) = relinked(creator)
    assert [found.code for found in one.findings] == ["file-missing"]
    assert not (in_place(place, created).prefix / "share/tools.txt").exists()


def test_damaged_lists_of_one_keep_no_other_from_it(creator: Creator, tools: Made) -> None:
    first = creator.create(order([tools]))
    creator.create(order([tools]), reinstall=True)
    place = move(creator)
    in_place(place, first).manifest.write_text("{")
    codes = sorted([found.code for found in one.findings] for one in relinked(creator))
    assert codes == [[], ["manifest-damaged"]]


def test_a_path_that_would_need_quotes_is_refused(creator: Creator, tools: Made) -> None:
    creator.create(order([tools]))
    move(creator, "it's moved")
    assert [[found.code for found in one.findings] for one in relinked(creator)] == [["odd-path"]]


def test_a_program_that_runs_is_no_hindrance(creator: Creator, tmp_path: Path) -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    binary = make_package(
        tmp_path / "channel",
        "runs",
        content={
            "bin/naps": File(
                content=Path(sleep).read_bytes() + PLACEHOLDER.encode() + b"\0",
                mode=0o755,
                placeholder=PLACEHOLDER,
                file_mode="binary",
            )
        },
    )
    created = creator.create(order([binary]))
    place = move(creator)
    process = subprocess.Popen([in_place(place, created).prefix / "bin/naps", "60"])
    try:
        assert [one.findings for one in relinked(creator)] == [()]
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    naps = in_place(place, created).prefix / "bin/naps"
    assert subprocess.run([naps, "0"], check=False).returncode == 0


@pytest.mark.parametrize("call", ["mkdir", "link", "replace", "exchange", "remove_tree"])
@pytest.mark.parametrize("exchanges", [True, False])
def test_killed_in_the_middle_it_is_whole_the_next_time(
    creator: Creator, tools: Made, call: str, *, exchanges: bool
) -> None:
    created = creator.create(order([tools]))
    place = move(creator)
    _relink_and_die(creator, call, exchanges=exchanges)
    here = in_place(place, created)
    assert here.prefix.exists() == (exchanges or call != "exchange")
    relinked(creator)
    assert damage(Created(**{**_fields(created), "generation": here})) == []
    assert [path.name for path in place.generations.iterdir()] == [here.identifier]
    assert use.read(here).environment.set["CONDA_PREFIX"] == f"{here.prefix}"


_DIES = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from envbuild.progress import Quiet
from envbuild.store import relink
from envbuild.store.journal import Who
from envbuild.store.layout import Store
from envbuild.tools import files

root, call, exchanges = sys.argv[1:]
owner = files if call in ("exchange", "remove_tree") else Path if call == "replace" else os
real = getattr(owner, call)

def die(*words, **more):
    if ".relink-" not in str(words):
        return real(*words, **more)
    if call == "exchange" and exchanges == "False":
        words[1].rename(words[0].with_name(words[0].name + ".old"))
    os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, call, die)
if exchanges == "False" and call != "exchange":
    files.exchange = lambda *_: False
place = Store(root=Path(root)).place("demo")
who, now = Who(user="anna", host="node1"), datetime(2026, 12, 1, tzinfo=UTC)
relink.relink(place, home=Path(root).parent / "home", progress=Quiet(), who=who, now=now)
"""


def _relink_and_die(creator: Creator, call: str, *, exchanges: bool) -> None:
    argv = [sys.executable, "-c", _DIES, f"{creator.root}", call, f"{exchanges}"]
    assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL


def test_what_a_killed_relink_left_goes_with_gc(creator: Creator, tools: Made) -> None:
    creator.create(order([tools]))
    place = move(creator)
    _relink_and_die(creator, "link", exchanges=True)
    (planned,) = collect.plan([place])
    assert [part.identifier for part in planned.rubbish] == [
        f".relink-{present.generations(place)[0].identifier}"
    ]
    collect.collect(planned, who=WHO, now=NOW)
    assert len(list(place.generations.iterdir())) == 1


def test_where_folders_cannot_be_exchanged_they_are_renamed(
    creator: Creator, tools: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = creator.create(order([tools]))
    place = move(creator)
    monkeypatch.setattr(files, "exchange", lambda *_: False)
    assert [one.findings for one in relinked(creator)] == [()]
    assert use.read(in_place(place, created)).generation == in_place(place, created)
    assert len(list(place.generations.iterdir())) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("run", "demo", "--", "hello"),
        ("activate", "demo"),
        ("verify", "demo"),
        ("list",),
        ("info", "demo"),
        ("status", "demo"),
        ("switch", "demo", "1"),
        ("rollback", "demo", "1"),
    ],
)
def test_every_command_that_looks_says_it(
    creator: Creator, tools: Made, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    old = creator.create(order([tools])).generation.prefix
    place = move(creator)
    code = main(list(words))
    printed = "".join(capsys.readouterr())
    assert f"was made for {old}, lies in {place.generations}" in printed
    assert "envbuild store relink demo" in printed or words[0] == "info"
    assert code == {"run": 125, "verify": 1, "status": 1, "list": 0, "info": 0}.get(words[0], 6)


def test_on_the_command_line(
    creator: Creator, tools: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    created = creator.create(order([tools]))
    place = move(creator)
    assert main(["store", "relink", "-n", "--json"]) == 0
    planned = printed(capsys)
    assert planned["dry_run"] is True
    assert main(["verify", "demo"]) == 1
    capsys.readouterr()
    assert main(["store", "relink", "demo", "--json"]) == 0
    (one,) = printed(capsys)["generations"]
    assert (one["from"], one["to"]) == (
        f"{created.generation.prefix}",
        f"{in_place(place, created).prefix}",
    )
    assert one["files"] == planned["generations"][0]["files"] > 0
    assert main(["verify", "demo"]) == 0
    assert main(["store", "relink"]) == 0
    assert "lies where it was made" in capsys.readouterr().out
    assert Store(root=creator.root).place("nobody").root.exists() is False
    assert main(["store", "relink", "nobody"]) == 3
    assert [path.name for path in place.generations.iterdir()] == [created.generation.identifier]


@pytest.mark.parametrize("name", ["a b", "x" * 140])
def test_what_a_shell_starts_runs(tmp_path: Path, name: str) -> None:
    new = tmp_path / name
    (new / "bin").mkdir(parents=True)
    (new / "bin/python").symlink_to(sys.executable)
    script = new / "bin/tool"
    text = "#!/srv/old/bin/python -E\nimport sys\nprint(sys.argv[1:])\n"
    script.write_bytes(Exchange(old="/srv/old", new=f"{new}").in_script(text.encode()))
    script.chmod(0o755)
    done = subprocess.run([script, "a b", "c"], capture_output=True, text=True, check=True)
    assert done.stdout == "['a b', 'c']\n"
