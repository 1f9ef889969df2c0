"""Installing a PyPI half with the real uv: by hash, from one index each, from the cache first."""

import dataclasses
import os
import stat
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest
from integration.faults import Fault
from integration.index_server import BuiltWheel, Index, serving, wheel

from envbuild.access import Access
from envbuild.errors import FetchError, ToolFailed
from envbuild.packages import PipPackage
from envbuild.target import Target
from envbuild.tools import uv
from envbuild.tools.uv_question import Source, index_address

WHEELS = [wheel("app", "1.0", requires=["leaf"]), wheel("leaf", "2.0")]


def packages(wheels: Sequence[BuiltWheel], index: str | None = None) -> list[PipPackage]:
    return [
        PipPackage(
            name=one.project,
            version="1.0" if one.project == "app" else "2.0",
            hashes=(one.sha256,),
            index=index,
        )
        for one in wheels
    ]


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    folder = tmp_path / "prefix"
    venv.create(folder, with_pip=False)
    return folder


def engine(tmp_path: Path, python: Path, *, offline: bool = False) -> uv.Engine:
    return uv.Engine(access=Access(offline=offline), cache=tmp_path / "uv", python=python)


def site(prefix: Path) -> Path:
    return next(prefix.glob("lib/python3.*/site-packages"))


def names(prefix: Path) -> set[str]:
    return {each.name for each in site(prefix).glob("*.dist-info")}


def test_prefetched_wheels_are_installed_without_the_index(tmp_path: Path, prefix: Path) -> None:
    with serving(main=Index(wheels=WHEELS)) as server:
        source = Source(name=None, url=server.url("main"))
        uv.prefetch(
            packages(WHEELS),
            engine(tmp_path, Path(sys.executable)),
            folder=tmp_path / "aside",
            target=Target(platform="linux-64"),
            python_version=f"{sys.version_info.major}.{sys.version_info.minor}.1",
            sources=[source],
        )
        server.log.clear()
        uv.install(packages(WHEELS), engine(tmp_path, prefix / "bin/python"), sources=[source])
        assert server.log == []
    assert names(prefix) == {"app-1.0.dist-info", "leaf-2.0.dist-info"}
    assert not list(prefix.rglob("__pycache__/app*"))


def test_prefetch_of_another_python_and_machine(tmp_path: Path) -> None:
    built = wheel("app", "1.0", tag="cp313-cp313-manylinux_2_17_aarch64")
    with serving(main=Index(wheels=[built])) as server:
        uv.prefetch(
            packages([built]),
            engine(tmp_path, Path(sys.executable)),
            folder=tmp_path / "aside",
            target=Target(platform="linux-aarch64"),
            python_version="3.13.0",
            sources=[Source(name=None, url=server.url("main"))],
        )
        assert server.asked(built.filename)


def test_no_requirement_is_followed_and_markers_count(tmp_path: Path, prefix: Path) -> None:
    here = packages(WHEELS[:1])
    other = dataclasses.replace(packages(WHEELS[1:])[0], marker="python_version < '3.0'")
    with serving(main=Index(wheels=WHEELS)) as server:
        uv.install(
            [*here, other],
            engine(tmp_path, prefix / "bin/python"),
            sources=[Source(name=None, url=server.url("main"))],
        )
    assert names(prefix) == {"app-1.0.dist-info"}


def test_each_package_is_asked_of_its_own_index(tmp_path: Path, prefix: Path) -> None:
    corp = wheel("leaf", "2.0", files={"leaf.py": "FROM = 'corp'\n"})
    with serving(main=Index(wheels=WHEELS), corp=Index(wheels=[corp])) as server:
        uv.install(
            [*packages(WHEELS[:1]), *packages([corp], index="corp")],
            engine(tmp_path, prefix / "bin/python"),
            sources=[
                Source(name=None, url=server.url("main")),
                Source(name="corp", url=server.url("corp")),
            ],
        )
        assert server.asked("/main/simple/leaf") == []
    assert (site(prefix) / "leaf.py").read_text() == "FROM = 'corp'\n"


def test_an_index_that_the_recipe_does_not_have(tmp_path: Path, prefix: Path) -> None:
    with pytest.raises(FetchError, match="index corp, which the recipe does not have"):
        uv.install(
            packages(WHEELS, index="corp"),
            engine(tmp_path, prefix / "bin/python"),
            sources=[Source(name=None, url=None)],
        )


@pytest.mark.parametrize("index", [None, "corp"])
def test_other_bytes_are_refused_and_nothing_is_linked(
    tmp_path: Path, prefix: Path, index: str | None
) -> None:
    other = wheel("app", "1.0", files={"app.py": "import antigravity\n"})
    with (
        serving(main=Index(wheels=[other, WHEELS[1]])) as server,
        pytest.raises(FetchError, match="another hash") as caught,
    ):
        uv.install(
            packages(WHEELS, index=index),
            engine(tmp_path, prefix / "bin/python"),
            sources=[
                Source(name=None, url=None),
                Source(name=index, url=server.url("main", login="me:s3cret")),
            ],
        )
    assert ("index corp" if index else "the default index") in caught.value.message
    assert "s3cret" not in f"{caught.value.details}{caught.value}"
    assert names(prefix) == set()


def test_a_damaged_wheel(tmp_path: Path, prefix: Path) -> None:
    spoilt = Index(wheels=WHEELS, spoilt={WHEELS[0].filename})
    with serving(main=spoilt) as server, pytest.raises(FetchError, match="is damaged"):
        uv.install(
            packages(WHEELS),
            engine(tmp_path, prefix / "bin/python"),
            sources=[Source(name=None, url=server.url("main"))],
        )
    assert names(prefix) == set()


def test_an_index_that_lacks_a_locked_wheel(tmp_path: Path, prefix: Path) -> None:
    with (
        serving(main=Index(wheels=WHEELS[1:])) as server,
        pytest.raises(FetchError, match="the default index lacks a wheel that is locked"),
    ):
        uv.install(
            packages(WHEELS),
            engine(tmp_path, prefix / "bin/python"),
            sources=[Source(name=None, url=server.url("main"))],
        )


def test_a_file_that_is_not_there(tmp_path: Path, prefix: Path) -> None:
    with serving(main=Index(wheels=WHEELS)) as server:
        server.indexes["main"].faults = {  # type: ignore[union-attr]
            f"/main/files/{WHEELS[0].filename}": Fault(status=404)
        }
        with pytest.raises(FetchError, match="the default index"):
            uv.install(
                packages(WHEELS),
                engine(tmp_path, prefix / "bin/python"),
                sources=[Source(name=None, url=server.url("main"))],
            )


def test_offline_without_a_cache(tmp_path: Path, prefix: Path) -> None:
    with pytest.raises(FetchError, match="not in the cache"):
        uv.install(
            packages(WHEELS),
            engine(tmp_path, prefix / "bin/python", offline=True),
            sources=[Source(name=None, url="http://127.0.0.1:9/simple")],
        )


def test_an_index_out_of_reach(tmp_path: Path, prefix: Path) -> None:
    quick = dataclasses.replace(
        engine(tmp_path, prefix / "bin/python"),
        access=Access(environment={"UV_HTTP_RETRIES": "0"}),
    )
    with pytest.raises(FetchError, match="the default index cannot be reached"):
        uv.install(
            packages(WHEELS), quick, sources=[Source(name=None, url="http://127.0.0.1:9/simple")]
        )


def test_a_prefix_without_python(tmp_path: Path) -> None:
    with serving(main=Index(wheels=WHEELS)) as server, pytest.raises(ToolFailed):
        uv.install(
            packages(WHEELS),
            engine(tmp_path, tmp_path / "none/bin/python"),
            sources=[Source(name=None, url=server.url("main"))],
        )


def test_the_umask_of_the_caller_reaches_no_file(tmp_path: Path, prefix: Path) -> None:
    old = os.umask(0o077)
    try:
        with serving(main=Index(wheels=WHEELS)) as server:
            uv.install(
                packages(WHEELS),
                engine(tmp_path, prefix / "bin/python"),
                sources=[Source(name=None, url=server.url("main"))],
            )
    finally:
        os.umask(old)
    assert stat.S_IMODE((site(prefix) / "app.py").stat().st_mode) == 0o644


def test_bytecode_on_demand(tmp_path: Path, prefix: Path) -> None:
    with serving(main=Index(wheels=WHEELS)) as server:
        uv.install(
            packages(WHEELS),
            engine(tmp_path, prefix / "bin/python"),
            sources=[Source(name=None, url=server.url("main"))],
            compile_bytecode=True,
        )
    assert list(prefix.rglob("__pycache__/app*"))


def test_an_evicted_wheel_is_fetched_again(tmp_path: Path, prefix: Path) -> None:
    with serving(main=Index(wheels=WHEELS)) as server:
        ours = engine(tmp_path, prefix / "bin/python")
        source = Source(name=None, url=server.url("main"))
        uv.install(packages(WHEELS), ours, sources=[source])
        uv.evict(["app"], ours)
        server.log.clear()
        other = prefix.with_name("other")
        venv.create(other, with_pip=False)
        uv.install(packages(WHEELS), engine(tmp_path, other / "bin/python"), sources=[source])
        assert server.asked(f"files/{WHEELS[0].filename}")
        assert not server.asked(f"files/{WHEELS[1].filename}")


def test_a_login_by_uvs_variables(tmp_path: Path) -> None:
    """The same variables open an index of the recipe while locking and while creating."""
    access = Access(
        environment={"UV_INDEX_CORP_IN_USERNAME": "me", "UV_INDEX_CORP_IN_PASSWORD": "p@ss/word"}
    )
    index = Index(wheels=WHEELS, login=("me", "p@ss/word"))
    with serving(corp=index) as server:
        url = index_address("corp-in", server.url("corp"), access)
        uv.prefetch(
            packages(WHEELS, index="corp-in"),
            engine(tmp_path, Path(sys.executable)),
            folder=tmp_path / "aside",
            target=Target(platform="linux-64"),
            python_version="3.11.0",
            sources=[Source(name="corp-in", url=url)],
        )
        assert server.asked("/corp/files/")
    assert index_address("other", "https://x/simple", access) == "https://x/simple"
    named = Access(index_logins={"corp-in": "https://elsewhere/simple"})
    assert index_address("corp-in", "https://x/simple", named) == "https://elsewhere/simple"
