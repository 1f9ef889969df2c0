"""`repair`: another generation of what a damaged one was made from; the damaged one stays.

Recipe and lock may have moved on since, so neither is read: a generation keeps its order.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from envbuild.access import Access
from envbuild.channel import host
from envbuild.errors import Refused, StoreError
from envbuild.findings import Findings, errors_of
from envbuild.progress import Progress
from envbuild.store import manifest as manifests
from envbuild.store import needs, verify
from envbuild.store.create import Created, Host, Options, create
from envbuild.store.journal import Who
from envbuild.store.layout import Generation
from envbuild.store.ledger import Ledger
from envbuild.store.order import Order, loads

_WHAT = "repair"


@dataclass(frozen=True, kw_only=True, slots=True)
class Repair:
    """What a repair found and did.

    Attributes:
        findings: What `verify` says of the generation that was looked at.
        created: The generation that was made in its place, None where nothing was (to be) done.
    """

    findings: Findings
    created: Created | None = None


def repair(
    generation: Generation,
    *,
    home: Path,
    access: Access,
    progress: Progress,
    who: Who,
    now: datetime,
) -> Repair:
    """Make a damaged generation anew, as the next of its digest; it becomes current if that was.

    What was remembered of the caches is dropped, and a package is fetched anew whose changed file
    is one with the cache's, so that no damage reaches the new one.

    Args:
        generation: What to look at.
        home: The user's home, for conda's list of environments.
        access: How the network is reached.
        progress: Who is told.
        who: Who asks for it.
        now: The instant (UTC).

    Raises:
        StoreError: What it was made from is not kept.
        Refused: The interpreter of the machine is another one by now.
        EnvbuildError: As `store.create.create` raises it.
    """
    findings = verify.examine(generation, progress=progress)
    if not errors_of(findings):
        return Repair(findings=findings)
    order = kept_order(generation)
    chosen = _host(order, generation)
    place = generation.place
    Ledger(place.store.ledger).doubt()
    options = Options(
        reinstall=True,
        compiled=_compiled(generation),
        replaces=generation.identifier,
        spoiled=tuple(sorted(set(_shared_damage(generation, findings)))),
        what=_WHAT,
        home=home,
    )
    created = create(
        order, place, options, host=chosen, access=access, progress=progress, who=who, now=now
    )
    return Repair(findings=findings, created=created)


def kept_order(generation: Generation) -> Order:
    """Return what a generation was made from.

    Raises:
        StoreError: It is not kept (an older envbuild made it), or damaged.
    """
    hint = f"envbuild create {generation.place.name} --reinstall"
    try:
        order = loads(generation.order.read_bytes())
    except FileNotFoundError as error:
        message = f"generation {generation.identifier} does not keep what it was made from"
        raise StoreError(message, hint=hint) from error
    except (OSError, ValueError) as error:
        message = f"{generation.order} cannot be read: {error}"
        raise StoreError(message, hint=hint) from error
    if not generation.identifier.startswith(order.environment_digest[:16] or "-"):
        message = f"{generation.order} belongs to another generation"
        raise StoreError(message, hint=hint)
    try:
        inputs, needed = manifests.read(generation).inputs, needs.read(generation)
    except StoreError:
        return order
    return replace(order, inputs=inputs, needs=needed)


def _compiled(generation: Generation) -> bool:
    try:
        return manifests.read(generation).compiled
    except StoreError:
        return False


def _host(order: Order, generation: Generation) -> Host | None:
    """Return the interpreter that the generation was made with.

    Raises:
        Refused: It is another one by now.
        HostError: It is gone.
        StoreError: Which one it was is not known any more.
    """
    if order.host_python is None:
        return None
    interpreter = manifests.read(generation).interpreter
    if interpreter is None:
        message = f"{generation.manifest} names no interpreter"
        raise StoreError(message, hint=f"envbuild create {order.name} --reinstall")
    wish = host.Wish(option=interpreter.path)
    if interpreter.origin == host.ADDED:
        wish = host.Wish(channels=generation.place.store.channels)
    python = host.choose(order.host_python, wish)
    if host.digest(python) != interpreter.digest:
        message = f"{interpreter.path} has changed since generation {generation.identifier}"
        raise Refused(message, hint=f"envbuild create {order.name}")
    return Host(python=python, interpreter=interpreter)


def _shared_damage(generation: Generation, findings: Findings) -> Iterator[str]:
    """Yield the packages whose changed files are the very files of a cache."""
    changed = {one.where for one in findings if one.code == "file-changed"}
    try:
        listed = manifests.read_files(generation, manifests.read(generation))
    except StoreError:
        return
    for row in listed.rows:
        if row.path in changed and row.package is not None:
            status = os.lstat(generation.prefix / row.path)
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                yield listed.packages[row.package]
