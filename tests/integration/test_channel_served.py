"""A folder that `channel index` made, served over http: the engine solves against it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from integration.channel_server import serve

from envbuild.access import Access
from envbuild.channel import archive, local
from envbuild.channel.archive import Member
from envbuild.errors import FetchError
from envbuild.target import Target
from envbuild.tools import rattler
from envbuild.tools.rattler import SolveRequest

BEFORE = datetime(2024, 1, 1, tzinfo=UTC)


def make(
    folder: Path,
    name: str,
    version: str,
    *,
    kind: str = "conda",
    subdir: str = "linux-64",
    depends: tuple[str, ...] = (),
) -> Path:
    path = folder / f"{name}-{version}-0.{kind}"
    index = {
        "name": name,
        "version": version,
        "build": "0",
        "build_number": 0,
        "depends": list(depends),
        "subdir": subdir,
        "timestamp": 1_700_000_000_000,
    }
    archive.write(path, [Member(path=f"share/{name}", content=b"x")], index=index, info={})
    return path


def test_added_archives_are_a_channel_that_can_be_served(tmp_path: Path) -> None:
    archives = [
        make(tmp_path, "thing", "1.0", depends=("base >=1", "any")),
        make(tmp_path, "base", "1.5", kind="tar.bz2"),
        make(tmp_path, "base", "0.5"),
        make(tmp_path, "any", "2.0", subdir="noarch"),
    ]
    local.add(archives, tmp_path / "channels")
    with serve(local.folder_of(tmp_path / "channels")) as server:
        (solved,) = rattler.solve(
            [
                SolveRequest(
                    target=Target(platform="linux-64"),
                    channels=("local",),
                    specs=("local::thing",),
                    cutoff=BEFORE,
                )
            ],
            access=Access(channel_mirrors={"local": (server.url,)}),
            cache=tmp_path / "cache",
        )
    found = {package.name: package for package in solved.packages}
    assert {name: package.version for name, package in found.items()} == {
        "any": "2.0",
        "base": "1.5",
        "thing": "1.0",
    }
    assert found["thing"].sha256 == archive.digests(archives[0]).sha256
    assert server.url not in found["thing"].url
    assert found["thing"].url.endswith("/local/linux-64/thing-1.0-0.conda")


def test_a_channel_that_is_not_served(tmp_path: Path) -> None:
    with serve(tmp_path) as server, pytest.raises(FetchError):
        rattler.solve(
            [
                SolveRequest(
                    target=Target(platform="linux-64"),
                    channels=("local",),
                    specs=("thing",),
                    cutoff=BEFORE,
                )
            ],
            access=Access(channel_mirrors={"local": (server.url,)}),
            cache=tmp_path / "cache",
        )
