"""Two packages with one path, and links that lead nowhere: what creation and verify say."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from integration.creating import Creator, codes, order
from integration.index_server import wheel
from integration.packages import File, Made, make_package
from integration.test_create_wheels import SITE, World, packed, world

from envbuild.errors import Refused
from envbuild.findings import Severity
from envbuild.store import verify
from envbuild.store.create import Created
from envbuild.store.order import Allowed

__all__ = ["packed", "world"]


@pytest.fixture
def creator(tmp_path: Path) -> Creator:
    return Creator(root=tmp_path / "store")


def package(tmp_path: Path, name: str, files: Mapping[str, File | bytes]) -> Made:
    content = {
        path: File(content=file) if isinstance(file, bytes) else file
        for path, file in files.items()
    }
    return make_package(tmp_path / "channel", name, content=content)


def link(target: str) -> File:
    return File(content=target.encode(), link=True)


def said(created: Created) -> list[tuple[str, str, str, str]]:
    """Return what verify says: code, severity, path, why."""
    return [
        (finding.code, finding.severity, finding.where, finding.why)
        for finding in verify.verify(created.generation)
    ]


def test_of_two_conda_packages_the_same_one_wins_each_time(
    creator: Creator, tmp_path: Path
) -> None:
    aaa = package(tmp_path, "aaa", {"share/same.txt": b"a", "share/aaa": b""})
    bbb = package(tmp_path, "bbb", {"share/same.txt": b"b", "share/bbb": b""})
    for packages in ([aaa, bbb], [bbb, aaa]):
        created = creator.create(order(packages), reinstall=True)
        (finding,) = created.manifest.findings
        assert (finding.code, finding.where) == ("clobber", "share/same.txt")
        assert finding.what == "conda:aaa and conda:bbb both have it with other contents"
        assert finding.why == "the content of conda:aaa is there"
        assert (created.generation.prefix / "share/same.txt").read_bytes() == b"a"
        assert said(created) == []


def test_equal_contents_and_equal_links_are_no_finding(creator: Creator, tmp_path: Path) -> None:
    files: dict[str, File | bytes] = {"share/same.txt": b"same", "share/link": link("same.txt")}
    packages = [package(tmp_path, name, files) for name in ("aaa", "bbb")]
    created = creator.create(order(packages))
    assert codes(created) == []
    assert said(created) == []


@pytest.mark.parametrize("other", [link("two"), b"a file"])
def test_links_that_differ_are_told(creator: Creator, tmp_path: Path, other: File | bytes) -> None:
    aaa = package(tmp_path, "aaa", {"share/x": link("one"), "share/one": b"1", "share/two": b"2"})
    bbb = package(tmp_path, "bbb", {"share/x": other})
    created = creator.create(order([aaa, bbb]))
    (finding,) = created.manifest.findings
    assert (finding.code, finding.where) == ("clobber", "share/x")
    assert finding.why == "the content of conda:aaa is there"
    assert said(created) == []


def test_links_that_lead_nowhere_are_told_once_a_package(creator: Creator, tmp_path: Path) -> None:
    aaa = package(
        tmp_path,
        "aaa",
        {
            "share/good": link("file"),
            "share/file": b"",
            "share/round": link("round"),
            "share/b": link("../gone"),
        },
    )
    bbb = package(tmp_path, "bbb", {"lib": link("share"), "out": link("/no/such/place")})
    created = creator.create(order([aaa, bbb]))
    found = [(one.code, one.severity, one.where, one.what) for one in created.manifest.findings]
    assert found == [
        (
            "dangling-link",
            Severity.WARNING,
            "share/b",
            "it leads to ../gone, which is not there (conda:aaa)",
        ),
        (
            "dangling-link",
            Severity.WARNING,
            "out",
            "it leads to /no/such/place, which is not there (conda:bbb)",
        ),
    ]
    assert created.manifest.findings[0].why == "the same of share/round"
    assert said(created) == []


def test_a_wheel_over_a_conda_file_where_the_recipe_allows_it_by_name(
    world: World, tmp_path: Path
) -> None:
    shared = f"{SITE}/app/__init__.py"
    conda = package(tmp_path, "conda-app", {shared: b"#\n", f"{SITE}/app/own.py": b""})
    ordered = world.order(wheel("app", "1.0", files={"app/__init__.py": "WHEEL = 1\n"}))
    both = order([world.python, conda], ordered.pip)
    elsewhere = Allowed(code="wheel-over-conda", reason="x", until="2030-01-01", where="other")
    with pytest.raises(Refused, match=r"wheel app replaced a file of conda's conda-app"):
        world.create(replace(both, allow=(elsewhere,)))
    assert world.creator.nothing_left()
    created = world.create(replace(both, allow=(replace(elsewhere, where=shared),)))
    assert [(one.code, one.severity) for one in created.manifest.findings] == [
        ("wheel-over-conda", Severity.NOTE)
    ]
    assert (created.generation.prefix / shared).read_text() == "WHEEL = 1\n"
    assert said(created) == [("record-differs", Severity.NOTE, shared, "the content is pypi:app's")]


def test_of_two_wheels_the_same_one_wins_each_time(world: World) -> None:
    first = wheel("app", "1.0", files={"app/__init__.py": "", "tests/x.py": "app\n"})
    second = wheel("bpp", "1.0", files={"bpp/__init__.py": "", "tests/x.py": "bpp\n"})
    ordered = world.order(first, second)
    for _ in range(6):  # uv installs them at once: the one or the other comes last
        created = world.create(ordered, reinstall=True)
        (finding,) = created.manifest.findings
        assert (finding.code, finding.where) == ("clobber", f"{SITE}/tests/x.py")
        assert finding.what == "pypi:app and pypi:bpp both have it with other contents"
        assert (created.generation.prefix / SITE / "tests/x.py").read_text() == "app\n"
        assert said(created) == [
            ("record-differs", Severity.NOTE, f"{SITE}/tests/x.py", "the content is pypi:app's")
        ]
        world.creator.access = replace(world.creator.access, offline=True)
