"""The stub channel gives the solves of the real records, and its packages install and run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from integration import stub_channel
from integration.channel_server import serve
from integration.host_pythons import run

from envbuild.access import Access
from envbuild.channel import inspect
from envbuild.packages import CondaPackage
from envbuild.progress import Quiet
from envbuild.recipe import load
from envbuild.solve import conda
from envbuild.tools import conda_archives, rattler


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[CondaPackage, ...]:
    return stub_channel.records(*stub_channel.DRIVEN, cache=tmp_path_factory.mktemp("snapshot"))


def solved(name: str, stub_folder: Path, cache: Path) -> tuple[CondaPackage, ...]:
    """Solve a recipe against the stub channel."""
    loaded = load.load(name, [stub_channel.RECIPES])
    with serve(stub_folder) as server:
        access = Access(channel_mirrors=stub_channel.mirrors(server))
        (found,) = conda.half(
            loaded,
            loaded.recipe.target.platforms,
            cutoff=stub_channel.SOLVED_AT,
            prefer={},
            access=access,
            cache=cache,
        ).platforms.values()
    return found


@pytest.mark.parametrize("name", stub_channel.DRIVEN)
def test_the_same_records_with_hashes_of_the_stubs(
    name: str, records: tuple[CondaPackage, ...], stub_folder: Path, tmp_path: Path
) -> None:
    found = solved(name, stub_folder, tmp_path)
    real = {package.url: package for package in records}
    assert found
    for package in found:
        then = real[package.url]
        assert package.depends == then.depends
        assert (package.sha256 is None) == (then.sha256 is None)
        assert package.md5 != then.md5
    names = {package.name for package in found}
    assert "python" in names
    assert ("pytorch" in names) == (name == "h100-pt24")


def test_every_archive_is_good_and_says_what_its_record_says(stub_folder: Path) -> None:
    looked = 0
    for path in sorted(stub_folder.rglob("*")):
        if path.name.endswith(inspect.SUFFIXES):
            index = inspect.check(path)
            data = json.loads((path.parent / "repodata.json").read_text())
            record = {**data["packages"], **data["packages.conda"]}[path.name]
            assert {**record, **index} == record
            looked += 1
    assert looked > 90


def test_the_stubs_install_and_run(stub_folder: Path, tmp_path: Path) -> None:
    packages = solved("h100-pt24", stub_folder, tmp_path / "index")
    with serve(stub_folder) as server:
        conda_archives.fetch(
            packages,
            cache=tmp_path / "pkgs",
            access=Access(channel_mirrors=stub_channel.mirrors(server)),
            progress=Quiet(),
            first_digest=lambda _, __: None,
        )
    prefix = tmp_path / "prefix"
    rattler.link(packages, prefix=prefix, cache=tmp_path / "pkgs", platform="linux-64")
    question = (
        "import importlib.metadata as m, sys, numpy, torch, torch.nn.functional, yaml\n"
        "from typing_extensions import TypeVar\n"
        "class Net(torch.nn.Module): pass\n"
        "TypeVar('T', default=int)\n"
        "print(torch.__version__, torch.version.cuda, torch.cuda.is_available(), "
        "m.version('torch'), m.version('numpy'), sys.version_info[:2])"
    )
    told = run(prefix / "bin/python", "-c", question)
    assert told == "2.4.0 12.4 False 2.4.0 1.26.4 (3, 10)"
    assert (prefix / "bin/x86_64-conda-linux-gnu-g++").is_file()
    assert not (prefix / "__clobbers__").exists()


def test_a_python_that_is_not_there(records: tuple[CondaPackage, ...], tmp_path: Path) -> None:
    python = next(package for package in records if package.name == "python")
    with pytest.raises(KeyError, match=r"3\.1"):
        stub_channel.build([replace(python)], tmp_path, pythons={})
