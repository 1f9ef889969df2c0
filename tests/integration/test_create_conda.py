"""Creating generations of conda packages: what is there afterwards, and every way to fail."""

import json
import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from integration.creating import PLACEHOLDER, Creator, codes, damage, order
from integration.packages import FOREIGN, File, Made, make_package, program

from envbuild.errors import FetchError, Refused, StoreError
from envbuild.findings import Severity
from envbuild.store import history, integrate, use
from envbuild.store.order import Allowed, Order, dumps


@pytest.fixture
def creator(tmp_path: Path) -> Creator:
    (tmp_path / "home").mkdir()
    return Creator(root=tmp_path / "store", home=tmp_path / "home")


@pytest.fixture
def tools(tmp_path: Path) -> Made:
    text = f"prefix={PLACEHOLDER}/share\n".encode()
    return make_package(
        tmp_path / "channel",
        "tools",
        content={
            "bin/hello": program(
                f"#!/bin/sh\necho hello from {PLACEHOLDER}\n", placeholder=PLACEHOLDER
            ),
            "lib/tools.pc": File(content=text, placeholder=PLACEHOLDER),
            "lib/tools.bin": File(
                content=b"\0\0" + PLACEHOLDER.encode() + b"/lib\0end",
                placeholder=PLACEHOLDER,
                file_mode="binary",
            ),
            "share/tools.txt": File(content=b"tools\n", mode=0o666),
            "share/link": File(content=b"tools.txt", link=True),
            "etc/conda/activate.d/tools.sh": File(
                content=b'export TOOLS_HOME="$CONDA_PREFIX/share"\n'
                b'export PATH="$TOOLS_HOME/bin:$PATH"\n'
            ),
        },
    )


def test_a_generation_is_complete_and_as_its_packages_declare(
    creator: Creator, tools: Made, tmp_path: Path
) -> None:
    ordered = order([tools])
    created = creator.create(ordered)
    prefix = created.generation.prefix
    assert (created.built, created.current, created.origin) == (True, True, None)
    assert created.generation.identifier == ordered.environment_digest[:16]
    assert (prefix / "lib/tools.pc").read_text() == f"prefix={prefix}/share\n"
    assert f"{prefix}/lib\0".encode() in (prefix / "lib/tools.bin").read_bytes()
    assert (prefix / "share/link").readlink() == Path("tools.txt")
    assert stat.S_IMODE((prefix / "share/tools.txt").stat().st_mode) == 0o644
    assert damage(created) == []
    assert creator.place.current.readlink() == Path(f"generations/{created.generation.identifier}")
    assert creator.place.by_name.readlink() == Path("../envs/demo/current")
    assert [move.what for move in history.read(creator.place)] == ["create"]
    listed = (tmp_path / "home/.conda/environments.txt").read_text()
    assert listed == f"{creator.place.by_name}\n"
    integrate.unregister(creator.place, home=tmp_path / "home")
    assert (tmp_path / "home/.conda/environments.txt").read_text() == ""


def test_what_conda_and_others_look_for(creator: Creator, tools: Made) -> None:
    prefix = creator.create(order([tools])).generation.prefix
    meta = prefix / "conda-meta"
    assert "envbuild create demo" in (meta / "history").read_text()
    assert json.loads((meta / "state").read_text())["env_vars"] == {}
    assert "demo" in json.loads((meta / "frozen").read_text())["message"]
    assert json.loads((meta / "tools-1.0-0.json").read_text())["name"] == "tools"
    assert not (prefix / "CACHEDIR.TAG").exists()
    assert {stat.S_IMODE(path.stat().st_mode) for path in meta.iterdir()} == {0o644}


def test_activation_is_what_the_scripts_set(creator: Creator, tools: Made) -> None:
    created = creator.create(order([tools], compiler="gcc 12"))
    prefix = created.generation.prefix
    activated = use.read(created.generation).environment.apply({"PATH": "/bin", "PYTHONPATH": "/x"})
    assert activated["PATH"] == f"{prefix}/share/bin:{prefix}/bin:/bin"
    assert activated["TOOLS_HOME"] == f"{prefix}/share"
    assert activated["CONDA_PREFIX"] == f"{prefix}"
    assert (activated["CC"], activated["CUDAHOSTCXX"]) == ("gcc-12", "g++-12")
    assert "PYTHONPATH" not in activated


def test_again_is_no_work_and_reinstall_is_another_generation(
    creator: Creator, tools: Made
) -> None:
    first = creator.create(order([tools]))
    again = creator.create(order([tools]))
    assert (again.built, again.generation, again.origin) == (
        False,
        first.generation,
        first.generation.identifier,
    )
    second = creator.create(order([tools]), reinstall=True)
    assert second.generation.identifier == f"{first.generation.identifier}-2"
    third = creator.create(order([tools]), reinstall=True, switch=False)
    assert third.generation.identifier.endswith("-3")
    assert not third.current
    taken = creator.create(order([tools]))
    assert (taken.built, taken.generation, taken.current) == (False, third.generation, True)


@pytest.mark.parametrize("how", ["moved", "no activation"])
def test_what_cannot_be_used_is_not_taken_for_the_wanted_one(
    creator: Creator, tools: Made, how: str
) -> None:
    first = creator.create(order([tools]))
    if how == "moved":
        creator.root.rename(creator.root.with_name("moved"))
        creator.root = creator.root.with_name("moved")
    else:
        first.generation.environment.unlink()
    again = creator.create(order([tools]))
    assert again.built
    assert again.generation.identifier == f"{first.generation.identifier}-2"
    assert damage(again) == []
    assert not creator.create(order([tools])).built


def test_no_switch_moves_nothing(creator: Creator, tools: Made) -> None:
    created = creator.create(order([tools]), switch=False)
    assert not created.current
    assert not creator.place.current.is_symlink()
    assert not creator.place.by_name.is_symlink()
    assert history.read(creator.place) == ()


def test_a_wrong_hash_links_nothing(creator: Creator, tools: Made) -> None:
    package = replace(tools.package(tools.archive.parents[1].as_uri()), sha256="0" * 64)
    with pytest.raises(FetchError, match="sha256") as caught:
        creator.create(order([package]))
    assert caught.value.exit_code == 8
    assert creator.nothing_left()


def test_another_content_under_the_same_md5_is_refused(creator: Creator, tools: Made) -> None:
    package = tools.package(tools.archive.parents[1].as_uri(), md5_only=True)
    created = creator.create(order([package]))
    (installed,) = created.manifest.packages
    assert (installed.digest, installed.weak) == (tools.record["sha256"], True)
    connection = sqlite3.connect(creator.place.store.ledger)
    with connection:
        connection.execute("UPDATE archives SET sha256 = ?", ("f" * 64,))
    connection.close()
    with pytest.raises(FetchError, match="SHA-256") as caught:
        creator.create(order([package]), reinstall=True)
    assert caught.value.exit_code == 8
    assert creator.create(order([package])).generation == created.generation


def test_a_failed_smoke_test_leaves_its_log_alone(creator: Creator, tools: Made) -> None:
    before = creator.create(order([tools]))
    ordered = order(
        [tools],
        environment_digest="ab" * 32,
        commands=("hello", "sh -c 'echo broken >&2; exit 3'"),
    )
    with pytest.raises(Refused, match=r"exit 3.*status 3") as caught:
        creator.create(ordered)
    assert "broken" in caught.value.details
    assert not creator.place.generation("ab" * 8).prefix.exists()
    assert creator.place.current.resolve() == before.generation.prefix
    log = creator.place.root / "logs" / f"{'ab' * 8}.log"
    assert f"hello from {creator.place.generation('ab' * 8).prefix}" in log.read_text()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("no-such-program", "could not be started"),
        ("sh -c 'kill -9 $$'", "signal 9"),
        ("'", "cannot be split"),
        ("''", "could not be started"),
        ("  ", "empty command"),
    ],
)
def test_commands_that_cannot_be(creator: Creator, tools: Made, command: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        creator.create(order([tools], commands=(command,)))
    assert creator.nothing_left()


def test_the_smoke_test_sees_nothing_of_the_builder(
    creator: Creator, tools: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_BUILDER", "x")
    command = 'sh -c \'test -z "$SECRET_OF_BUILDER" && test -w "$HOME" && hello\''
    assert creator.create(order([tools], commands=(command,))).built


def test_rubbish_of_a_killed_build_goes_and_the_next_one_succeeds(
    creator: Creator, tools: Made
) -> None:
    ordered = order([tools], commands=("sleep 60",))
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from integration.creating import Creator\n"
        "from envbuild.store.order import loads\n"
        "Creator(root=Path(sys.argv[2])).create(loads(sys.stdin.read()))\n"
    )
    tests = str(Path(__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", script, tests, str(creator.root)],
        stdin=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(dumps(ordered))
    process.stdin.close()
    prefix = creator.place.generation(ordered.environment_digest[:16]).prefix
    needs = prefix / ".envbuild/needs.json"
    assert _soon(needs.exists)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (prefix / "share/tools.txt").exists()
    created = creator.create(replace(ordered, commands=("hello",)))
    assert created.built
    assert damage(created) == []


def _soon(check: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.05)
    return False


def test_an_edited_file_reaches_no_later_generation(creator: Creator, tools: Made) -> None:
    first = creator.create(order([tools]))
    edited = first.generation.prefix / "share/tools.txt"
    with edited.open("a") as file:
        file.write("edited\n")
    second = creator.create(order([tools]), reinstall=True)
    assert (second.generation.prefix / "share/tools.txt").read_text() == "tools\n"
    assert damage(second) == []
    assert ("file-changed", "share/tools.txt") in damage(first)


def test_an_edit_that_hides_its_time_is_found_where_the_ledger_is_lost(
    creator: Creator, tools: Made
) -> None:
    first = creator.create(order([tools]))
    edited = first.generation.prefix / "share/tools.txt"
    before = edited.stat()
    edited.write_text("TOOLS\n")
    os.utime(edited, ns=(before.st_atime_ns, before.st_mtime_ns))
    creator.place.store.ledger.unlink()
    second = creator.create(order([tools]), reinstall=True)
    assert (second.generation.prefix / "share/tools.txt").read_text() == "tools\n"
    assert damage(second) == []


def test_two_packages_with_one_path(creator: Creator, tmp_path: Path) -> None:
    def make(name: str, text: bytes) -> Made:
        return make_package(
            tmp_path / "channel",
            name,
            content={"share/same.txt": File(content=text), f"share/{name}": File()},
        )

    created = creator.create(order([make("aaa", b"1"), make("bbb", b"2")]))
    assert codes(created) == ["clobber"]
    assert created.manifest.findings[0].where == "share/same.txt"
    assert damage(created) == []
    equal = creator.create(order([make("ccc", b"3"), make("ddd", b"3")]))
    assert codes(equal) == []


def test_findings_that_the_recipe_lets_through_are_notes(creator: Creator, tmp_path: Path) -> None:
    packages = [
        make_package(tmp_path / "c", name, content={"x": File(content=name.encode())})
        for name in ("aaa", "bbb")
    ]
    allow = Allowed(code="clobber", reason="known", until="2026-12-01")
    created = creator.create(order(packages, allow=(allow,)))
    assert [finding.severity for finding in created.manifest.findings] == [Severity.NOTE]


def test_scripts_of_other_interpreters_are_named(creator: Creator, tmp_path: Path) -> None:
    made = make_package(
        tmp_path / "channel",
        "scripts",
        content={
            "bin/own": program(f"#!{PLACEHOLDER}/bin/python\n", placeholder=PLACEHOLDER),
            "bin/shell": program("#!/bin/sh\n"),
            "bin/env-shell": program("#!/usr/bin/env bash\n"),
            "bin/builder": program("#!/home/builder/bin/python3.9\n"),
            "bin/perl": program("#!/usr/bin/env perl -w\n"),
            "bin/long": program(f"#!/bin/sh {'x' * 130}\n"),
            "bin/binary": File(content=b"\x7fELF", mode=0o4775),
        },
    )
    created = creator.create(order([made]))
    assert [(finding.code, finding.where) for finding in created.manifest.findings] == [
        ("foreign-interpreter", "bin/builder"),
        ("long-interpreter-line", "bin/long"),
        ("foreign-interpreter", "bin/perl"),
    ]
    mode = (created.generation.prefix / "bin/binary").stat().st_mode
    assert stat.S_IMODE(mode) == 0o755


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_modes_do_not_depend_on_the_umask(creator: Creator, tools: Made, umask: int) -> None:
    before = os.umask(umask)
    try:
        created = creator.create(order([tools]))
    finally:
        os.umask(before)
    paths = [creator.root, creator.place.by_name.parent, *creator.place.root.rglob("*")]
    modes = {
        stat.S_IMODE(path.lstat().st_mode)
        for path in paths
        if not path.is_symlink() and path != creator.place.lock
    }
    assert modes <= {0o755, 0o644}
    assert damage(created) == []


def test_a_store_below_a_link_gets_real_paths(tmp_path: Path, tools: Made) -> None:
    (tmp_path / "real place").mkdir()
    (tmp_path / "link").symlink_to("real place")
    created = Creator(root=tmp_path / "link/größe").create(order([tools], commands=("hello",)))
    assert str(created.generation.prefix).startswith(str(tmp_path / "real place/größe"))
    assert damage(created) == []


def _create(root: Path, ordered: Order) -> str:
    return Creator(root=root).create(ordered).generation.identifier


def test_many_at_once_make_one_generation(creator: Creator, tools: Made) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        answers = pool.starmap(_create, [(creator.root, order([tools]))] * 4)
    assert len(set(answers)) == 1
    assert len(list(creator.place.generations.iterdir())) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder],
        check=False,
        capture_output=True,
    )
    if mount.returncode:
        pytest.skip("mounting a tmpfs is not permitted")
    yield folder
    subprocess.run(["/bin/umount", "-l", folder], check=True)


def test_a_full_disk_is_said_and_leaves_nothing(
    small_disk: Path, tools: Made, tmp_path: Path
) -> None:
    large = make_package(
        tmp_path / "channel", "large", content={"share/large": File(content=bytes(4 << 20))}
    )
    creator = Creator(root=small_disk / "store")
    with pytest.raises(StoreError, match=r"(?i)no (space|room)") as caught:
        creator.create(order([tools, large]))
    assert caught.value.exit_code == 6
    assert creator.nothing_left()
    assert creator.create(order([tools])).built


def test_a_cache_on_another_disk_is_copied(small_disk: Path, creator: Creator, tools: Made) -> None:
    creator.place.store.cache.parent.mkdir(parents=True)
    creator.place.store.cache.symlink_to(small_disk)
    first = creator.create(order([tools]))
    second = creator.create(order([tools]), reinstall=True)
    assert damage(first) == damage(second) == []


def test_a_store_that_cannot_be_written(tmp_path: Path, tools: Made) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        Creator(root=tmp_path / "file/store").create(order([tools]))


@pytest.mark.skipif(not FOREIGN.is_dir(), reason="no packages of others here")
def test_a_package_that_others_made(creator: Creator) -> None:
    archive = FOREIGN / "linux-64/ripgrep-completions-14.1.1-hb0f4dca_1.conda"
    made = Made(archive=archive, record=_record(archive))
    created = creator.create(order([made]))
    assert damage(created) == []


def _record(archive: Path) -> dict[str, object]:
    index = json.loads((FOREIGN / "linux-64/repodata.json").read_text())
    return {**index["packages.conda"][archive.name]}
