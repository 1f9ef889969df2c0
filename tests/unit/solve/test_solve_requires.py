"""Whether both halves meet every requirement."""

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from envbuild.errors import FetchError
from envbuild.packages import CondaPackage
from envbuild.solve.markers import environment
from envbuild.solve.metadata import Metadata, gather, parse
from envbuild.solve.names import Provided
from envbuild.solve.requires import Locked, Walked, walk
from envbuild.solve.wheels import Wheel

ENVIRONMENT = environment("3.11.9", "linux-64")


def locked(name: str, version: str = "1.0", *requires: str, python: str | None = None) -> Locked:
    return Locked(
        name=canonicalize_name(name),
        version=Version(version),
        metadata=(Metadata(requires=requires, requires_python=python),),
    )


def conda(name: str, version: str) -> Provided:
    package = CondaPackage(
        name=name, version=version, build="0", url="https://x/c/linux-64/n.conda"
    )
    return Provided(
        name=canonicalize_name(name), version=Version(version), exact=True, package=package
    )


def walked(roots: list[str], half: list[Locked], provided: list[Provided] | None = None) -> Walked:
    result = Walked()
    walk(
        [Requirement(root) for root in roots],
        {one.name: one for one in half},
        {one.name: one for one in provided or []},
        ENVIRONMENT,
        result,
    )
    return result


def told(result: Walked) -> list[tuple[str, str]]:
    return [(finding.code, finding.what) for finding in result.findings.values()]


def test_who_asks_for_what() -> None:
    result = walked(
        ["App", "leaf"],
        [locked("app", "1.0", "leaf>=1", "mid"), locked("leaf"), locked("mid", "1.0", "Leaf")],
    )
    assert result.via == {
        "app": {"recipe"},
        "leaf": {"app", "mid", "recipe"},
        "mid": {"app"},
    }
    assert told(result) == []


@pytest.mark.parametrize(
    ("line", "findings"),
    [
        ("gone", ["app needs gone, which no half has"]),
        ("gone ; sys_platform == 'win32'", []),
        ("gone ; extra == 'x'", []),
        ("gone ; extra == 'x' or python_version > '3'", ["app needs gone, which no half has"]),
        ("leaf<1", ["app needs leaf<1, the PyPI half has 1.0"]),
        ("leaf==1.0.0", []),
        ("leaf===1.0.0", []),
        ("torch>=2.5", ["app needs torch>=2.5, the conda half has 2.4.0rc1"]),
        ("torch>=2.3", []),
    ],
)
def test_one_requirement(line: str, findings: list[str]) -> None:
    result = walked(
        ["app"], [locked("app", "1.0", line), locked("leaf")], [conda("torch", "2.4.0rc1")]
    )
    assert [what for _, what in told(result)] == findings
    assert {code for code, _ in told(result)} <= {"requirement-unmet"}


def test_extras_are_followed_once_asked_for() -> None:
    half = [
        locked("app", "1.0", "lib[fast]"),
        locked("lib", "1.0", "wings ; extra == 'fast'", "gone ; extra == 'slow'"),
        locked("wings"),
    ]
    result = walked(["lib", "app"], half)
    assert result.via["wings"] == {"lib"}
    assert told(result) == []
    assert [what for _, what in told(walked(["lib[slow]"], half))] == [
        "lib needs gone, which no half has"
    ]


def test_an_extra_of_a_conda_distribution() -> None:
    result = walked(["torch[opt]"], [], [conda("torch", "2.4.0")])
    assert told(result) == [
        ("conda-extra", "recipe needs torch[opt], and conda's torch has no extras")
    ]


def test_cycles_end() -> None:
    result = walked(["a[x]"], [locked("a", "1", "b", "b[x] ; extra == 'x'"), locked("b", "1", "a")])
    assert told(result) == []


def test_what_nothing_asks_for_is_looked_at() -> None:
    result = walked([], [locked("app", "1.0", "gone", python=">=3.12")])
    assert result.via == {}
    assert sorted(told(result)) == [
        ("python-unmet", "app 1.0 needs Python >=3.12, this is 3.11.9"),
        ("requirement-unmet", "app needs gone, which no half has"),
    ]


def test_a_line_that_is_no_requirement() -> None:
    assert told(walked(["app"], [locked("app", "1.0", "what is this?", python="nonsense")])) == [
        ("unreadable-requirement", "'what is this?' is no requirement that can be read")
    ]


def test_roots_with_markers() -> None:
    assert told(walked(["gone ; python_version < '3.11'"], [])) == []


def test_metadata_text() -> None:
    text = (
        "Metadata-Version: 2.1\nName: app\nRequires-Dist: leaf>=1\nRequires-Python: >=3.9\n"
        "Requires-Dist: more ;\n  extra == 'x'\n\nRequires-Dist: not a header\n"
    )
    assert parse(text) == Metadata(
        requires=("leaf>=1", "more ; extra == 'x'"), requires_python=">=3.9"
    )
    assert parse("Name: app\n") == Metadata(requires=(), requires_python=None)


def wheel(sha256: str | None) -> Wheel:
    return Wheel(filename="a-1-py3-none-any.whl", url="", sha256=sha256, size=1, uploaded=None)


def test_metadata_is_kept_by_digest(tmp_path: Path) -> None:
    asked: list[str | None] = []

    def read(one: Wheel) -> str:
        asked.append(one.sha256)
        return f"Requires-Dist: d{one.sha256}\n"

    wheels = [wheel("aa11"), wheel("bb22"), wheel("aa11"), wheel(None)]
    first = gather(wheels, cache=tmp_path, read=read)
    assert {digest: one.requires for digest, one in first.items()} == {
        "aa11": ("daa11",),
        "bb22": ("dbb22",),
    }
    assert gather(wheels, cache=tmp_path, read=read) == first
    assert sorted(filter(None, asked)) == ["aa11", "bb22"]
    (tmp_path / "aa/aa11").write_text("{")
    asked.clear()
    assert gather(wheels, cache=tmp_path, read=read) == first
    assert asked == ["aa11"]


def test_a_fetch_that_fails_is_told(tmp_path: Path) -> None:
    def read(_: Wheel) -> str:
        message = "gone"
        raise FetchError(message)

    with pytest.raises(FetchError, match="gone"):
        gather([wheel("aa11")], cache=tmp_path, read=read)
