"""Which libstdc++ the libraries of a wheel get, on prefixes and hosts that are made up."""

import posixpath
from pathlib import Path

import pytest
from fuzz.made import elf, record_row

from envbuild.findings import Finding, Severity
from envbuild.store import installed, libraries, libstdcxx
from envbuild.store.ledger import Ledger

_SITE = "lib/python3.11/site-packages"
_NAME = libraries.LIBSTDCXX
_CONDAS = {"RPATH": ["$ORIGIN/../lib"]}


def _library(wanted: str, **search: str) -> bytes:
    texts = {"NEEDED": [_NAME], **{tag: [folder] for tag, folder in search.items()}}
    return elf(texts=texts, versions={_NAME: [f"GLIBCXX_{wanted}"]})


def _provider(newest: str) -> bytes:
    return elf(texts={"SONAME": [_NAME]}, defines=["GLIBCXX_3.4", f"GLIBCXX_{newest}"])


class _World:
    """A prefix and a host; 3.4.30 is what the host has."""

    def __init__(self, root: Path) -> None:
        self.prefix, self.host = root / "prefix", root / "host"
        self.ledger = Ledger(root / "ledger.sqlite")
        self.write(self.host / f"usr/lib64/{_NAME}", _provider("3.4.30"))
        self.python(_CONDAS)

    def write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def python(self, texts: dict[str, list[str]]) -> None:
        self.write(self.prefix / "bin/python", elf(texts=texts))

    def brings(self, newest: str) -> None:
        self.write(self.prefix / f"lib/{_NAME}", _provider(newest))

    def wheel(self, **files: bytes) -> None:
        record = "".join(record_row(f"k/{name}.so", data) for name, data in files.items())
        for name, data in files.items():
            self.write(self.prefix / f"{_SITE}/k/{name}.so", data)
        self.write(self.prefix / f"{_SITE}/k-1.dist-info/RECORD", record.encode())

    def judge(self) -> tuple[Finding, ...]:
        seen = installed.walk(self.prefix)
        owners = installed.wheel_owners(self.prefix, seen, self.ledger)
        read = libraries.read(self.prefix, seen, owners, self.ledger, platform="linux-64")
        return libstdcxx.judge(self.prefix, read, host=self.host)


@pytest.fixture
def world(tmp_path: Path) -> _World:
    return _World(tmp_path)


def test_what_the_host_has_is_enough(world: _World) -> None:
    world.wheel(a=_library("3.4.29"), b=_library("3.4.30", RUNPATH="$ORIGIN"))
    assert world.judge() == ()


def test_nothing_newer_anywhere(world: _World) -> None:
    world.brings("3.4.31")
    world.wheel(a=_library("3.4.29"), b=_library("3.4.33"))
    (found,) = world.judge()
    assert (found.code, found.severity) == ("libstdcxx-too-old", Severity.WARNING)
    assert found.where == "pypi:k"
    assert found.what == (
        f"it needs libstdc++ GLIBCXX_3.4.33, and it gets one with GLIBCXX_3.4.31: {_SITE}/k/b.so"
    )
    (world.prefix / f"{_SITE}/k/b.so").write_bytes(b"")  # what the ledger knows is not read again
    assert world.judge() == (found,)


@pytest.mark.parametrize(
    ("python", "search", "gets"),
    [
        (_CONDAS, {}, True),
        (_CONDAS, {"RPATH": "$ORIGIN/k.libs"}, True),
        (_CONDAS, {"RUNPATH": "$ORIGIN/k.libs"}, False),
        (_CONDAS, {"RUNPATH": "${ORIGIN}/../../../"}, True),
        ({}, {}, False),
        ({"RUNPATH": ["$ORIGIN/../lib"]}, {}, False),  # it is not handed on (ld.so(8))
    ],
)
def test_the_environments_own(
    world: _World, python: dict[str, list[str]], search: dict[str, str], *, gets: bool
) -> None:
    world.brings("3.4.33")
    world.python(python)
    world.wheel(a=_library("3.4.33", **search))
    found = world.judge()
    assert bool(found) is not gets
    assert all("it gets one with GLIBCXX_3.4.30" in one.what for one in found)
    assert all("keeps the loader from the environment's own" in one.why for one in found)


def test_one_that_a_wheel_brings_is_its_own(world: _World) -> None:
    world.write(world.prefix / f"{_SITE}/k.libs/{_NAME}", _provider("3.4.33"))
    world.wheel(a=_library("3.4.33", RPATH=posixpath.join("$ORIGIN", "../k.libs")))
    assert world.judge() == ()


def test_a_host_without_any(world: _World) -> None:
    (world.host / f"usr/lib64/{_NAME}").unlink()
    world.wheel(a=_library("3.4.9"))
    (found,) = world.judge()
    assert "it needs libstdc++ GLIBCXX_3.4.9, and there is none" in found.what
