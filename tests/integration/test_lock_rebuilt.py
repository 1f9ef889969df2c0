"""Locks in which a rebuilt wheel takes the place of conda's package; real solves, a real build."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from integration.channel_server import serve
from integration.index_server import Index, serving
from integration.packages import make_package, write_index
from integration.rebuilding import GLIBC, NOW, Builder, needs_gcc, project, wanted

from envbuild.access import Access
from envbuild.errors import Refused
from envbuild.lock import files
from envbuild.lock.model import Lock
from envbuild.pipeline.lock import LockOptions, LockResult, check_lock, make_lock
from envbuild.progress import Quiet
from envbuild.recipe.load import LoadedRecipe, loads
from envbuild.solve.solution import Upgrade

pytestmark = needs_gcc

CHANNEL = "https://channel.invalid/main"
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
RECIPE = f"""\
name: swap
target: {{platforms: [linux-64], glibc: '{GLIBC}'}}
python: "{PYTHON}"
channels: [{CHANNEL}]
conda: [demo 1.0 py_*]
build: {{compiler: gcc 12, packages: {{demo: {{}}}}}}
"""


@dataclass(kw_only=True)
class World:
    """A channel of small packages, a wheelhouse, and locking with both."""

    builder: Builder
    access: Access
    upgrade: Upgrade = field(default_factory=Upgrade)

    def load(self, text: str) -> LoadedRecipe:
        return loads(text, source="recipes/swap.yaml")

    def lock(
        self, text: str, *, old: Lock | None = None, prefer: bool = False, upgrade: bool = False
    ) -> LockResult:
        options = LockOptions(old=old, prefer_rebuilt=prefer, upgrade=Upgrade(everything=upgrade))
        return make_lock(
            self.load(text),
            options,
            access=self.access,
            store=self.builder.store,
            now=NOW,
            progress=Quiet(),
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("swap")
    folder = root / "channel"
    made = [
        make_package(folder, "python", f"{PYTHON}.0"),
        make_package(folder, "demo-data", subdir="noarch", noarch="generic"),
        make_package(folder, "demo", "1.0", "py_0", depends=["python", "demo-data"]),
        make_package(folder, "tool", "2.0", depends=["python", "demo 1.0"]),
    ]
    write_index(folder, made)
    builder = Builder(root=root / "store")
    builder.build(wanted(project(root / "demo")))
    with serve(folder) as channel, serving(main=Index()) as server:
        access = Access(channel_mirrors={CHANNEL: (channel.url,)}, default_index=server.url("main"))
        yield World(builder=builder, access=access)


def halves(lock: Lock) -> tuple[dict[str, str], dict[str, str]]:
    (half,) = lock.platforms
    conda = {one.name: one.version for one in half.conda}
    return conda, {one.name: one.version for one in half.pip}


def test_a_rebuilt_wheel_takes_the_place_of_a_conda_package(world: World) -> None:
    before = world.lock(RECIPE).lock
    assert halves(before) == (
        {"demo": "1.0", "demo-data": "1.0", "python": f"{PYTHON}.0"},
        {},
    )
    made = world.lock(RECIPE, old=before, prefer=True)
    assert halves(made.lock) == (
        {"demo-data": "1.0", "python": f"{PYTHON}.0"},
        {"demo": "1.0+gcc12"},
    )
    assert made.changes
    assert check_lock(made.lock, world.load(RECIPE)) == ()
    assert files.loads(files.dumps(made.lock), source="x") == made.lock
    assert world.lock(RECIPE, old=made.lock).lock == made.lock
    assert world.lock(RECIPE, old=made.lock, upgrade=True).lock == before
    other = RECIPE.replace("demo 1.0 py_*", "demo >=2")
    assert [one.code for one in check_lock(made.lock, world.load(other))] == [
        "lock-conda-unmet",
    ]


def test_conda_packages_that_need_it_are_named(world: World) -> None:
    recipe = RECIPE.replace("[demo 1.0 py_*]", "[tool]")
    with pytest.raises(
        Refused, match=r"conda's demo cannot give way .* tool 2\.0 needs it"
    ) as told:
        world.lock(recipe, prefer=True)
    assert told.value.details == "tool 2.0 0 needs `demo 1.0`"
    assert "demo" in halves(world.lock(recipe).lock)[0]


def test_what_the_recipe_does_not_name_stays_conda_s(world: World) -> None:
    recipe = RECIPE.replace("packages: {demo: {}}", "packages: {other: {}}")
    assert halves(world.lock(recipe, prefer=True).lock)[1] == {}
    newer = RECIPE.replace("gcc 12", "gcc 13")
    assert halves(world.lock(newer, prefer=True).lock)[1] == {}
