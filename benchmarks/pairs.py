"""The pairs: what envbuild does, and the bare engines doing the same work."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from harness import Pair, Side, removed
from world import BIN, RECIPE, ROOT, World, uv

CUTOFF = "2026-11-30T00:00:00Z"
IMPORTS = "import torch, torchvision, transformers, accelerate"
SEES_TORCH = "from transformers.utils import is_torch_available; assert is_torch_available()"
PYTHON = sys.executable


def startup(world: World) -> list[Pair]:
    """Start-up, a create with nothing to do, and a run, against a process that imports click."""
    env = world.environment()
    click = Side(name="python -c 'import click'", argv=[[PYTHON, "-c", "import click"]], env=env)

    def pair(name: str, *argv: str, bound: float) -> Pair:
        ours = Side(name="envbuild", argv=[argv], env=env)
        return Pair(name=name, ours=ours, theirs=click, bound=bound, repeat=15)

    return [
        pair("envbuild --version", str(BIN / "envbuild"), "--version", bound=1.3),
        pair("create, nothing to do", *world.envbuild("create", RECIPE), bound=2),
        pair("run NAME -- true", *world.envbuild("run", RECIPE, "--", "true"), bound=2),
    ]


def lock(world: World) -> list[Pair]:
    """A warm lock against one solve and one compile."""
    cache = world.folder / "bare"
    requirements = world.folder / "requirements.in"
    requirements.write_text(
        "torch==2.4.0\ntorchvision==0.19.0\nnumpy<2\ntransformers\naccelerate\n"
    )
    locks = world.folder / "relocked"
    ours = Side(
        name="envbuild lock",
        argv=[
            (
                *(str(BIN / "envbuild"), "-q", "lock", "--recipes", str(ROOT / "recipes")),
                *("--locks", str(locks), "--exclude-newer", CUTOFF, RECIPE),
            )
        ],
        env=world.environment(),
        before=removed(locks),
    )
    script = 'exec "$0" "$1" "$2" "$3" "$4" "$5" < "$6"'
    bare = (PYTHON, str(ROOT / "benchmarks" / "bare_lock.py"), world.conda_forge, str(cache))
    theirs = Side(
        name="py-rattler + uv pip compile",
        argv=[["/bin/sh", "-c", script, *bare, uv(), CUTOFF, str(requirements)]],
        env=world.environment(),
    )
    return [Pair(name="lock, warm", ours=ours, theirs=theirs, bound=1.2)]


def create_warm(world: World) -> list[Pair]:
    """A warm create against the bare engines: the link of the conda half, `uv pip install`."""
    prefix = world.folder / "bare-prefix"
    smoke = [
        [str(prefix / "bin" / "python"), "-c", IMPORTS],
        [str(prefix / "bin" / "python"), "-c", SEES_TORCH],
    ]
    silent = world.environment(PYTHONDONTWRITEBYTECODE="1")

    def ours(*flags: str, recipes: Path) -> Side:
        argv = world.envbuild("create", RECIPE, *flags, recipes=recipes)
        return Side(
            name="envbuild create", argv=[argv], env=silent, before=_without_environment(world)
        )

    def theirs(name: str, *more: list[str], flags: tuple[str, ...] = ()) -> Side:
        install = install_argv(world, prefix, world.store / "cache" / "uv", *flags)
        return Side(
            name=name,
            argv=[bare_link_argv(world, prefix), install, *more],
            env=silent,
            before=removed(prefix),
        )

    bare = world.bare_recipes
    return [
        Pair(
            name="create, warm, no smoke test",
            ours=ours("--no-compile", recipes=bare),
            theirs=theirs("py-rattler + uv pip install"),
            bound=1.6,
        ),
        Pair(
            name="create, warm, with smoke test",
            ours=ours("--no-compile", recipes=ROOT / "recipes"),
            theirs=theirs("py-rattler + uv pip install + the imports", *smoke),
            bound=1.6,
        ),
        Pair(
            name="create, warm, --compile",
            ours=ours("--compile", recipes=bare),
            theirs=theirs(
                "py-rattler + uv pip install --compile-bytecode", flags=("--compile-bytecode",)
            ),
            bound=1.2,
        ),
    ]


def create_cold(world: World) -> list[Pair]:
    """A create with empty caches against the slower half alone, which is uv's."""
    store, cache, prefix = (world.folder / n for n in ("cold", "cold-uv", "cold-prefix"))
    fresh = fresh_prefix(world, prefix)

    def before() -> None:
        for folder in (store, cache):
            shutil.rmtree(folder, ignore_errors=True)
        os.sync()  # what the last side left to be written is not this one's
        fresh()

    return [
        Pair(
            name="create, cold, both halves",
            ours=Side(
                name="envbuild create",
                argv=[world.envbuild("create", RECIPE, "--no-compile", recipes=world.bare_recipes)],
                env=world.environment(ENVBUILD_STORE=str(store)),
                before=before,
            ),
            theirs=Side(
                name="uv pip install, empty cache",
                argv=[install_argv(world, prefix, cache)],
                env=world.environment(),
                before=before,
            ),
            bound=1.2,
        )
    ]


def verify(world: World) -> list[Pair]:
    """A warm verify against openssl hashing the same files on both cores."""
    prefix = world.store / "envs" / RECIPE / "current"
    script = 'find "$0/" -type f -print0 | xargs -0 -P2 -n64 openssl dgst -sha256 > /dev/null'
    return [
        Pair(
            name="verify, warm",
            ours=Side(
                name="envbuild verify",
                argv=[world.envbuild("verify", RECIPE)],
                env=world.environment(),
            ),
            theirs=Side(
                name="xargs -P2 openssl dgst -sha256",
                argv=[["/bin/sh", "-c", script, str(prefix)]],
                env=world.environment(),
            ),
            bound=1.2,
        )
    ]


GROUPS: Mapping[str, Callable[[World], list[Pair]]] = {
    "startup": startup,
    "lock": lock,
    "verify": verify,
    "create": create_warm,
    "cold": create_cold,
}


def install_argv(world: World, prefix: Path, cache: Path, *flags: str) -> list[str]:
    """Return a bare `uv pip install` of the recipe's PyPI half."""
    return [
        *(uv(), "pip", "install", "--quiet", "--no-config", "--cache-dir", str(cache)),
        *("--python", str(prefix / "bin" / "python"), "--no-deps", "--require-hashes"),
        *("--link-mode", "hardlink", *flags, "-r", str(world.requirements)),
    ]


def bare_link_argv(world: World, prefix: Path) -> list[str]:
    """Return py-rattler's own link of the recipe's conda half."""
    lock = world.locks / RECIPE / "conda-lock.yml"
    script = ROOT / "benchmarks" / "bare_link.py"
    cache = world.folder / "bare-pkgs"
    return [PYTHON, str(script), str(lock), world.conda_forge, str(cache), str(prefix)]


def fresh_prefix(world: World, prefix: Path) -> Callable[[], None]:
    """Return a step that makes an empty prefix with the Python that the stub channel packs."""
    interpreter = Path.home() / ".pyenv" / "versions" / "3.11.7" / "bin" / "python"
    python = interpreter if interpreter.exists() else Path(sys.executable)

    def step() -> None:
        shutil.rmtree(prefix, ignore_errors=True)
        argv = [uv(), "venv", "--quiet", "--no-config", "--python", str(python), str(prefix)]
        subprocess.run(argv, env=world.environment(), check=True, capture_output=True)

    return step


def _without_environment(world: World) -> Callable[[], None]:
    argv = [str(BIN / "envbuild"), "-q", "remove", RECIPE, "--yes"]

    def step() -> None:
        if (world.store / "envs" / RECIPE).exists():
            subprocess.run(argv, env=world.environment(), check=True, capture_output=True)

    return step
