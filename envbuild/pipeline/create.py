"""`make_generation`: recipe and lock to a generation; locks first where there is no lock."""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from envbuild.access import Access
from envbuild.channel import host
from envbuild.errors import LockError, Refused
from envbuild.findings import Finding, Findings, Severity, errors_of
from envbuild.lock import files
from envbuild.lock.digest import applying, environment_digest
from envbuild.lock.model import Lock
from envbuild.pipeline.lock import LockOptions, check_lock, make_lock, write_lock
from envbuild.pipeline.orders import make_order, read_inputs
from envbuild.progress import Progress
from envbuild.recipe.load import LoadedRecipe, load
from envbuild.store import manifest as manifests
from envbuild.store import noop, orders, present
from envbuild.store.create import Created, Host, Options, create
from envbuild.store.history import Who
from envbuild.store.layout import STORE_FORMAT, Place, Store
from envbuild.store.manifest import Inputs, Interpreter
from envbuild.store.order import Order
from envbuild.target import Platform


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """What `create` is asked.

    Attributes:
        name: The recipe's name or path.
        recipe_folders: Where recipes are looked up.
        lock_folder: The lock's folder, or None if there is none.
        platform: This machine's.
        lock_output: Folder that new locks are written to.
        exclude_newer: Cutoff of a new lock as text, before the recipe's own, or None.
        locked: Refuse instead of locking.
        frozen: Take the lock without asking whether it answers.
        wish: Where the host's interpreter is looked for.
        options: How to create.
    """

    name: str
    recipe_folders: tuple[Path, ...]
    lock_folder: Path | None
    lock_output: Path
    platform: Platform
    locked: bool
    frozen: bool
    exclude_newer: str | None
    wish: host.Wish
    options: Options


def make_generation(
    ask: Ask,
    *,
    store: Store,
    access: Access,
    progress: Progress,
    who: Who,
    now: datetime,
) -> Created:
    """Create the generation of a recipe's lock.

    Args:
        ask: What is asked.
        store: The store.
        access: How the network is reached.
        progress: Who is told.
        who: Who asks for it.
        now: The instant (UTC).

    Raises:
        RecipeError: The recipe is wrong or there is none.
        LockError: There is no lock under locked or frozen, it is damaged, or not for this platform.
        Refused: The lock does not answer its recipe, or creation says no.
        EnvbuildError: As `store.create.create` and `pipeline.lock.make_lock` raise it.
    """
    order = _known_order(ask, store)
    chosen: Host | None = None
    if order is None:
        order, lock = _new_order(ask, store=store, access=access, now=now, progress=progress)
        if lock.host_python is not None:
            progress.step("choosing the machine's Python")
            order, chosen = _on_host(order, lock, ask, store.place(order.name))
    place = store.place(order.name)
    return create(
        order,
        place,
        ask.options,
        host=chosen,
        access=access,
        progress=progress,
        who=who,
        now=now,
    )


def _known_order(ask: Ask, store: Store) -> Order | None:
    """Return the order that these files gave before."""
    file = noop.recipe_file(ask.name, ask.recipe_folders)
    if file is None or ask.lock_folder is None or ask.frozen:
        return None
    return orders.recall(store, file, noop.lock_files(ask.lock_folder, ask.platform), ask.platform)


def _new_order(
    ask: Ask, *, store: Store, access: Access, now: datetime, progress: Progress
) -> tuple[Order, Lock]:
    """Read recipe and lock, and make the lock where there is none."""
    loaded = load(ask.name, ask.recipe_folders)
    said: Findings = ()
    folder = ask.lock_folder
    if folder is None:
        folder, said = _lock(ask, loaded, store=store, access=access, now=now, progress=progress)
    locks = noop.lock_files(folder, ask.platform)
    paths = [source.path for source in loaded.sources]
    inputs = Inputs(recipe=(), lock=()) if ask.frozen else read_inputs(paths, locks)
    lock = files.read(folder)
    progress.step("checking that the lock answers the recipe")
    findings = _unchecked(ask) if ask.frozen else _answered(lock, loaded)
    order = make_order(loaded, lock, ask.platform, inputs=inputs, findings=findings)
    if not ask.frozen and order.environment_digest:
        orders.keep(store, paths[0], locks, order)
    return replace(order, findings=(*said, *order.findings)), lock


def _lock(
    ask: Ask,
    loaded: LoadedRecipe,
    *,
    store: Store,
    access: Access,
    now: datetime,
    progress: Progress,
) -> tuple[Path, Findings]:
    """Make the lock of a recipe that has none; return its folder and what was said."""
    name = loaded.recipe.name
    if ask.locked or ask.frozen:
        option = "--locked" if ask.locked else "--frozen"
        message = f"{name} has no lock, and {option} forbids to make one"
        raise LockError(message, source=name, hint=f"envbuild lock {name}")
    options = LockOptions(exclude_newer=ask.exclude_newer)
    result = make_lock(loaded, options, access=access, store=store, now=now, progress=progress)
    if errors := errors_of(result.findings):
        message = f"{name} cannot be locked as it is"
        raise Refused(message, hint=f"envbuild lock {name}", details=_lines(errors))
    write_lock(result.lock, ask.lock_output / name)
    return ask.lock_output / name, result.findings


def _unchecked(ask: Ask) -> Findings:
    return (
        Finding(
            code="lock-not-checked",
            severity=Severity.WARNING,
            where=f"{ask.lock_folder}",
            what="the lock was taken as it is: --frozen",
            why="it may not answer the recipe",
            hint=f"envbuild lock --check {ask.name}",
        ),
    )


def _answered(lock: Lock, loaded: LoadedRecipe) -> Findings:
    """Return what a lock's check says.

    Raises:
        Refused: The lock does not answer its recipe.
    """
    findings = check_lock(lock, loaded)
    if errors := errors_of(findings):
        name = loaded.recipe.name
        message = f"the lock of {name} does not answer its recipe"
        raise Refused(message, hint=f"envbuild lock {name}", details=_lines(errors))
    return findings


def _lines(findings: Findings) -> str:
    return "\n".join(f"{one.where}: {one.what} [{one.code}]" for one in findings)


def _on_host(order: Order, lock: Lock, ask: Ask, place: Place) -> tuple[Order, Host]:
    """Choose the interpreter; with it the markers and the environment digest are known."""
    python = host.choose(order.host_python or "", ask.wish)
    digest = host.digest(python)
    interpreter = Interpreter(
        path=str(python.path),
        version=python.version,
        digest=digest,
        stamps=noop.stamps(host.watched(python)),
    )
    environment = environment_digest(
        lock,
        ask.platform,
        interpreter=digest,
        python=python.version,
        store_format=STORE_FORMAT,
    )
    before = present.current(place)
    changed: Findings = ()
    if before is not None and present.complete(before):
        old = manifests.read(before).interpreter
        changed = host.changed(old.path, old.digest, python) if old else ()
    order = replace(
        order,
        environment_digest=environment,
        pip=applying(order.pip, ask.platform, python=python.version),
        findings=(*order.findings, *changed),
    )
    return order, Host(python=python, interpreter=interpreter)
