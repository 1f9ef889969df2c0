"""What an environment needs of a host: of its generation, else of its lock."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from envbuild.compat.model import Facts
from envbuild.compat.needs import complete
from envbuild.compat.subject import Subject, part_of
from envbuild.errors import LockError, StoreError
from envbuild.pipeline.doctor import Locked
from envbuild.store import manifest, use
from envbuild.store import needs as written
from envbuild.store import order as orders
from envbuild.store.layout import Generation, Place, Store
from envbuild.target import NONE, Need, Needs, Platform

_LIBRARIES = ("lib", "lib/python3*/site-packages/nvidia/*/lib", "lib/python3*/site-packages/*/lib")


def created(stores: Sequence[Store], name: str, facts: Callable[[], Facts]) -> Locked | None:
    """Return an environment that a store has, or None if none has it.

    Its needs.json says what it needs; what an earlier envbuild did not write down there follows
    from its packages and the facts.

    Args:
        stores: The stores, in their order.
        name: Its name.
        facts: Reads the tables.

    Raises:
        UsageProblem: It is not a name.
        InputError: It has no current generation.
        StoreError: Its current generation is damaged.
    """
    place = next((place for store in stores if _is_there(place := store.place(name))), None)
    if place is None:
        return None
    generation = use.chosen(place, None)
    needs, origin = _needs(generation, facts)
    needs = replace(needs, disk=_disk(generation, needs.disk))
    return Locked(name=name, origin=origin, needs=needs, libraries=_libraries(generation.prefix))


def _is_there(place: Place) -> bool:
    try:
        return place.generations.is_dir()
    except OSError:
        return False


def _disk(generation: Generation, told: Need) -> Need:
    """Return the bytes of a generation's files, else what was told of its archives."""
    try:
        found = manifest.read(generation).file_bytes
    except StoreError:
        return told
    return Need(value=str(found), origin="its files; other environments may share some")


def _needs(generation: Generation, facts: Callable[[], Facts]) -> tuple[Needs, str]:
    """Return what a generation needs, and what that was read from.

    Raises:
        StoreError: Neither its needs.json nor its order.json can be read.
    """
    own = f"generation {generation.identifier}"
    found: Needs | StoreError
    try:
        found = written.read(generation)
        origin = f"needs.json of {own}"
    except StoreError as error:
        found = error
        origin = f"the packages of {own}, which has no needs.json that can be read"
    if isinstance(found, Needs) and None not in (found.codes.value, found.floor.value):
        return found, origin
    try:
        order = orders.loads(generation.order.read_bytes())
    except (OSError, ValueError):
        if isinstance(found, StoreError):
            raise found from None
        return found, origin
    needs = found if isinstance(found, Needs) else order.needs
    origin += ", and what its packages say" * isinstance(found, Needs)
    named = needs.gpus.value
    subject = Subject(
        name=order.name,
        platform=order.platform,
        gpus=tuple(named.split(",")) if named not in {None, NONE} and named else (),
        driver=needs.driver.value,
        cuda=None if needs.cuda.value == NONE else needs.cuda.value,
        parts=(*map(part_of, order.conda), *map(part_of, order.pip)),
    )
    return complete(needs, subject, facts()), origin


def _libraries(prefix: Path) -> frozenset[str]:
    """Return the names of libraries in the folders that hold CUDA's, of both halves."""
    names: set[str] = set()
    for pattern in _LIBRARIES:
        for folder in prefix.glob(pattern):
            names.update(path.name for path in folder.glob("lib*.so*"))
    return frozenset(names)


def from_lock(
    name: str,
    recipe_folders: Sequence[Path],
    lock_folder: Callable[[str, Path], Path | None],
    platform: Platform,
    facts: Facts,
) -> Locked:
    """Return an environment that is locked and not created.

    Args:
        name: The recipe's name.
        recipe_folders: Where recipes are looked up.
        lock_folder: Finds the lock of a name and a recipe's file.
        platform: This machine's.
        facts: The tables.

    Raises:
        RecipeError: There is no such recipe, or it is wrong.
        LockError: It has no lock, or a damaged one.
    """
    from envbuild.lock import files
    from envbuild.pipeline.needs import needs_of
    from envbuild.recipe.load import load

    loaded = load(name, recipe_folders)
    own = loaded.recipe.name
    folder = lock_folder(own, loaded.sources[0].path)
    if folder is None:
        message = f"{own} has neither an environment nor a lock"
        raise LockError(message, source=own, hint=f"envbuild lock {own}")
    lock = files.read(folder)
    covered = [half.platform for half in lock.platforms]
    wanted = platform if platform in covered or not covered else covered[0]
    return Locked(
        name=own,
        origin=f"recipe and lock ({folder})",
        needs=needs_of(loaded, lock, wanted, facts),
        libraries=None,
    )
