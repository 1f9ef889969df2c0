"""The PyPI half beside a conda half, solved by the real uv against an index on localhost."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from integration.faults import Fault
from integration.index_server import LONG_AGO, Index, serving, wheel
from integration.pip_solving import CUTOFF, Solver, codes, conda, one, pins

from envbuild.errors import FetchError, NoSolution
from envbuild.solve.solution import Upgrade


def test_conda_versions_count_and_nothing_arrives_twice(tmp_path: Path) -> None:
    index = Index(
        wheels=[
            wheel("train", "2.0", requires=["torch>=2.6", "leaf"]),
            wheel("train", "1.0", requires=["torch>=2.0", "leaf"]),
            wheel("leaf", "1.0"),
            wheel("torch", "2.6.0", requires=["nvidia-cudnn-cu12"]),
            wheel("nvidia-cudnn-cu12", "9.1"),
        ]
    )
    with serving(main=index) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).solve(
            "pypi: [train]", half=conda("pytorch=2.4.0")
        )
    assert pins(half) == {"leaf": "1.0", "train": "1.0"}
    assert one(half, "leaf").via == ("train",)
    assert one(half, "train").via == ("recipe",)
    assert half.findings == ()


def test_a_refusal_has_uvs_reason_and_the_recipes_line(tmp_path: Path) -> None:
    index = Index(wheels=[wheel("train", "2.0", requires=["torch==2.7.1"]), wheel("other", "1")])
    with serving(main=index) as server, pytest.raises(NoSolution) as caught:
        Solver(folder=tmp_path, index=server.url("main")).solve(
            "pypi:\n- other\n- train ==2.0\n", half=conda("pytorch=2.4.0")
        )
    assert "train depend on torch==2.7.1" in caught.value.details
    assert "torch==2.4.0 (conda)" in caught.value.details
    assert "recipes/r.yaml:5:3: train ==2.0" in caught.value.details
    assert "other" not in caught.value.details
    assert "127.0.0.1" not in caught.value.details


def test_arbitrary_equality_on_a_conda_distribution(tmp_path: Path) -> None:
    with serving(main=Index(wheels=[wheel("sympy", "1.14.0")])) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        half = solver.solve("pypi: ['sympy===1.14.0']", half=conda("sympy=1.14.0"))
        assert half.packages == ()
        assert pins(solver.solve("pypi: ['sympy===1.14.0']")) == {"sympy": "1.14.0"}


def test_an_extra_of_a_conda_distribution_is_a_finding(tmp_path: Path) -> None:
    index = Index(wheels=[wheel("train", "1", requires=["torch[opt]"])])
    with serving(main=index) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).solve(
            "pypi: [train, 'torch[dev]']", half=conda("pytorch=2.4.0")
        )
    assert codes(half) == ["conda-extra", "conda-extra"]
    assert {finding.where for finding in half.findings} == {"recipe", "train"}


def test_extras_of_the_pypi_half_are_followed(tmp_path: Path) -> None:
    index = Index(
        wheels=[
            wheel("app", "1", requires=["more ; extra == 'all'", "never ; extra == 'other'"]),
            wheel("more", "1"),
        ]
    )
    with serving(main=index) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).solve("pypi: ['app[all]']")
    assert pins(half) == {"app": "1", "more": "1"}
    assert one(half, "more").via == ("app",)
    assert half.findings == ()


def test_the_cutoff_is_exclusive(tmp_path: Path) -> None:
    index = Index(
        wheels=[
            wheel("app", "1.0", uploaded=CUTOFF - timedelta(milliseconds=1)),
            wheel("app", "2.0", uploaded=CUTOFF),
        ]
    )
    with serving(main=index) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        assert pins(solver.solve("pypi: [app]")) == {"app": "1.0"}
        later = CUTOFF + timedelta(milliseconds=1)
        assert pins(solver.solve("pypi: [app]", cutoff=later)) == {"app": "2.0"}


def test_a_file_after_the_cutoff_is_no_hash_of_an_older_release(tmp_path: Path) -> None:
    early = wheel("app", "1.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    late = wheel("app", "1.0", tag="py3-none-any", uploaded=CUTOFF)
    with serving(main=Index(wheels=[early, late])) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).solve("pypi: [app]")
    assert one(half, "app").hashes == (early.sha256,)


def test_only_wheels_that_the_target_can_use(tmp_path: Path) -> None:
    fitting = [
        wheel("app", "1.0", tag="cp311-cp311-manylinux_2_28_x86_64"),
        wheel("app", "1.0", tag="cp38-abi3-manylinux_2_17_x86_64"),
        wheel("app", "1.0", tag="py3-none-any"),
    ]
    others = [
        wheel("app", "1.0", tag=tag)
        for tag in (
            "cp311-cp311-manylinux_2_34_x86_64",
            "cp311-cp311-manylinux_2_17_aarch64",
            "cp311-cp311-musllinux_1_2_x86_64",
            "cp312-cp312-manylinux_2_17_x86_64",
            "cp312-abi3-manylinux_2_17_x86_64",
            "cp311-cp311-win_amd64",
            "cp311-cp311-macosx_11_0_arm64",
        )
    ]
    with serving(main=Index(wheels=[*others, *fitting])) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).solve("pypi: [app]")
    assert one(half, "app").hashes == tuple(sorted(each.sha256 for each in fitting))


def test_an_aarch64_half_is_solved_on_any_machine(tmp_path: Path) -> None:
    arm = wheel("app", "1.0", tag="cp311-cp311-manylinux_2_17_aarch64")
    intel = wheel("app", "2.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    with serving(main=Index(wheels=[arm, intel])) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).solve(
            "target: {platforms: [linux-aarch64]}\npypi: [app]", platform="linux-aarch64"
        )
    assert pins(half) == {"app": "1.0"}


def test_a_package_without_a_wheel_is_refused(tmp_path: Path) -> None:
    index = Index(wheels=[wheel("app", "1.0", tag="cp313-cp313-manylinux_2_17_x86_64")])
    with serving(main=index) as server, pytest.raises(NoSolution) as caught:
        Solver(folder=tmp_path, index=server.url("main")).solve("pypi: [app]")
    assert "app" in caught.value.details


def test_markers_of_the_recipe_count_for_condas_full_python_version(tmp_path: Path) -> None:
    wheels = [wheel("tomli", "2.0"), wheel("requests", "2.0"), wheel("patched", "1.0")]
    recipe = (
        "pypi: ['tomli ; python_version < \"3.11\"', requests, "
        "'patched ; python_full_version >= \"3.11.5\"']"
    )
    with serving(main=Index(wheels=wheels)) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        assert pins(solver.solve(recipe)) == {"patched": "1.0", "requests": "2.0"}
        older = solver.solve(recipe, half=conda(python="3.10.20"))
    assert pins(older) == {"requests": "2.0", "tomli": "2.0"}


def test_hashes_of_the_recipe_narrow_those_of_the_lock(tmp_path: Path) -> None:
    wheels = [wheel("app", "1.0"), wheel("app", "1.0", tag="cp311-cp311-manylinux_2_17_x86_64")]
    with serving(main=Index(wheels=wheels)) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        half = solver.solve(f"pypi: ['app==1.0 --hash=sha256:{wheels[0].sha256}']")
        assert one(half, "app").hashes == (wheels[0].sha256,)
        with pytest.raises(NoSolution, match="has a hash that the recipe asks for") as caught:
            solver.solve(f"pypi: ['app==1.0 --hash=sha256:{'0' * 64}']")
    assert wheels[1].filename in caught.value.details


def test_a_relock_keeps_what_need_not_change(tmp_path: Path) -> None:
    index = Index(wheels=[wheel("app", "1.0", requires=["leaf"]), wheel("leaf", "1.0")])
    with serving(main=index) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        old = solver.solve("pypi: [app]").packages
        index.wheels += [wheel("app", "2.0", requires=["leaf"]), wheel("leaf", "2.0")]
        kept = solver.solve("pypi: [app]", prefer=old)
        moved = solver.solve(
            "pypi: [app]", prefer=old, upgrade=Upgrade(packages=frozenset({"Leaf"}))
        )
        new = solver.solve("pypi: [app]", prefer=old, upgrade=Upgrade(everything=True))
        forced = solver.solve("pypi: ['app>=2']", prefer=old)
    assert kept.packages == old
    assert pins(moved) == {"app": "1.0", "leaf": "2.0"}
    assert pins(new) == {"app": "2.0", "leaf": "2.0"}
    assert pins(forced) == {"app": "2.0", "leaf": "1.0"}


def test_a_file_that_a_mirror_lacks_is_a_finding(tmp_path: Path) -> None:
    wheels = [wheel("app", "1.0"), wheel("app", "1.0", tag="cp311-cp311-manylinux_2_17_x86_64")]
    index = Index(wheels=wheels)
    with serving(main=index) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        old = solver.solve("pypi: [app]").packages
        index.missing.add(wheels[0].filename)
        half = solver.solve("pypi: [app]", prefer=old)
    assert codes(half) == ["missing-file"]
    assert "lacks 1 of the 2 wheels of app 1.0" in half.findings[0].what


def test_a_yanked_release_is_a_finding(tmp_path: Path) -> None:
    wheels = [wheel("app", "1.0", yanked="broken on Tuesdays"), wheel("app", "0.9")]
    with serving(main=Index(wheels=wheels)) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        assert pins(solver.solve("pypi: [app]")) == {"app": "0.9"}
        half = solver.solve("pypi: ['app==1.0']")
    assert codes(half) == ["yanked"]
    assert half.findings[0].why == "broken on Tuesdays"


def test_an_index_without_upload_times_is_refused_under_a_cutoff(tmp_path: Path) -> None:
    index = Index(wheels=[wheel("app", "1.0")], dates=False)
    with serving(main=index) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        with pytest.raises(NoSolution, match="the default index gives no upload times") as caught:
            solver.solve("pypi: [app]")
        assert "cutoff: none" in (caught.value.hint or "")
        recipe = f"""
indexes:
- {{name: corp, url: '{server.url("main")}', packages: [app]}}
pypi: [app]
"""
        with pytest.raises(NoSolution, match="index corp gives no upload times") as caught:
            solver.solve(recipe)
        assert "`cutoff: none`" in (caught.value.hint or "")
        half = solver.solve(recipe.replace("[app]}", "[app], cutoff: none}"))
    assert pins(half) == {"app": "1.0"}
    assert half.uncut_indexes == ("corp",)
    assert codes(half) == ["cutoff-not-applied"]


def test_an_index_has_its_own_cutoff(tmp_path: Path) -> None:
    wheels = [wheel("app", "1.0"), wheel("app", "2.0", uploaded=CUTOFF - timedelta(days=3))]
    with serving(main=Index(), corp=Index(wheels=wheels)) as server:
        recipe = f"""
indexes:
- {{name: corp, url: '{server.url("corp")}', packages: [app], cutoff: AGE}}
pypi: [app]
"""
        solver = Solver(folder=tmp_path, index=server.url("main"))
        assert pins(solver.solve(recipe.replace("AGE", "7d"))) == {"app": "1.0"}
        assert pins(solver.solve(recipe.replace("AGE", "1d"))) == {"app": "2.0"}
        later = recipe.replace("AGE", "2030-01-01")
        assert pins(solver.solve(later, cutoff=LONG_AGO + timedelta(days=1))) == {"app": "1.0"}


@pytest.mark.parametrize("sidecars", [True, False])
@pytest.mark.parametrize("ranges", [True, False])
def test_html_and_json_give_the_same_half(tmp_path: Path, *, sidecars: bool, ranges: bool) -> None:
    wheels = [
        wheel("app", "1.0", requires=["leaf>=1"], requires_python=">=3.9"),
        wheel("leaf", "1.0"),
    ]
    json = Index(wheels=wheels, sidecars=sidecars, ranges=ranges)
    html = Index(wheels=wheels, only_html=True, sidecars=sidecars, ranges=ranges, dates=False)
    recipe = (
        "indexes:\n- {name: corp, url: 'URL', packages: [app, leaf], cutoff: none}\npypi: [app]"
    )
    with serving(json=json, html=html, empty=Index()) as server:
        halves = [
            Solver(folder=tmp_path / name, index=server.url("empty")).solve(
                recipe.replace("URL", server.url(name))
            )
            for name in ("json", "html")
        ]
    assert halves[0] == replace(halves[1], download_bytes=sum(len(one.data) for one in wheels))
    assert halves[1].download_bytes is None  # HTML says no sizes
    assert one(halves[0], "leaf").via == ("app",)


def test_a_warm_lock_reads_no_metadata_again(tmp_path: Path) -> None:
    index = Index(wheels=[wheel("app", "1.0", requires=["leaf"]), wheel("leaf", "1.0")])
    with serving(main=index) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"))
        first = solver.solve("pypi: [app]")
        server.log.clear()
        assert solver.solve("pypi: [app]") == first
        assert server.asked("/files/") == []
        solver.offline = True
        server.log.clear()
        assert solver.solve("pypi: [app]") == first
        assert server.log == []


def test_offline_without_a_cache_is_a_fetch_error(tmp_path: Path) -> None:
    with serving(main=Index(wheels=[wheel("app", "1.0")])) as server:
        solver = Solver(folder=tmp_path, index=server.url("main"), offline=True)
        with pytest.raises(FetchError, match="not in the cache"):
            solver.solve("pypi: [app]")


@pytest.mark.parametrize("status", [401, 403])
def test_an_index_that_refuses_is_named_without_its_login(tmp_path: Path, status: int) -> None:
    with serving(main=Index(), corp=Index(login=("u", "p"))) as server:
        server.indexes["corp"].faults = {"/corp/simple/app/": Fault(status=status)}  # type: ignore[union-attr]
        solver = Solver(
            folder=tmp_path,
            index=server.url("main"),
            environment={"UV_INDEX_CORP_USERNAME": "u", "UV_INDEX_CORP_PASSWORD": "s3cret"},
        )
        with pytest.raises(FetchError, match="index corp refuses access") as caught:
            solver.solve(
                f"indexes:\n- {{name: corp, url: '{server.url('corp')}', packages: [app]}}\n"
                "pypi: [app]"
            )
    assert "s3cret" not in f"{caught.value.details} {caught.value.message} {caught.value.hint}"


def test_a_login_opens_an_index_and_enters_no_lock(tmp_path: Path) -> None:
    index = Index(wheels=[wheel("app", "1.0")], login=("user", "s3cret"))
    with serving(main=index) as server:
        solver = Solver(folder=tmp_path, index=server.url("main", login="user:s3cret"))
        half = solver.solve("pypi: [app]")
        with pytest.raises(NoSolution) as caught:
            solver.solve("pypi: ['app>5']")
    assert pins(half) == {"app": "1.0"}
    assert "s3cret" not in repr(half)
    assert "s3cret" not in caught.value.details
    assert half.packages[0].index is None


def test_a_server_error_names_the_index(tmp_path: Path) -> None:
    index = Index(wheels=[wheel("app", "1.0")], faults={"/main/simple/app/": Fault(status=404)})
    with serving(main=index) as server:
        solver = Solver(
            folder=tmp_path, index=server.url("main"), environment={"UV_HTTP_RETRIES": "0"}
        )
        with pytest.raises(NoSolution, match="r: the PyPI half cannot be solved") as refused:
            solver.solve("pypi: [app]")
        assert "whether its index is the one that is meant" in (refused.value.hint or "")
        for status in (200, 500, 503):
            index.faults = {"/main/simple/app/": Fault(status=status)}
            with pytest.raises(FetchError, match="the default index cannot be reached"):
                solver.solve("pypi: [app]")
    with pytest.raises(FetchError, match="the default index cannot be reached") as caught:
        solver.solve("pypi: [app]")
    assert "127.0.0.1" not in caught.value.details


def test_the_requirements_of_every_wheel_are_met(tmp_path: Path) -> None:
    """uv looks into one wheel of a release; the others may say something else."""
    index = Index(
        wheels=[
            wheel("app", "1.0", requires=["leaf"], tag="cp311-cp311-manylinux_2_17_x86_64"),
            wheel("app", "1.0", requires=["leaf", "gone>=2"], tag="py3-none-any"),
            wheel("leaf", "1.0"),
        ]
    )
    with serving(main=index) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).solve("pypi: [app]")
    assert codes(half) == ["requirement-unmet"]
    assert "app needs gone>=2, which no half has" in half.findings[0].what


def test_no_python_in_the_conda_half(tmp_path: Path) -> None:
    solver = Solver(folder=tmp_path, index=None)
    with pytest.raises(NoSolution, match="no Python"):
        solver.solve("pypi: [app]", half=conda()[1:])
    assert solver.solve("pypi: []", half=()).packages == ()


def test_an_sdist_alone_is_no_wheel(tmp_path: Path) -> None:
    with serving(main=Index(wheels=[wheel("app", "1.0")])) as server:
        server.indexes["main"].missing = {"app-1.0-py3-none-any.whl"}  # type: ignore[union-attr]
        with pytest.raises(NoSolution) as caught:
            Solver(folder=tmp_path, index=server.url("main")).solve(
                "pypi: [app]", cutoff=datetime(2026, 1, 1, tzinfo=UTC)
            )
    assert "No solution found" not in caught.value.details
    assert caught.value.details.endswith(
        "the recipe asks for:\n  recipes/r.yaml:3:8: app\n"
        "for Python 3.11.9 on linux-64\nuploaded before 2026-01-01T00:00:00Z"
    )


def test_an_index_without_hashes_gives_the_same_half(tmp_path: Path) -> None:
    """uv downloads what it needs the hashes of."""
    wheels = [wheel("app", "1.0"), wheel("app", "1.0", tag="cp311-none-any")]
    with serving(good=Index(wheels=wheels), bare=Index(wheels=wheels, hashes=False)) as server:
        halves = [
            Solver(folder=tmp_path / name, index=server.url(name)).solve("pypi: [app]")
            for name in ("good", "bare")
        ]
    assert halves[0] == halves[1]
    assert len(one(halves[0], "app").hashes) == 2


def test_a_named_index_without_hashes_and_times(tmp_path: Path) -> None:
    wheels = [wheel("app", "1.0")]
    corp = Index(
        wheels=wheels, hashes=False, dates=False, only_html=True, sidecars=False, ranges=False
    )
    with serving(main=Index(wheels=[wheel("leaf", "1.0")]), corp=corp) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).solve(
            f"pypi: [app, leaf]\nindexes: [{{name: corp, url: '{server.url('corp')}', "
            "packages: [app], cutoff: none}]"
        )
    assert one(half, "app").index == "corp"
    assert len(one(half, "app").hashes) == 1
    assert one(half, "leaf").index is None


def confusing() -> dict[str, Index]:
    """Return an index of a company and a public one that has newer files under the same names."""
    return {
        "public": Index(
            wheels=[
                wheel("app", "1.0", requires=["inner", "leaf"]),
                wheel("inner", "99.0", requires=["evil"]),
                wheel("secret", "99.0"),
                wheel("leaf", "1.0"),
                wheel("evil", "1.0"),
            ]
        ),
        "corp": Index(
            wheels=[
                wheel("inner", "1.0", requires=["secret", "leaf"]),
                wheel("secret", "1.0"),
                wheel("leaf", "50.0"),
                wheel("app", "50.0"),
            ]
        ),
    }


@pytest.mark.parametrize("asked", ["app", "app, inner", "inner, app, secret", "inner"])
def test_a_listed_package_comes_from_its_index_alone(tmp_path: Path, asked: str) -> None:
    with serving(**confusing()) as server:
        half = Solver(folder=tmp_path, index=server.url("public")).solve(
            f"indexes:\n- {{name: corp, url: '{server.url('corp')}', packages: [Inner, secret]}}\n"
            f"pypi: [{asked}]"
        )
    expected = {"inner": ("1.0", "corp"), "leaf": ("1.0", None), "secret": ("1.0", "corp")}
    if "app" in asked:
        expected["app"] = ("1.0", None)
    assert {each.name: (each.version, each.index) for each in half.packages} == expected
    assert one(half, "secret").via == (("inner", "recipe") if "secret" in asked else ("inner",))
    assert half.findings == ()


def test_a_package_that_only_the_named_index_has(tmp_path: Path) -> None:
    """The first answer is no, since uv looks for it on the default index."""
    indexes = confusing()
    del indexes["public"].wheels[1:3]
    with serving(**indexes) as server:
        half = Solver(folder=tmp_path, index=server.url("public")).solve(
            f"indexes:\n- {{name: corp, url: '{server.url('corp')}',"
            " packages: [inner, secret, leaf]}\npypi: [app]"
        )
    assert {each.name: (each.version, each.index) for each in half.packages} == {
        "app": ("1.0", None),
        "inner": ("1.0", "corp"),
        "leaf": ("50.0", "corp"),
        "secret": ("1.0", "corp"),
    }


def test_what_was_only_bound_and_is_not_needed_is_left_out(tmp_path: Path) -> None:
    indexes = confusing()
    del indexes["public"].wheels[1:3]
    indexes["corp"].wheels.append(wheel("unused", "1.0"))
    with serving(**indexes) as server:
        half = Solver(folder=tmp_path, index=server.url("public")).solve(
            f"indexes:\n- {{name: corp, url: '{server.url('corp')}',"
            " packages: [inner, secret, unused]}\npypi: [app]"
        )
    assert sorted(pins(half)) == ["app", "inner", "leaf", "secret"]


def test_a_listed_package_that_its_index_lacks_is_not_taken_elsewhere(tmp_path: Path) -> None:
    with serving(**confusing()) as server, pytest.raises(NoSolution):
        Solver(folder=tmp_path, index=server.url("public")).solve(
            f"indexes:\n- {{name: corp, url: '{server.url('corp')}', packages: [evil]}}\n"
            "pypi: [app, evil]"
        )


def test_a_relock_keeps_pins_of_named_indexes(tmp_path: Path) -> None:
    indexes = confusing()
    with serving(**indexes) as server:
        solver = Solver(folder=tmp_path, index=server.url("public"))
        recipe = (
            f"indexes:\n- {{name: corp, url: '{server.url('corp')}', packages: [inner, secret]}}\n"
            "pypi: [app]"
        )
        old = solver.solve(recipe)
        indexes["corp"].wheels.append(wheel("secret", "2.0"))
        assert solver.solve(recipe, prefer=old.packages) == old
        assert one(solver.solve(recipe), "secret").version == "2.0"


def test_two_mirrors_give_one_half(tmp_path: Path) -> None:
    """Addresses, logins, style and the caller's umask differ; the half does not."""
    wheels = [
        wheel("app", "1.0", requires=["leaf>=1"], requires_python=">=3.9"),
        wheel("leaf", "1.0", tag="cp311-cp311-manylinux_2_17_x86_64"),
        wheel("leaf", "1.0", tag="cp312-cp312-manylinux_2_17_x86_64"),
    ]
    login = Index(wheels=list(reversed(wheels)), login=("u", "p"), sidecars=False)
    with serving(plain=Index(wheels=wheels), other=login) as server:
        urls = [server.url("plain"), server.url("other", login="u:p")]
        halves = []
        for umask, url in zip((0o022, 0o077), urls, strict=True):
            old = os.umask(umask)
            try:
                halves.append(Solver(folder=tmp_path / oct(umask), index=url).solve("pypi: [app]"))
            finally:
                os.umask(old)
    assert halves[0] == halves[1]
    assert len(halves[0].packages) == 2


def test_no_setting_of_the_process_reaches_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = [wheel("app", "1.0"), wheel("app", "2.0")]
    (tmp_path / "constraints.txt").write_text("app<2\n")
    (tmp_path / "uv.toml").write_text("exclude-newer = '2020-01-01T00:00:00Z'\n")
    for name, value in {
        "UV_EXCLUDE_NEWER": "2020-01-01T00:00:00Z",
        "UV_CONSTRAINT": str(tmp_path / "constraints.txt"),
        "UV_CACHE_DIR": "",
        "UV_OFFLINE": "1",
        "PIP_CONSTRAINT": str(tmp_path / "constraints.txt"),
        "UV_CONFIG_FILE": str(tmp_path / "uv.toml"),
        "UV_PYTHON": "2.7",
        "PYTHONHOME": "/nonexistent",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    with serving(main=Index(wheels=wheels)) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).solve("pypi: [app]")
    assert pins(half) == {"app": "2.0"}


def test_a_file_without_an_upload_time_is_left_out_and_told(tmp_path: Path) -> None:
    wheels = [wheel("app", "1.0"), wheel("app", "2.0")]
    index = Index(wheels=wheels, undated={wheels[1].filename})
    with serving(main=index) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).solve("pypi: [app]")
    assert pins(half) == {"app": "1.0"}
    assert codes(half) == ["index-without-dates"]
    assert half.findings[0].where == "app-2.0-py3-none-any.whl"


def test_the_default_index_may_be_named_too(tmp_path: Path) -> None:
    """So that a mirror without upload times can be used: its packages are listed."""
    wheels = [wheel("app", "1.0", requires=["leaf"]), wheel("leaf", "1.0")]
    index = Index(wheels=wheels, undated={wheels[0].filename})
    with serving(main=index) as server:
        half = Solver(folder=tmp_path, index=server.url("main")).solve(
            f"indexes:\n- {{name: same, url: '{server.url('main')}', packages: [app],"
            " cutoff: none}\npypi: [app]"
        )
    assert [(each.name, each.index) for each in half.packages] == [("app", "same"), ("leaf", None)]


def test_netrc_and_variables_open_an_index_and_a_relock_keeps_its_pins(tmp_path: Path) -> None:
    index = Index(
        wheels=[wheel("app", "1.0"), wheel("leaf", "1.0")], login=("me", "s3cret"), sidecars=False
    )
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password s3cret\n")
    with serving(main=Index(), corp=index) as server:
        recipe = (
            f"indexes:\n- {{name: corp, url: '{server.url('corp')}', packages: [app, leaf]}}\n"
            "pypi: [app, leaf]"
        )
        settings = (
            {"NETRC": str(tmp_path / "netrc")},
            {"UV_INDEX_CORP_USERNAME": "me", "UV_INDEX_CORP_PASSWORD": "s3cret"},
        )
        solvers = [
            Solver(folder=tmp_path / str(at), index=server.url("main"), environment=environment)
            for at, environment in enumerate(settings)
        ]
        halves = [solver.solve(recipe) for solver in solvers]
        index.wheels.append(wheel("app", "2.0"))
        kept = [solver.solve(recipe, prefer=halves[0].packages) for solver in solvers]
    assert halves[0] == halves[1] == kept[0] == kept[1]
    assert "s3cret" not in repr(halves)
