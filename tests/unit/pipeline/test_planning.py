"""Plans of recipes that ship, from their locks and the tables alone: nothing was read."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from envbuild.access import Access
from envbuild.cli import planned
from envbuild.compat.tables import load as tables
from envbuild.errors import LockError
from envbuild.lock import files
from envbuild.pipeline.binaries import Where
from envbuild.pipeline.planning import make_plan
from envbuild.progress import Quiet
from envbuild.recipe.load import load
from envbuild.recipe.targets import target
from envbuild.store.layout import Store
from envbuild.target import Platform
from envbuild.wheel.model import Cost, GitCommit, Plan

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def planned_for(
    name: str, tmp_path: Path, *, platform: Platform = "linux-64", cost: Cost | None = None
) -> Plan:
    loaded = load(name, [ROOT / "recipes"])
    lock = files.read(ROOT / "lockfiles" / name)
    half = lock.for_platform(platform)
    packages = half.conda if half else ()
    python = next((one.version for one in packages if one.name == "python"), "3.11.7")
    where = Where(
        generation=None,
        store=Store(root=tmp_path),
        target=target(loaded.recipe, platform),
        python=python,
        sources=(),
        access=Access(offline=True),
    )
    earlier = {"torch": cost} if cost else None
    return make_plan(loaded, lock, platform, where, tables(), progress=Quiet(), earlier=earlier)


def test_pytorch_from_its_sources(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    cost = Cost(time_s=14_700.0, memory_bytes=58 << 30, disk_bytes=31 << 30, origin="torch 2.4.0")
    found = planned_for("torch-from-source", tmp_path, cost=cost)
    golden("plans/torch-from-source.txt", click.unstyle(planned.text(found)) + "\n")
    (torch,) = found.rebuilds
    assert isinstance(torch.source, GitCommit)
    assert torch.source.commit == "d990dada86a8ad94882b5c23e859b88c0c255bda"
    assert (torch.abi, torch.cuda_archs) == ("new", ("9.0",))
    assert torch.toolchain.package == "gxx_linux-64 12.4.0"
    assert torch.toolchain.cuda_package == "cuda-nvcc 12.4.99"
    assert dict(torch.environment)["BUILD_TEST"] == "0"
    told = planned.as_json(found)
    assert isinstance(told["rebuild"], list)
    assert told["rebuild"][0]["source"]["kind"] == "git"
    assert told["rebuild"][0]["why"][0]["evidence"][0]["read"] == "facts"


@pytest.mark.parametrize(
    ("name", "platform", "expected"),
    [
        ("h100-pt24", "linux-64", {"torch"}),
        ("h100-pt24-wheel", "linux-64", {"torch"}),
        ("h100-pt28", "linux-64", set()),
        ("b200-pt28", "linux-64", set()),
        ("h100-jax", "linux-64", set()),
        ("quickstart", "linux-64", set()),
        ("cpu-arm", "linux-aarch64", set()),
        ("rebuild-demo", "linux-64", set()),
    ],
)
def test_recipes_that_ship(
    name: str, platform: Platform, expected: set[str], tmp_path: Path
) -> None:
    found = planned_for(name, tmp_path, platform=platform)
    assert {one.name for one in found.rebuilds} == expected
    unknown = {one.name for one in found.unknown}
    assert ("kiwisolver" in unknown) == (name == "rebuild-demo")


def test_a_platform_that_the_lock_lacks(tmp_path: Path) -> None:
    with pytest.raises(LockError, match="has nothing for linux-aarch64"):
        planned_for("rebuild-demo", tmp_path, platform="linux-aarch64")
