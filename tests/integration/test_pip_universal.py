"""One PyPI half for every Python and platform of a recipe on the host's Python."""

from pathlib import Path

import pytest
from integration.index_server import BuiltWheel, Index, serving, wheel
from integration.pip_solving import Solver, codes, one, pins

from envbuild.errors import NoSolution


def wheels_for(
    name: str,
    version: str,
    pythons: str,
    *,
    machines: str = "x86_64 aarch64",
    requires: tuple[str, ...] = (),
    requires_python: str | None = None,
) -> list[BuiltWheel]:
    """Return a wheel per Python (`cp311 cp312`) and machine."""
    return [
        wheel(
            name,
            version,
            tag=f"{python}-{python}-manylinux_2_17_{machine}",
            requires=requires,
            requires_python=requires_python,
        )
        for python in pythons.split()
        for machine in machines.split()
    ]


def test_one_version_for_all_pythons_where_there_is_one(tmp_path: Path) -> None:
    wheels = wheels_for("array", "2.4", "cp311 cp312 cp313 cp314", requires_python=">=3.11")
    wheels += wheels_for("array", "2.5", "cp312 cp313 cp314", requires_python=">=3.12")
    wheels.append(wheel("array", "2.4", tag="cp311-cp311-win_amd64"))
    with serving(main=Index(wheels=wheels)) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).universal(
            "python: '>=3.11,<3.15'\npypi: [array]"
        )
    assert [(each.version, each.marker) for each in half.packages] == [("2.4", None)]
    intel = [each.sha256 for each in wheels[:8] if "x86_64" in each.filename]
    assert half.packages[0].hashes == tuple(sorted(intel))
    assert half.findings == ()


def test_hashes_of_all_platforms_of_the_recipe(tmp_path: Path) -> None:
    wheels = wheels_for("array", "1.0", "cp311 cp312")
    with serving(main=Index(wheels=wheels)) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).universal(
            "python: '>=3.11,<3.13'\ntarget: {platforms: [linux-64, linux-aarch64]}\npypi: [array]"
        )
    assert half.packages[0].hashes == tuple(sorted(each.sha256 for each in wheels))


def test_markers_are_kept_for_python_and_machine_alone(tmp_path: Path) -> None:
    wheels = [
        wheel(
            "app",
            "1.0",
            requires=[
                "old ; python_version < '3.12'",
                "windows ; sys_platform == 'win32'",
                "posix ; os_name == 'posix' and sys_platform != 'win32'",
                "arm ; platform_machine == 'aarch64'",
                "intel ; platform_machine == 'x86_64' and python_version >= '3.13'",
                "mac ; platform_machine == 'arm64'",
                "either ; python_version < '3.12' or sys_platform == 'linux'",
            ],
        ),
        *(
            wheel(name, "1.0")
            for name in ("old", "windows", "posix", "arm", "intel", "mac", "either")
        ),
    ]
    recipe = "python: '>=3.11,<3.15'\ntarget: {platforms: [PLATFORMS]}\npypi: [app]"
    with serving(main=Index(wheels=wheels)) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        both = solver.universal(recipe.replace("PLATFORMS", "linux-64, linux-aarch64"))
        intel = solver.universal(recipe.replace("PLATFORMS", "linux-64"))
    assert {each.name: each.marker for each in both.packages} == {
        "app": None,
        "arm": "platform_machine == 'aarch64'",
        "either": None,
        "intel": "platform_machine == 'x86_64' and python_full_version >= '3.13'",
        "old": "python_full_version < '3.12'",
        "posix": None,
    }
    assert {each.name: each.marker for each in intel.packages} == {
        "app": None,
        "either": None,
        "intel": "python_full_version >= '3.13'",
        "old": "python_full_version < '3.12'",
        "posix": None,
    }
    assert both.findings == intel.findings == ()


def test_the_recipes_own_markers(tmp_path: Path) -> None:
    wheels = [wheel("tomli", "2.0"), wheel("requests", "2.0")]
    with serving(main=Index(wheels=wheels)) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        recipe = "pypi: ['tomli ; python_version < \"3.11\"', requests]\npython: "
        assert pins(solver.universal(recipe + "'>=3.11,<3.15'")) == {"requests": "2.0"}
        older = solver.universal(recipe + "'>=3.10,<3.15'")
    assert one(older, "tomli").marker == "python_full_version < '3.11'"


def test_a_pair_without_a_wheel_is_named(tmp_path: Path) -> None:
    wheels = wheels_for("torch", "2.4", "cp311 cp312")
    wheels += wheels_for("torch", "2.4", "cp313", machines="aarch64")
    recipe = "python: '>=3.11,<3.14'\ntarget: {platforms: [linux-64, linux-aarch64]}\npypi: [torch]"
    with serving(main=Index(wheels=wheels)) as server, pytest.raises(NoSolution) as caught:
        Solver(folder=tmp_path, index=server.url("main")).universal(recipe)
    assert caught.value.message == "r: torch 2.4 has no wheel for Python 3.13 on linux-64"
    assert "recipes/r.yaml:5:8: torch" in caught.value.details


def test_all_pairs_without_a_wheel_are_named(tmp_path: Path) -> None:
    wheels = [*wheels_for("torch", "2.4", "cp311"), *wheels_for("vision", "1.0", "cp311")]
    with serving(main=Index(wheels=wheels)) as server, pytest.raises(NoSolution) as caught:
        Solver(folder=tmp_path, index=server.url("main")).universal(
            "python: '>=3.11,<3.13'\npypi: [torch, vision]"
        )
    assert caught.value.details.splitlines()[:2] == [
        "torch 2.4 has no wheel for Python 3.12 on linux-64",
        "vision 1.0 has no wheel for Python 3.12 on linux-64",
    ]


def test_versions_that_differ_by_python(tmp_path: Path) -> None:
    wheels = wheels_for("array", "1.0", "cp311")
    wheels += wheels_for("array", "2.0", "cp312", requires_python=">=3.12")
    with serving(main=Index(wheels=wheels)) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        recipe = "python: '>=3.11,<3.13'\npypi: [array]"
        half = solver.universal(recipe)
        newer = wheels_for("array", "2.1", "cp312", requires_python=">=3.12")
        server.indexes["main"] = Index(wheels=[*wheels, *newer])
        assert solver.universal(recipe, prefer=half.packages).packages == half.packages
    assert [(each.version, each.marker) for each in half.packages] == [
        ("1.0", "python_full_version < '3.12'"),
        ("2.0", "python_full_version >= '3.12'"),
    ]
    assert half.findings == ()


def test_a_listed_package_comes_from_its_index_in_every_fork(tmp_path: Path) -> None:
    public = [
        wheel("app", "1.0", requires=["inner ; python_version < '3.12'"]),
        wheel("inner", "99.0"),
    ]
    corp = [wheel("inner", "1.0"), wheel("unused", "1.0")]
    with serving(public=Index(wheels=public), corp=Index(wheels=corp)) as server:
        half = Solver(folder=tmp_path, index=server.url("public")).universal(
            f"indexes:\n- {{name: corp, url: '{server.url('corp')}', packages: [inner, unused]}}\n"
            "python: '>=3.11,<3.15'\npypi: [app]"
        )
    assert [(each.name, each.version, each.index, each.marker) for each in half.packages] == [
        ("app", "1.0", None, None),
        ("inner", "1.0", "corp", "python_full_version < '3.12'"),
    ]


def test_requirements_are_checked_on_every_python(tmp_path: Path) -> None:
    wheels = [
        wheel("app", "1.0", tag="cp311-none-any", requires=["leaf"]),
        wheel("app", "1.0", tag="py3-none-any", requires=["gone ; python_version >= '3.13'"]),
        wheel("leaf", "1.0"),
    ]
    with serving(main=Index(wheels=wheels)) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).universal(
            "python: '>=3.11,<3.15'\npypi: [app]"
        )
    assert set(codes(half)) == {"requirement-unmet"}
    assert "which no half has" in half.findings[0].what


def test_a_range_without_a_floor(tmp_path: Path) -> None:
    with pytest.raises(NoSolution, match="names no lowest Python"):
        Solver(folder=tmp_path, index=None).universal("python: '<3.15'\npypi: [app]")
