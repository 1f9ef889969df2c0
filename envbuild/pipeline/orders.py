"""From a recipe and its lock to an `Order`."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from envbuild.errors import LockError
from envbuild.findings import Findings
from envbuild.lock.digest import environment_digest
from envbuild.lock.model import Lock
from envbuild.pipeline.allow import allowed
from envbuild.recipe.load import LoadedRecipe
from envbuild.store import needs
from envbuild.store.layout import STORE_FORMAT
from envbuild.store.manifest import Inputs
from envbuild.store.order import Order, OrderIndex
from envbuild.target import Platform


def make_order(
    loaded: LoadedRecipe, lock: Lock, platform: Platform, *, inputs: Inputs, findings: Findings
) -> Order:
    """Join a recipe and its lock for one platform.

    With the host's Python the environment digest stays empty: the interpreter is part of it.

    Args:
        loaded: The recipe.
        lock: Its lock.
        platform: This machine's.
        inputs: The files they were read from.
        findings: What reading had to say.

    Raises:
        LockError: The lock does not cover the platform.
    """
    half = lock.for_platform(platform)
    recipe = loaded.recipe
    if half is None:
        covered = ", ".join(one.platform for one in lock.platforms) or "no platform"
        message = f"the lock of {lock.name} is for {covered}, not for {platform}"
        hint = f"add {platform} to target.platforms of the recipe, then: envbuild lock {lock.name}"
        raise LockError(message, source=lock.name, hint=hint)
    python = next((one.version for one in half.conda if one.name == "python"), "3")
    digest = ""
    if lock.host_python is None:
        digest = environment_digest(
            lock, platform, interpreter=None, python=python, store_format=STORE_FORMAT
        )
    return Order(
        name=recipe.name,
        platform=platform,
        glibc=recipe.target.glibc,
        environment_digest=digest,
        solve_digest=lock.solve_digest,
        conda=half.conda,
        pip=half.pip,
        indexes=tuple(
            OrderIndex(name=index.name, url=index.url, packages=index.packages)
            for index in recipe.indexes
        ),
        host_python=lock.host_python,
        compiler=lock.compiler,
        link_scripts=lock.link_scripts,
        imports=recipe.smoke.imports,
        commands=recipe.smoke.commands,
        allow=allowed(loaded),
        needs=needs.from_recipe(recipe),
        inputs=inputs,
        findings=findings,
    )


def read_inputs(recipes: Sequence[Path], locks: Sequence[Path]) -> Inputs:
    """Return the digests of the files that an order is made of.

    Raises:
        OSError: One cannot be read.
    """
    return Inputs(
        recipe=tuple((str(path), _digest(path)) for path in recipes),
        lock=tuple((path.name, _digest(path)) for path in locks),
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
