"""Locks with wheels of a wheelhouse in the place of those that they were solved with."""

import json
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import Version

from envbuild.lock.model import Lock, PlatformLock
from envbuild.packages import WHEELHOUSE, CondaPackage, PipPackage
from envbuild.pipeline.prefer import preferred
from envbuild.pipeline.rebuilding import with_rebuilt
from envbuild.rebuild.house import House, Kept
from envbuild.rebuild.provenance import Statement
from envbuild.recipe.load import LoadedRecipe, loads

PYTHON = CondaPackage(name="python", version="3.11.9", build="0", url="https://c/linux-64/p.conda")


def _kept(folder: Path, name: str, against: dict[str, str], day: int = 1) -> Kept:
    version = "1.0+gcc12"
    path = folder / f"{name}-{version}-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}-{version}.dist-info/METADATA", f"Name: {name}\nVersion: 1.0\n")
    statement = Statement(
        text=json.dumps({}),
        subject=path.name,
        sha256=name * 8,
        parameters={"compiler": "gcc 12", "cuda": None, "cudaArchs": [], "cxxAbi": None},
        internal={"builtAgainst": against, "python": "3.11.9"},
        started=f"2026-12-0{day}T00:00:00Z",
        finished=f"2026-12-0{day}T00:01:00Z",
    )
    return Kept(
        path=path,
        name=name,
        version=Version(version),
        sha256=statement.sha256,
        statement=statement,
    )


class _Full(House):
    """A wheelhouse that has just these."""

    def __init__(self, *kept: Kept) -> None:
        super().__init__(Path("/nowhere"))
        self.kept = kept

    def wheels(self, name: str | None = None) -> Iterator[Kept]:
        yield from (one for one in self.kept if name in {None, one.name})


def _loaded() -> LoadedRecipe:
    text = "name: demo\npython: '3.11'\npypi: [core, ext]\nbuild: {compiler: gcc 12}\n"
    return loads(text, source="recipes/demo.yaml")


def _lock(*conda: CondaPackage) -> Lock:
    pip = tuple(PipPackage(name=name, version="1.0", hashes=("0",)) for name in ("core", "ext"))
    half = PlatformLock(platform="linux-64", conda=(*conda, PYTHON), pip=pip)
    return Lock(
        name="demo",
        solve_digest="",
        cutoff=datetime(2026, 12, 1, tzinfo=UTC),
        channels=(),
        platforms=(half,),
    )


def _versions(lock: Lock) -> dict[str, str]:
    return {one.name: one.version for one in lock.platforms[0].pip}


def test_a_wheel_that_was_built_against_a_rebuilt_one_is_taken_with_it(tmp_path: Path) -> None:
    core, ext = _kept(tmp_path, "core", {}), _kept(tmp_path, "ext", {"core": "1.0+gcc12"})
    made = preferred(_lock(), _loaded(), _Full(core, ext))
    assert _versions(made) == {"core": "1.0+gcc12", "ext": "1.0+gcc12"}
    assert _versions(preferred(_lock(), _loaded(), _Full(ext))) == {"core": "1.0", "ext": "1.0"}


def test_one_that_was_built_against_the_official_one_is_not(tmp_path: Path) -> None:
    core, ext = _kept(tmp_path, "core", {}), _kept(tmp_path, "ext", {"core": "1.0"})
    made = preferred(_lock(), _loaded(), _Full(core, ext))
    assert _versions(made) == {"core": "1.0+gcc12", "ext": "1.0"}


def test_what_is_built_after_it_does_not_see_conda_s(tmp_path: Path) -> None:
    url = "https://conda.anaconda.org/conda-forge/linux-64/core-1.0-0.conda"
    conda = CondaPackage(name="core", version="1.0", build="0", url=url)
    half = replace(_lock(conda).platforms[0], pip=())
    made = with_rebuilt(half, _kept(tmp_path, "core", {}), replaces=("core 1.0 0",))
    assert made.conda == (PYTHON,)
    assert [(one.name, one.version, one.index) for one in made.pip] == [
        ("core", "1.0+gcc12", WHEELHOUSE)
    ]
