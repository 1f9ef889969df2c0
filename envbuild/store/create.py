"""Creating an environment's generation, or taking the one that is there, and making it current."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.access import Access
from envbuild.errors import LockError
from envbuild.findings import Findings
from envbuild.progress import Progress
from envbuild.store import (
    formats,
    halves,
    history,
    integrate,
    journal,
    leases,
    leftovers,
    needs,
    noop,
    present,
)
from envbuild.store import manifest as manifests
from envbuild.store.build import Build, build
from envbuild.store.installed import Owner
from envbuild.store.journal import Change, Who
from envbuild.store.layout import Generation, Place
from envbuild.store.manifest import Interpreter, Manifest
from envbuild.store.order import Order, let_through
from envbuild.tools import files, locks
from envbuild.tools.interrupts import Piece

if TYPE_CHECKING:
    from envbuild.channel.host import HostPython

PATIENCE_S = 3600.0
_DIGITS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How to create.

    Attributes:
        reinstall: Make another generation although a complete one is there.
        compiled: Compile bytecode.
        switch: Make it current.
        replaces: ID of the one generation in whose place it becomes current, None for whichever.
        spoiled: Packages (`conda:NAME`, `pypi:NAME`) that are fetched anew: what the caches have
            of them is not what they declare.
        what: What the history says of it.
        home: The user's home, for conda's list of environments; None leaves the list alone.
    """

    reinstall: bool = False
    compiled: bool = False
    switch: bool = True
    replaces: str | None = None
    spoiled: tuple[str, ...] = ()
    what: str = "create"
    home: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The machine's interpreter for a recipe that is built on it.

    Attributes:
        python: The interpreter.
        interpreter: What the manifest keeps of it.
        findings: What choosing it had to say: of this move, not of the generation.
    """

    python: "HostPython"
    interpreter: Interpreter
    findings: Findings = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Created:
    """What creation did.

    Attributes:
        generation: The generation.
        manifest: Its manifest.
        built: Whether it was built now (or was there).
        origin: What was current before, None for none.
        current: Whether it is current now.
        findings: What there is to say: of the generation, and of what was read for it now.
    """

    generation: Generation
    manifest: Manifest
    built: bool
    origin: str | None
    current: bool
    findings: Findings


def create(
    order: Order,
    place: Place,
    options: Options,
    *,
    host: Host | None,
    access: Access,
    progress: Progress,
    who: Who,
    now: datetime,
) -> Created:
    """Create a generation, or take the newest complete one of the same digest.

    Args:
        order: What to create; the environment digest is known.
        place: Where.
        options: How.
        host: The machine's interpreter, None with conda's.
        access: How the network is reached.
        progress: Who is told.
        who: Who asks for it.
        now: The instant (UTC).

    Raises:
        Refused: A check or the smoke test says no; `current` is untouched.
        LockError: A PyPI half without a Python to put it in.
        FetchError: An archive is out of reach or has another hash.
        ToolError: An engine failed.
        StoreError: The store is held, full, or cannot be written.
    """
    place = place.store.resolved().place(place.name)
    try:
        patience_s = who.patience(PATIENCE_S)
        with (
            locks.exclusive(
                place.lock, timeout_s=patience_s, purpose=f"create {place.name}", told=progress.step
            ) as descriptor,
            _cleared(place),
        ):
            found = None if options.reinstall else newest(place, order.environment_digest)
            if found is None:
                generation = place.generation(_identifier(place, order.environment_digest))
                work = Build(
                    order=order,
                    generation=generation,
                    python_version=_python_version(order, host),
                    host_python=host.python if host else None,
                    interpreter=host.interpreter if host else None,
                    compiled=options.compiled,
                    access=access,
                    progress=progress,
                    now=now,
                    patience_s=patience_s,
                    keep=(descriptor,),
                )
                halves.evict(work, order.conda, _owners(options.spoiled))
                manifest = build(work)
            else:
                generation = found
                manifest = _refreshed(found, order, host)
            moves, origin = _move(generation, options, who=who, now=now)
            if found is None and not moves:
                what = "build" if options.what == "create" else options.what
                change = Change(what=what, environment=place.name, to=generation.identifier)
                journal.note(place.store, change, who=who, now=now)
            return Created(
                generation=generation,
                manifest=manifest,
                built=found is None,
                origin=origin,
                current=moves or origin == generation.identifier,
                findings=_said(manifest, order, host, now),
            )
    except OSError as error:
        raise history.unusable(place, error) from error
    except KeyboardInterrupt:
        leftovers.clear_emptied(place.root)  # it came while the lock was taken
        raise


def _owners(labels: Sequence[str]) -> tuple[Owner, ...]:
    return tuple(Owner(label=label, package=label, paths=(), digests=()) for label in labels)


def _move(
    generation: Generation, options: Options, *, who: Who, now: datetime
) -> tuple[bool, str | None]:
    """Make a generation current, if that is wanted.

    Returns:
        Whether it was wanted, and what was current before.
    """
    place = generation.place
    if not options.switch or options.replaces is not None:
        current = present.current(place)
        origin = current.identifier if current else None
        if not options.switch or origin != options.replaces:
            return False, origin
    with Piece():
        switched = history.move_current(generation, what=options.what, who=who, now=now)
        if options.home is not None:
            integrate.register(place, home=options.home)
        integrate.link_by_name(place)  # last: where it is, there is nothing left to do
    return True, switched.origin


def _said(manifest: Manifest, order: Order, host: Host | None, now: datetime) -> Findings:
    """Return what is known of a generation, and what was read for it now, each once."""
    said = (*order.findings, *(host.findings if host else ()))
    said = let_through(said, order.allow, today=now.date())
    return tuple(dict.fromkeys((*manifest.findings, *said)))


def _refreshed(found: Generation, order: Order, host: Host | None) -> Manifest:
    """Return the manifest of a generation that is there; keep what it answers now.

    A recipe or lock that was edited without changing what is installed, or an interpreter whose
    files were touched, would otherwise be read again at each create.
    """
    manifest = manifests.read(found)
    interpreter = host.interpreter if host else None
    inputs = order.inputs if order.inputs.recipe else manifest.inputs  # frozen: nothing was asked
    if (manifest.inputs, manifest.interpreter) != (inputs, interpreter):
        manifest = replace(manifest, inputs=inputs, interpreter=interpreter)
        if not os.access(found.own, os.W_OK):  # another user's, of a shared store
            return manifest
        times = (found.manifest.stat().st_mtime_ns,) * 2
        files.write_atomic(found.needs, needs.dumps(order.needs))
        manifests.write(found, manifest)
        os.utime(found.manifest, ns=times)  # the order of generations is that of their making
    return manifest


@contextlib.contextmanager
def _cleared(place: Place) -> Iterator[None]:
    """Begin without what killed commands left; after a failure, nothing of this one stays."""
    formats.begin(place.store)
    try:
        files.make_folder(place.generations)  # once the lock is held: `remove` takes it away
        leases.prepare(place.store)
        leftovers.clear(place)
        leftovers.clear_caches(place.store)
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            leftovers.forget(place)
            leftovers.clear_caches(place.store)
        raise


def newest(place: Place, digest: str) -> Generation | None:
    """Return the newest complete generation of a digest that can be used where it lies."""
    fitting = [one for one in present.generations(place) if is_of(one, digest)]
    newest_first = sorted(fitting, key=_number, reverse=True)
    return next((one for one in newest_first if noop.usable(one)), None)


def is_of(generation: Generation, digest: str) -> bool:
    """Tell whether a generation is one of an environment digest."""
    return _base(generation) == first_identifier(digest)


def first_identifier(digest: str) -> str:
    """Return the identifier of the first generation of an environment digest."""
    return digest[:_DIGITS]


def _identifier(place: Place, digest: str) -> str:
    """Return the first identifier of a digest that no generation has or had after it."""
    every = (*present.generations(place), *present.incomplete(place))
    first = first_identifier(digest)
    there = [one for one in every if is_of(one, digest)]
    return f"{first}-{max(map(_number, there)) + 1}" if there else first


def _base(generation: Generation) -> str:
    return generation.identifier.partition("-")[0]


def _number(generation: Generation) -> int:
    return int(generation.identifier.partition("-")[2] or 1)


def _python_version(order: Order, host: Host | None) -> str | None:
    """Return the full version of the Python that the prefix gets."""
    if host is not None:
        return host.python.version
    for package in order.conda:
        if package.name == "python":
            return package.version
    if order.pip:
        message = f"the lock of {order.name} has a PyPI half, and no Python in its conda half"
        raise LockError(message, source=order.name, hint=f"envbuild lock {order.name}")
    return None
