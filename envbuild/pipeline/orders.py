"""From a recipe and its lock to an `Order`, checked; made where there is no lock."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from envbuild.access import Access
from envbuild.channel import host
from envbuild.compat.model import Facts
from envbuild.errors import LockError, Refused, StoreError
from envbuild.findings import Finding, Findings, Severity, errors_of
from envbuild.lock import files
from envbuild.lock.digest import applying, environment_digest
from envbuild.lock.model import Lock
from envbuild.pipeline import allow
from envbuild.pipeline.against import against_facts
from envbuild.pipeline.ask import Ask
from envbuild.pipeline.lock import LockOptions, check_lock, make_lock, write_lock
from envbuild.pipeline.needs import needs_of
from envbuild.progress import Progress
from envbuild.recipe.load import LoadedRecipe, load
from envbuild.store import manifest as manifests
from envbuild.store import noop, orders, present
from envbuild.store.create import Host
from envbuild.store.layout import GENERATION_FORMAT, Place, Store
from envbuild.store.manifest import Inputs, Interpreter
from envbuild.store.order import Order, OrderIndex
from envbuild.target import Platform


def new_order(
    ask: Ask, *, store: Store, access: Access, now: datetime, progress: Progress
) -> tuple[Order, Host | None]:
    """Read recipe and lock, and make the lock where there is none; choose the host's Python.

    Args:
        ask: What is asked.
        store: The store.
        access: How the network is reached.
        now: The instant (UTC).
        progress: Who is told.

    Raises:
        RecipeError: The recipe is wrong or there is none.
        LockError: There is no lock under locked or frozen, it is damaged, or not for this platform.
        Refused: The lock does not answer its recipe, or cannot be made as the recipe is.
        EnvbuildError: As `pipeline.lock.make_lock` and `channel.host.choose` raise it.
    """
    loaded = load(ask.name, ask.recipe_folders)
    loaded = allow.once(loaded, ask.allow, today=now.astimezone(UTC).date())
    said: Findings = ()
    folder = ask.lock_folder
    if folder is None:
        folder, said = _lock(ask, loaded, store=store, access=access, now=now, progress=progress)
    locks = noop.lock_files(folder, ask.platform)
    paths = [source.path for source in loaded.sources]
    inputs = Inputs(recipe=(), lock=()) if ask.frozen else read_inputs(paths, locks)
    lock = files.read(folder)
    if ask.frozen:
        findings = _unchecked(ask)
    else:
        progress.step("checking that the lock answers the recipe")
        findings = _answered(lock, loaded, ask.facts(), now=now)
    order = make_order(
        loaded, lock, ask.platform, inputs=inputs, findings=findings, facts=ask.facts()
    )
    if not (ask.frozen or ask.allow) and order.environment_digest:
        orders.keep(store, paths[0], locks, order)
    order = replace(order, findings=(*said, *order.findings))
    if lock.host_python is None:
        return order, None
    progress.step("choosing the machine's Python")
    return _on_host(order, lock, ask, store.place(order.name))


def read_order(
    ask: Ask, loaded: LoadedRecipe, *, store: Store, now: datetime
) -> tuple[Order, Host | None]:
    """Join a recipe and the lock that is there; nothing is written anywhere.

    Args:
        ask: What is asked.
        loaded: The recipe.
        store: The store that the environment is or would be in.
        now: The instant (UTC).

    Raises:
        LockError: There is no lock, it is damaged, or not for this platform.
        Refused: The lock does not answer its recipe, or cannot work.
        EnvbuildError: As `channel.host.choose` raises it.
    """
    name = loaded.recipe.name
    if ask.lock_folder is None:
        message = f"{name} has no lock, which decides what its services run"
        raise LockError(message, source=name, hint=f"envbuild lock {name}")
    lock = files.read(ask.lock_folder)
    findings = _unchecked(ask) if ask.frozen else _answered(lock, loaded, ask.facts(), now=now)
    nothing = Inputs(recipe=(), lock=())
    order = make_order(loaded, lock, ask.platform, inputs=nothing, findings=findings)
    if lock.host_python is None:
        return order, None
    return _on_host(order, lock, ask, store.place(name))


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
    options = LockOptions(exclude_newer=ask.exclude_newer, facts=ask.facts())
    result = make_lock(loaded, options, access=access, store=store, now=now, progress=progress)
    if errors := errors_of(result.findings):
        message = f"{name} cannot be locked as it is"
        raise Refused(message, hint=f"envbuild lock {name}", details=allow.lines(errors))
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


def _answered(lock: Lock, loaded: LoadedRecipe, facts: Facts, *, now: datetime) -> Findings:
    """Return what a lock's check says, and what the facts say against it.

    Raises:
        Refused: The lock does not answer its recipe, or cannot work.
    """
    findings = check_lock(lock, loaded)
    name = loaded.recipe.name
    known = against_facts(loaded, lock, facts, today=now.astimezone(UTC).date())
    if errors := errors_of(known):
        message = f"{name} cannot work: what is known speaks against it"
        raise Refused(message, hint=f"envbuild check {name}", details=allow.lines(errors))
    if errors := errors_of(findings):
        message = f"the lock of {name} does not answer its recipe"
        raise Refused(message, hint=f"envbuild lock {name}", details=allow.lines(errors))
    return (*findings, *known)


def _on_host(order: Order, lock: Lock, ask: Ask, place: Place) -> tuple[Order, Host]:
    """Choose the interpreter; with it the markers and the environment digest are known."""
    python = host.choose(order.host_python or "", _wish(ask, place))
    digest = host.digest(python)
    interpreter = Interpreter(
        path=str(python.path),
        version=python.version,
        digest=digest,
        stamps=manifests.stamps(host.watched(python, place.store.added_pythons)),
        libraries=host.libraries(python),
        origin=python.origin,
    )
    environment = environment_digest(
        lock,
        ask.platform,
        interpreter=digest,
        python=python.version,
        store_format=GENERATION_FORMAT,
    )
    order = replace(
        order,
        environment_digest=environment,
        pip=applying(order.pip, ask.platform, python=python.version),
    )
    changed = _changed(place, python, digest)
    return order, Host(python=python, interpreter=interpreter, findings=changed)


def _changed(place: Place, python: host.HostPython, digest: str) -> Findings:
    """Return what there is to say where the current generation has another interpreter."""
    try:
        before = present.current(place)
        old = manifests.read(before).interpreter if before is not None else None
    except StoreError:
        return ()  # a damaged one has nothing to compare with, and may be about to be replaced
    if old is None or old.digest == digest:
        return ()
    return host.changed(old.path, old.digest, python)


def _wish(ask: Ask, place: Place) -> host.Wish:
    return host.Wish(
        option=ask.pythons.option,
        variable=ask.pythons.variable,
        channels=place.store.channels,
        running=ask.pythons.running,
        search=ask.pythons.search,
    )


def make_order(
    loaded: LoadedRecipe,
    lock: Lock,
    platform: Platform,
    *,
    inputs: Inputs,
    findings: Findings,
    facts: Facts | None = None,
) -> Order:
    """Join a recipe and its lock for one platform.

    With the host's Python the environment digest stays empty: the interpreter is part of it.

    Args:
        loaded: The recipe.
        lock: Its lock.
        platform: This machine's.
        inputs: The files they were read from.
        findings: What reading had to say.
        facts: The tables, from which what it needs of a host follows; None where nobody asks.

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
            lock, platform, interpreter=None, python=python, store_format=GENERATION_FORMAT
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
        allow=allow.allowed(loaded),
        needs=needs_of(loaded, lock, platform, facts or Facts()),
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
