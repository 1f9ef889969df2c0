"""The pair: a rebuild with a warm compiler cache, and a bare `pip wheel` with the same one.

pip builds in another folder each time, so ccache is told not to mind folders; our builds have one
path. pip's own cache of built wheels is emptied before each run.
"""

import subprocess
import sys
from pathlib import Path

from harness import Pair, Side, removed
from world import BIN, ROOT, World

_RECIPE = "rebuild-demo"
_SDIST = "kiwisolver==1.4.9"


def pairs(folder: Path) -> list[Pair]:
    """Build both once, so that every cache is warm, and return the pair."""
    world = World(folder=folder, channels="", conda_forge="")
    env = {**world.environment(), "ENVBUILD_PYTHON": str(Path(sys.executable).resolve())}
    envbuild = (str(BIN / "envbuild"), "-q", "wheel", "rebuild", _RECIPE, "--fetch", "--again")
    ours = (*envbuild, "--recipes", str(ROOT / "recipes"), "--locks", str(ROOT / "lockfiles"))
    subprocess.run(ours, env=env, check=True, stdout=subprocess.DEVNULL)
    (cache,) = (world.store / "cache/rebuild/ccache").iterdir()
    python = folder / "pip/bin/python"
    subprocess.run([sys.executable, "-m", "venv", folder / "pip"], check=True)
    compilers = {"CC": "ccache gcc-12", "CXX": "ccache g++-12", "CCACHE_DIR": str(cache)}
    folders = {"CCACHE_NOHASHDIR": "1", "CCACHE_BASEDIR": "/tmp"}  # noqa: S108 - pip's own
    bare = {**env, **compilers, **folders, "PIP_CACHE_DIR": str(folder / "pip-cache")}
    theirs = [str(python), "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder / "out")]
    theirs += ["--no-binary", "kiwisolver", _SDIST]
    subprocess.run(theirs, env=bare, check=True)
    return [
        Pair(
            name="wheel rebuild, warm ccache",
            ours=Side(name="envbuild wheel rebuild", argv=[ours], env=env),
            theirs=Side(
                name="pip wheel with that ccache",
                argv=[theirs],
                env=bare,
                before=removed(folder / "pip-cache/wheels"),
            ),
            bound=1.3,
            repeat=3,
        )
    ]
