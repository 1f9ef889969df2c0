"""Creating generations with wheels on a Python of this machine, from an index on the loopback."""

import base64
import hashlib
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from integration.creating import NOW, WHO, Creator, codes, damage, order
from integration.faults import Fault
from integration.host_pythons import pythons, run
from integration.index_server import BuiltWheel, Index, IndexServer, serving, wheel
from integration.packages import File, make_package
from integration.rebuilding import Steps

from envbuild.access import Access
from envbuild.channel import host
from envbuild.channel.interpreter import ask
from envbuild.errors import FetchError, LockError, Refused
from envbuild.packages import CondaPackage, PipPackage
from envbuild.progress import Quiet
from envbuild.store.create import Created, Host
from envbuild.store.manifest import Interpreter
from envbuild.store.order import Allowed, Order, OrderIndex
from envbuild.store.present import names
from envbuild.store.relink import relink

SITE = "lib/python3.11/site-packages"


@dataclass(kw_only=True)
class World:
    """An index, a store, and a Python of this machine as a conda package."""

    index: Index
    server: IndexServer
    creator: Creator
    python: CondaPackage

    def order(self, *wheels: BuiltWheel, index: str | None = None, **more: object) -> Order:
        self.index.wheels = [*self.index.wheels, *wheels]
        pip = [
            PipPackage(
                name=one.project,
                version=one.filename.split("-")[1],
                hashes=(one.sha256,),
                index=index,
            )
            for one in wheels
        ]
        return order([self.python], pip, **more)

    def create(self, ordered: Order, *, reinstall: bool = False, compiled: bool = False) -> Created:
        return self.creator.create(ordered, reinstall=reinstall, compiled=compiled)


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> CondaPackage:
    path = next((path for name, path in pythons().items() if name.endswith("3.11")), None)
    if path is None:
        pytest.skip("no CPython 3.11 that can be packed")
    folder = tmp_path_factory.mktemp("packed") / "linux-64"
    record, archive = host.pack(ask(path), folder)
    return replace(record, url=archive.as_uri())


@pytest.fixture
def world(tmp_path: Path, packed: CondaPackage) -> Iterator[World]:
    index = Index()
    with serving(main=index) as server:
        access = Access(default_index=server.url("main"))
        creator = Creator(root=tmp_path / "store", access=access)
        yield World(index=index, server=server, creator=creator, python=packed)


def small(name: str = "app", text: str = "VERSION = 1\n") -> BuiltWheel:
    return wheel(name, "1.0", files={f"{name}/__init__.py": text})


def test_wheels_are_installed_checked_and_imported(world: World) -> None:
    created = world.create(world.order(small(), imports=("app",)))
    prefix = created.generation.prefix
    assert run(prefix / "bin/python", "-c", "import app; print(app.__file__)") == (
        f"{prefix}/{SITE}/app/__init__.py"
    )
    assert damage(created) == []
    assert [package.name for package in created.manifest.packages] == ["python", "app"]
    assert not created.manifest.compiled


def test_a_failed_import_is_told(world: World) -> None:
    broken = small(text="raise RuntimeError('no GPU driver')\n")
    with pytest.raises(Refused, match=r"importing os, app, nothing ended with status 1") as caught:
        world.create(world.order(broken, imports=("os", "app", "nothing")))
    assert "no GPU driver" in caught.value.details
    assert "cannot import app, nothing" in caught.value.details
    assert world.creator.nothing_left()


def changed(
    plain: BuiltWheel, member: str, change: Callable[[bytes], bytes], more: Mapping[str, str]
) -> BuiltWheel:
    """Return a wheel with one member changed and some more, and the RECORD as it was before."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(plain.data)) as old, zipfile.ZipFile(made, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            new.writestr(info, change(data) if info.filename == member else data)
        for name, text in more.items():
            new.writestr(name, text)
    return replace(plain, data=made.getvalue())


def _weak(record: bytes) -> bytes:
    found = hashlib.md5(b"VERSION = 1\n", usedforsecurity=False).digest()
    digest = base64.urlsafe_b64encode(found).rstrip(b"=")
    return re.sub(rb"(app/__init__.py),[^,]*,", rb"\1,md5=" + digest + b",", record)


WRONG = {
    "content": ("app/__init__.py", lambda data: data + b"# one line more\n", "its content is not"),
    "md5": ("app-1.0.dist-info/RECORD", _weak, "RECORD has md5 for it, weaker than sha256"),
}


@pytest.mark.parametrize("how", WRONG)
def test_a_wheel_that_contradicts_its_own_record_is_refused_before_it_is_linked(
    world: World, how: str
) -> None:
    """Even where its archive has the locked hash: the contradiction was there before that."""
    member, change, says = WRONG[how]
    steps = Steps()
    world.creator.progress = steps
    ordered = world.order(changed(small(), member, change, {}))
    for _ in range(2):  # the second time it comes from the cache
        with pytest.raises(Refused, match=rf"app/__init__.py: {says}") as caught:
            world.create(ordered)
        assert "the wheel contradicts its own RECORD" in caught.value.details
        assert world.creator.nothing_left()
    assert not [step for step in steps.said if step.startswith("linking")]


def test_weak_hashes_may_be_let_through_and_files_without_one_are_said(world: World) -> None:
    weak = changed(small(), "app-1.0.dist-info/RECORD", _weak, {})
    more = changed(small("other"), "", bytes, {"other/LICENSE.txt": "free\n", "loose.txt": "x\n"})
    allowed = Allowed(
        code="record-contradicted",
        where="pypi:app: app/__init__.py",
        until="2027-01-01",
        reason="known",
    )
    ordered = world.order(weak, more, allow=(allowed,))
    first, second = world.create(ordered), world.create(ordered, reinstall=True)
    known, said = first.manifest.findings
    assert (known.code, known.severity) == ("record-contradicted", "note")
    assert (said.code, said.severity, said.where) == ("record-unlisted", "warning", "pypi:other")
    assert f"{SITE}/loose.txt, {SITE}/other/LICENSE.txt" in said.what
    assert second.manifest.findings == (said,)
    assert damage(first) == []
    (first.generation.prefix / SITE / "other/LICENSE.txt").unlink()
    assert damage(first) == [("file-missing", f"{SITE}/other/LICENSE.txt")]


def test_once_fetched_nothing_is_asked_of_the_network(world: World) -> None:
    ordered = world.order(small())
    world.create(ordered)
    world.server.log.clear()
    assert world.create(ordered, reinstall=True).built
    assert world.server.log == []
    world.creator.access = replace(world.creator.access, offline=True)
    assert world.create(ordered, reinstall=True).built


def test_what_killed_builds_left_in_the_caches_goes(world: World) -> None:
    world.create(world.order(small()))
    store = world.creator.place.store
    before = sorted(store.cache.rglob("*"))
    entry = f"half-1.0-0-{'0' * 32}"
    for path in (
        store.cache / "envbuild-scratch-killed/wheels/app.py",
        store.uv_cache / ".tmpAbCdEf/app.py",
        store.uv_cache / "wheels-v8/.tmpAbCdEf",
        store.package_cache / f".{entry}.part/half.conda",
        store.package_cache / entry / "info/index.json",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (store.cache / "envbuild-scratch-killed/lock").touch()
    world.create(world.order(small("other")))
    left = {path for path in store.cache.rglob("*") if ".locks" not in path.parts} - set(before)
    assert [path for path in left if {".tmpAbCdEf", entry, f".{entry}.part"} & {*path.parts}] == []
    assert not [path for path in left if "scratch" in str(path)]


def test_where_the_conda_half_fails_uv_is_ended_and_nothing_stays(world: World) -> None:
    stalled = small("stalled")
    ordered = world.order(stalled)
    world.index.faults[f"/main/simple/{stalled.project}/"] = Fault(hold="start")
    conda = replace(world.python, sha256="0" * 64)
    with pytest.raises(FetchError, match="sha256"):
        world.creator.create(replace(ordered, conda=(conda,)))
    cache = world.creator.place.store.cache
    assert [path.name for path in cache.iterdir() if "scratch" in path.name] == []
    assert list((cache / "uv").glob(".tmp*")) == []
    assert names(world.creator.place.store) == ()


def test_offline_with_an_empty_cache_is_a_fetch_error(world: World) -> None:
    world.creator.access = replace(world.creator.access, offline=True)
    with pytest.raises(FetchError, match="offline") as caught:
        world.create(world.order(small()))
    assert caught.value.exit_code == 8
    assert world.creator.nothing_left()


def test_a_wheel_of_another_hash_is_refused(world: World) -> None:
    one = small()
    world.index.spoilt.add(one.filename)
    with pytest.raises(FetchError, match=r"hash|damaged") as caught:
        world.create(world.order(one))
    assert caught.value.exit_code == 8
    assert world.creator.nothing_left()


def test_an_edited_wheel_file_reaches_no_later_generation(world: World) -> None:
    ordered = world.order(small(), small("other"))
    first = world.create(ordered)
    edited = first.generation.prefix / SITE / "app/__init__.py"
    if edited.stat().st_nlink == 1:
        pytest.skip("this disk has no hard links")
    edited.write_text("EDITED = 1\n")
    second = world.create(ordered, reinstall=True)
    assert (second.generation.prefix / SITE / "app/__init__.py").read_text() == "VERSION = 1\n"
    assert damage(second) == []
    assert [where for _, where in damage(first)] == [f"{SITE}/app/__init__.py"]


def test_an_edited_cache_without_network_is_an_error_not_an_environment(world: World) -> None:
    ordered = world.order(small())
    first = world.create(ordered)
    (first.generation.prefix / SITE / "app/__init__.py").write_text("EDITED = 1\n")
    world.creator.access = replace(world.creator.access, offline=True)
    with pytest.raises(FetchError):
        world.create(ordered, reinstall=True)
    assert world.creator.place.current.resolve() == first.generation.prefix


def test_a_wheel_over_a_conda_file_is_an_error(world: World, tmp_path: Path) -> None:
    conda = make_package(
        tmp_path / "channel", "conda-app", content={f"{SITE}/app/__init__.py": File(content=b"#\n")}
    )
    ordered = world.order(small())
    both = order([world.python, conda], ordered.pip)
    with pytest.raises(Refused, match="wheel-over-conda"):
        world.create(both)
    assert world.creator.nothing_left()


def test_one_distribution_in_both_halves_is_refused(world: World, tmp_path: Path) -> None:
    conda = make_package(
        tmp_path / "channel",
        "conda-app",
        content={f"{SITE}/App-2.0.dist-info/METADATA": File(content=b"Name: app\nVersion: 2.0\n")},
    )
    ordered = world.order(small())
    with pytest.raises(Refused, match="both halves bring app"):
        world.create(order([world.python, conda], ordered.pip))
    assert world.creator.nothing_left()


def test_bytecode_is_compiled_and_belongs(world: World) -> None:
    created = world.create(
        world.order(small(), small("bad", text="print 'two'\n"), imports=("app",)), compiled=True
    )
    prefix = created.generation.prefix
    cached = prefix / SITE / "app/__pycache__/__init__.cpython-311.pyc"
    assert int.from_bytes(cached.read_bytes()[4:8], "little") == 0b01
    assert (prefix / "lib/python3.11/__pycache__/ast.cpython-311.pyc").exists()
    assert not (prefix / SITE / "bad/__pycache__").exists()
    assert created.manifest.compiled
    assert damage(created) == []


def test_the_smoke_test_leaves_no_bytecode(world: World) -> None:
    created = world.create(world.order(small(), imports=("app",)))
    assert not list(created.generation.prefix.rglob("__pycache__"))


def test_wheels_of_a_named_index_come_from_it(world: World, tmp_path: Path) -> None:
    extra = Index()
    with serving(extra=extra) as server:
        one = small()
        extra.wheels.append(one)
        index = OrderIndex(name="extra", url=server.url("extra"), packages=("app",))
        ordered = order(
            [world.python],
            [PipPackage(name="app", version="1.0", hashes=(one.sha256,), index="extra")],
            indexes=(index,),
        )
        created = Creator(root=tmp_path / "other", access=world.creator.access).create(ordered)
    assert created.manifest.packages[-1].source == "extra"
    assert world.server.log == []


@pytest.mark.parametrize("umask", [0o077])
def test_modes_of_wheels_do_not_depend_on_the_umask(world: World, umask: int) -> None:
    before = os.umask(umask)
    try:
        created = world.create(world.order(small()), compiled=True)
    finally:
        os.umask(before)
    assert damage(created) == []


def test_a_pypi_half_needs_a_python(world: World) -> None:
    ordered = replace(world.order(small()), conda=())
    with pytest.raises(LockError, match="no Python"):
        world.create(ordered)


def test_the_machine_s_python_is_packed_and_noted(world: World, packed: CondaPackage) -> None:
    python = ask(next(path for name, path in pythons().items() if name.endswith("3.11")))
    interpreter = Interpreter(
        path=f"{python.path}", version=python.version, digest="d" * 64, stamps=()
    )
    ordered = replace(world.order(small(), imports=("app",)), conda=())
    created = world.creator.create(ordered, host=Host(python=python, interpreter=interpreter))
    assert created.manifest.interpreter == interpreter
    assert created.manifest.packages[0].version == packed.version
    assert damage(created) == []
    assert codes(created) == []


def test_wheels_and_their_programs_are_relinked_where_the_store_lies(world: World) -> None:
    app = wheel(
        "app",
        "1.0",
        files={
            "app/__init__.py": "def main():\n    import sys\n    print(sys.prefix)\n",
            "app-1.0.dist-info/entry_points.txt": "[console_scripts]\napp = app:main\n",
        },
    )
    created = world.create(world.order(app), compiled=True)
    world.creator.root = world.creator.root.rename(world.creator.root.with_name("a place"))
    place = world.creator.place
    (one,) = relink(place, home=place.store.root, progress=Quiet(), who=WHO, now=NOW)
    assert one.findings == ()
    here = replace(created, generation=place.generation(created.generation.identifier))
    assert damage(here) == []
    prefix = here.generation.prefix
    assert run(prefix / "bin/app").strip() == f"{prefix}"
    assert (prefix / "bin/app").read_text().startswith("#!/bin/sh\n'''exec' ")
    old = f"{created.generation.prefix}".encode()
    sources = [path for path in prefix.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert [path for path in sources if old in path.read_bytes()] == []
