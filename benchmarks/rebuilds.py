"""The pair: a rebuild with a warm compiler cache, and a bare `pip wheel` with the same one.

Both compile one sdist, make the environment of its build each time, and find every object in one
folder of ccache. Ours reads and imports the wheel besides, and states how it was built.

pip makes that environment under another name each time, which is in the path of each header of it:
no object would be found. So pip's compilers are scripts that put one link in the place of that
folder; sources have a new folder each time too, which ccache is told not to mind. Each side is run
until its cache is warm, then once more with the cache's statistics at zero: one miss is an error.
pip's own cache of built wheels is emptied before each run.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from harness import Failed, Pair, Side, removed
from world import BIN, ROOT, World

_RECIPE = "rebuild-demo"
_PACKAGE = "kiwisolver"
_VERSION = "1.4.9"
_HITS = ("direct_cache_hit", "preprocessed_cache_hit")
_COMPILER = """\
#!/bin/sh
for word; do
  shift
  case $word in
    -I*/pip-build-env-*) ln -sfn "${{word#-I}}" {link}; word=-I{link} ;;
  esac
  set -- "$@" "$word"
done
exec ccache {program} "$@"
"""


def pairs(folder: Path) -> list[Pair]:
    """Build both until every cache is warm, and return the pair."""
    world = World(folder=folder, channels="", conda_forge="")
    env = {**world.environment(), "ENVBUILD_PYTHON": str(Path(sys.executable).resolve())}
    envbuild = (str(BIN / "envbuild"), "-q", "wheel", "rebuild", _RECIPE, "--fetch", "--again")
    ours = Side(
        name="envbuild wheel rebuild",
        argv=[(*envbuild, "--recipes", f"{ROOT}/recipes", "--locks", f"{ROOT}/lockfiles")],
        env=env,
    )
    _run(ours)
    (cache,) = (world.store / "cache/rebuild/ccache").iterdir()
    theirs = _pip(folder, env, cache)
    _run(theirs)
    for side in (ours, theirs):
        _check_all_hit(side, cache)
    return [Pair(name="wheel rebuild, warm ccache", ours=ours, theirs=theirs, bound=1.3, repeat=5)]


def _pip(folder: Path, env: Mapping[str, str], cache: Path) -> Side:
    """Return `pip wheel` with ccache before its compilers; pip is the newest."""
    python = f"{folder}/pip/bin/python"
    subprocess.run([sys.executable, "-m", "venv", folder / "pip"], check=True)
    newest = [python, "-m", "pip", "install", "--quiet", "--upgrade", "pip"]
    subprocess.run(newest, env=dict(env), check=True)
    words = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", f"{folder}/out"]
    told = {
        "CC": _compiler(folder, "gcc-12"),
        "CXX": _compiler(folder, "g++-12"),
        "CCACHE_DIR": f"{cache}",
        "CCACHE_NOHASHDIR": "1",
        "PIP_CACHE_DIR": f"{folder}/pip-cache",
    }
    return Side(
        name="pip wheel with that ccache",
        argv=[[*words, "--no-binary", _PACKAGE, f"{_PACKAGE}=={_VERSION}"]],
        env={**env, **told},
        before=removed(folder / "pip-cache/wheels"),
    )


def _compiler(folder: Path, program: str) -> str:
    script = folder / "compilers" / program
    script.parent.mkdir(exist_ok=True)
    script.write_text(_COMPILER.format(link=folder / "compilers/include", program=program))
    script.chmod(0o755)
    return f"{script}"


def _run(side: Side) -> None:
    side.before()
    for argv in side.argv:
        subprocess.run(argv, env=dict(side.env), check=True, stdout=subprocess.DEVNULL)


def _check_all_hit(side: Side, cache: Path) -> None:
    """Run a side once more, and refuse it where the compiler cache did not have every object.

    Raises:
        Failed: It did not, or nothing was asked of it.
    """
    _ccache(cache, "--zero-stats")
    _run(side)
    rows = (line.split("\t") for line in _ccache(cache, "--print-stats").splitlines())
    counts = {name: int(count) for name, count in rows}
    hits, misses = sum(counts[name] for name in _HITS), counts["cache_miss"]
    if misses or not hits:
        message = f"{side.name}: the compiler cache had {hits} objects, and not {misses} others"
        raise Failed(message)


def _ccache(cache: Path, word: str) -> str:
    argv = ["ccache", "--dir", f"{cache}", word]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout
