"""Rebuilds of small sources: what decides them, what they leave, what is refused."""

import json
import os
import re
import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from integration.index_server import Index, serving, wheel
from integration.rebuilding import GLIBC, SOURCE, Builder, needs_gcc, project, wanted

from envbuild.access import Access
from envbuild.errors import FetchError, Refused, ToolFailed, ToolMissing
from envbuild.native.inspect import inspect
from envbuild.packages import PipPackage
from envbuild.rebuild import house, portable
from envbuild.rebuild.build import OutOfMemory
from envbuild.rebuild.current import stale
from envbuild.rebuild.house import House
from envbuild.target import Target
from envbuild.tools import sandbox
from envbuild.tools.run import run
from envbuild.wheel.model import Archive, GitCommit, Toolchain

pytestmark = needs_gcc


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(root=tmp_path / "store")


def test_what_is_built_is_proven_tried_and_kept(builder: Builder, tmp_path: Path) -> None:
    folder = project(tmp_path / "demo")
    outcome = builder.build(wanted(folder), verify=True)
    kept = outcome.kept
    assert (outcome.made, outcome.identical, outcome.findings) == (True, True, ())
    assert str(kept.version) == "1.0+gcc12"
    assert house.check(kept) == ()
    internal = kept.statement.internal
    assert internal["compiler"]["version"].startswith("12.")
    assert internal["variables"]["CC"].endswith("/tools/gcc")
    index = kept.path.with_name("index.html").read_text()
    assert "demo-1.0%2Bgcc12" in index
    assert kept.sha256 in index
    assert "-shared" in House(builder.store.wheelhouse).log(kept.path).read_text()
    assert not list((builder.store.rebuild_cache / "builds").glob("demo-*"))
    again = builder.build(wanted(folder))
    assert (again.made, again.kept.sha256) == (False, kept.sha256)


def test_another_content_of_that_name_gets_a_build_tag(builder: Builder, tmp_path: Path) -> None:
    first = builder.build(wanted(project(tmp_path / "demo"))).kept
    second = builder.build(wanted(tmp_path / "demo", flags=("-DOTHER", "-O1"))).kept
    assert first.path.exists()
    assert second.path.name.startswith("demo-1.0+gcc12-1-cp3")
    assert [one.path for one in House(builder.store.wheelhouse).wheels()] == [
        first.path,
        second.path,
    ]


def test_a_changed_wheel_is_seen_and_what_changes_makes_one_stale(
    builder: Builder, tmp_path: Path
) -> None:
    kept = builder.build(wanted(project(tmp_path / "demo"))).kept
    internal = {**kept.statement.internal, "builtAgainst": {"torch": "2.4.0"}}
    other = replace(kept, statement=replace(kept.statement, internal=internal))
    assert stale(other, {"torch": "2.4.0"}) is None
    assert stale(other, {"torch": "2.5.0"}) == "built against torch 2.4.0, and the lock has 2.5.0"
    assert "no longer has" in (stale(other, {}) or "")
    kept.path.write_bytes(kept.path.read_bytes() + b"x")
    (said,) = house.check(kept)
    assert "other sha256" in said


def test_a_build_reaches_nobody(
    builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (why := sandbox.refusal(tmp_path, tmp_path)) is not None:
        pytest.skip(f"no sandbox here: {why}")
    monkeypatch.setenv("CFLAGS", "-DLEAKED")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = (
            "import socket\n"
            "    try:\n"
            f"        socket.create_connection(('127.0.0.1', {port}), 2)\n"
            "    except OSError as error:\n"
            "        print('unreachable:', error)\n"
            "    print('cwd', os.getcwd(), 'flags', os.environ['CFLAGS'])"
        )
        kept = builder.build(wanted(project(tmp_path / "demo", before=code))).kept
    log = House(builder.store.wheelhouse).log(kept.path).read_text()
    assert "unreachable:" in log
    assert "cwd /tmp/envbuild-build/src" in log
    assert "LEAKED" not in log


def test_nothing_of_a_build_outlives_it(builder: Builder, tmp_path: Path) -> None:
    if (why := sandbox.refusal(tmp_path, tmp_path)) is not None:
        pytest.skip(f"no sandbox here: {why}")
    code = f"subprocess.Popen(['sleep', '300', '0.{os.getpid()}'], start_new_session=True)"
    builder.build(wanted(project(tmp_path / "demo", before=code)))
    marked = "\0".join(["sleep", "300", f"0.{os.getpid()}"]).encode()
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if marked in _content(path)]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_builds_that_differ_are_refused_with_what_differs(builder: Builder, tmp_path: Path) -> None:
    code = "open('demo.so', 'ab').write(os.urandom(8))"
    with pytest.raises(Refused, match="two builds differ in 2 files") as caught:
        builder.build(wanted(project(tmp_path / "demo", after=code)), verify=True)
    assert "demo.so" in caught.value.details
    assert not list(House(builder.store.wheelhouse).wheels())


def test_a_build_that_failed_can_be_looked_into(builder: Builder, tmp_path: Path) -> None:
    folder = project(tmp_path / "demo", source="#error no\n")
    with pytest.raises(ToolFailed, match=r"demo 1\.0: its build failed") as caught:
        builder.build(wanted(folder))
    assert "#error no" in caught.value.details
    command = caught.value.details.splitlines()[-1].removeprefix("$ ")
    script = command.split()[0]
    pasted = subprocess.run(
        [script, "/bin/sh", "-c", "pwd; echo $CC"], check=True, capture_output=True, text=True
    )
    assert pasted.stdout.splitlines()[1].endswith("/tools/gcc")
    assert Path(script).with_name("build.log").exists()


def test_the_build_environment_takes_from_the_lock_what_the_lock_has(tmp_path: Path) -> None:
    first, second = (wheel("arrays", version) for version in ("1.26.4", "2.2.6"))
    with serving(main=Index(wheels=[first, second, wheel("helper", "3")])) as server:
        locked = PipPackage(name="arrays", version="1.26.4", hashes=(first.sha256,))
        access = Access(default_index=server.url("main"))
        builder = Builder(root=tmp_path / "store", pip=(locked,), access=access)
        sources = project(
            tmp_path / "demo",
            requires=["arrays>=1.20", "helper"],
            before="import arrays, helper; print('against', arrays.VERSION)",
        )
        kept = builder.build(wanted(sources)).kept
        taken = [line for line in server.log if second.filename in line and ".metadata" not in line]
    assert "against 1.26.4" in House(builder.store.wheelhouse).log(kept.path).read_text()
    assert taken == []
    definition = json.loads(kept.statement.text)["predicate"]["buildDefinition"]
    environment = {
        one["uri"]: one["digest"]["sha256"]
        for one in definition["resolvedDependencies"]
        if one["name"] == "build environment"
    }
    assert environment["pkg:pypi/arrays@1.26.4"] == first.sha256
    assert sorted(environment) == ["pkg:pypi/arrays@1.26.4", "pkg:pypi/helper@3"]
    assert kept.statement.against == {"arrays": "1.26.4"}
    assert stale(kept, {"arrays": "1.26.4"}) is None
    assert stale(kept, {"arrays": "2.2.6"}) is not None


_HUNGRY = "if int(os.environ['MAX_JOBS']) > 1: print('cc1: Killed'); os.kill(os.getpid(), 9)"


def test_after_memory_did_not_do_it_goes_on_with_fewer_jobs(
    builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {*range(4)})
    one = wanted(project(tmp_path / "demo", before=_HUNGRY), memory_per_job_bytes=1)
    kept = builder.build(one).kept
    assert kept.statement.internal["maxJobs"] == 1
    assert any(
        "too little memory for 4 jobs; going on with 2" in said for said in builder.steps.said
    )


def test_the_users_jobs_win_and_what_to_try_next_is_said(builder: Builder, tmp_path: Path) -> None:
    one = wanted(project(tmp_path / "demo", before=_HUNGRY))
    with pytest.raises(OutOfMemory) as caught:
        builder.build(one, max_jobs=(3, "MAX_JOBS"))
    assert "too little memory for 3 jobs" in caught.value.message
    assert caught.value.hint == "set MAX_JOBS=1"


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (
            "subprocess.run(['objcopy', '-R', '.comment', 'demo.so'], check=True)",
            "cannot be proven",
        ),
        ("open('demo.so', 'wb').write(b'text')", "no binary is in it"),
    ],
)
def test_what_cannot_be_proven_is_no_result(
    builder: Builder, tmp_path: Path, after: str, says: str
) -> None:
    with pytest.raises(ToolFailed, match="not what was asked for") as caught:
        builder.build(wanted(project(tmp_path / "demo", after=after)))
    assert says in caught.value.details
    assert not list(House(builder.store.wheelhouse).wheels())


def test_what_cannot_be_imported_is_no_result(builder: Builder, tmp_path: Path) -> None:
    source = "int PyInit_other(void) { return 0; }\n"
    with pytest.raises(ToolFailed) as caught:
        builder.build(wanted(project(tmp_path / "demo", source=source)))
    assert "cannot be imported" in caught.value.message
    assert not list(House(builder.store.wheelhouse).wheels())


def test_a_missing_compiler_is_said_before_anything_is_fetched(
    builder: Builder, tmp_path: Path
) -> None:
    one = wanted(tmp_path / "not-there", toolchain=Toolchain(compiler="gcc 7"))
    with pytest.raises(ToolMissing, match="gcc 7 is not here") as caught:
        builder.build(one)
    assert "gxx_linux-64 7.*" in (caught.value.hint or "")


def test_an_archive_with_another_hash_is_refused(builder: Builder, tmp_path: Path) -> None:
    folder = project(tmp_path / "demo")
    one = wanted(folder, source=Archive(path=f"{folder}", sha256="0" * 64))
    with pytest.raises(FetchError, match="not the one that the recipe names"):
        builder.build(one)


def _library(folder: Path) -> Path:
    """Compile a library that no policy of auditwheel has, and return its folder."""
    folder.mkdir()
    (folder / "own.c").write_text("int own(void) { return 7; }\n")
    made = folder / "libown.so.1"
    argv = ["gcc-12", "-shared", "-fPIC", "-Wl,-soname,libown.so.1", f"{folder}/own.c"]
    subprocess.run([*argv, "-o", f"{made}"], check=True)
    (folder / "libown.so").symlink_to(made.name)
    return folder


_CALLS = SOURCE.replace("static", "int own(void);\nint call(void) { return own(); }\nstatic", 1)


def test_a_portable_wheel_brings_the_libraries_that_it_needs(
    builder: Builder, tmp_path: Path
) -> None:
    folder = _library(tmp_path / "libraries")
    link = (f"-L{folder}", "-Wl,--no-as-needed", "-lown", f"-Wl,-rpath,{folder}")
    sources = project(tmp_path / "demo", source=_CALLS)
    kept = builder.build(wanted(sources, portable=True, flags=link)).kept
    facts = inspect(kept.path)
    assert facts.package is not None
    assert facts.package.record == ()
    assert any("manylinux" in tag for tag in facts.package.file_tags)
    assert facts.package.wheel_tags == facts.package.file_tags
    own, brought = sorted(facts.files, key=lambda file: not file.path.startswith("demo.so"))
    assert re.fullmatch(r"demo\.libs/libown-[0-9a-f]+\.so\.1", brought.path)
    assert Path(brought.path).name in own.needed
    assert [link.place for link in own.links if link.name in brought.path] == ["inside"]
    assert kept.statement.parameters["portable"]


def test_libraries_that_only_the_conda_half_has_are_found_and_others_said(tmp_path: Path) -> None:
    folder = _library(tmp_path / "libraries")
    (folder / "demo.c").write_text("int own(void);\nint call(void) { return own(); }\n")
    argv = ["gcc-12", "-shared", "-fPIC", f"{folder}/demo.c", f"-L{folder}", "-lown"]
    subprocess.run([*argv, "-o", f"{folder}/demo.so"], check=True)
    made = wheel(
        "demo",
        "1.0",
        tag="py3-none-linux_x86_64",
        files={"demo/demo.so": (folder / "demo.so").read_bytes()},
    )
    path = tmp_path / made.filename
    path.write_bytes(made.data)
    target = Target(platform="linux-64", glibc=GLIBC)
    out = tmp_path / "out"
    found = portable.repaired(
        path, out, target=target, epoch=1_700_000_000, runner=run, libraries=folder
    )
    assert any(file.path.startswith("demo.libs/libown-") for file in inspect(found).files)
    with pytest.raises(ToolFailed) as caught:
        portable.repaired(path, out, target=target, epoch=1_700_000_000, runner=run)
    assert caught.value.message == f"{made.filename} cannot be made portable to glibc {GLIBC}"
    assert "libown.so.1" in caught.value.details


def _commit(folder: Path, *words: str) -> str:
    """Run git in a repository, which is made where there is none, commit, and return the commit."""
    base = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", f"{folder}"]
    base += ["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]
    lines = [["init", "-q"], list(words), ["add", "-A"], ["commit", "-qm", "one", "--allow-empty"]]
    for line in filter(None, lines):
        subprocess.run([*base, *line], check=True, capture_output=True)
    told = subprocess.run([*base, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return told.stdout.strip()


def test_a_commit_is_fetched_with_its_submodules_and_its_tag_is_checked(
    builder: Builder, tmp_path: Path
) -> None:
    part = tmp_path / "part"
    part.mkdir()
    (part / "part.h").write_text("#define PART 1\n")
    inner = _commit(part)
    folder = project(tmp_path / "demo", source=f'#include "lib/part.h"\n{SOURCE}')
    commit = _commit(folder, "submodule", "add", part.as_uri(), "lib")
    _commit(folder, "tag", "v1", commit)
    url = folder.as_uri()
    reaching = Builder(root=builder.root, access=Access(default_index="http://127.0.0.1:9/"))
    kept = builder.build(wanted(folder, source=GitCommit(url=url, commit=commit, tag="v1"))).kept
    assert kept.statement.internal["submodules"] == {"lib": inner}
    for source, said in (
        (GitCommit(url=url, commit="1" * 40, tag="v2"), "there is no tag v2"),
        (GitCommit(url=url, commit="1" * 40), f"there is no commit {'1' * 40}"),
        (GitCommit(url="http://127.0.0.1:9/x", commit="2" * 40, tag="v1"), "127.0.0.1 port 9"),
    ):
        with pytest.raises(FetchError) as caught:
            reaching.build(wanted(folder, source=source))
        assert said in caught.value.message
        assert "\n" not in caught.value.message
    fetched = (builder.store.rebuild_cache / "sources/git").iterdir()
    assert [path.name for path in fetched] == [commit]
    moved = GitCommit(url=url, commit="1" * 40, tag="v1")
    with pytest.raises(FetchError, match="tag v1 is"):
        builder.build(wanted(folder, source=moved))


def test_two_at_once_do_not_mix(builder: Builder, tmp_path: Path) -> None:
    folder = project(tmp_path / "demo")
    done: list[str] = []
    threads = [
        threading.Thread(target=lambda: done.append(builder.build(wanted(folder)).kept.sha256))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 2
    assert len(set(done)) == 1
