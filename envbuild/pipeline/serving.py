"""Units on a host: installed from what was rendered, and removed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from envbuild.errors import InputError, StoreError
from envbuild.findings import Findings
from envbuild.pipeline.allow import judge as let_through
from envbuild.pipeline.units import Rendered
from envbuild.store import present
from envbuild.store.journal import Who
from envbuild.store.layout import Store
from envbuild.tools import locks
from envbuild.tools.systemd import Systemd
from envbuild.units import compare, fits, install, placing, record, starting, trust
from envbuild.units.fits import Seat
from envbuild.units.install import Plan
from envbuild.units.placing import Wanted
from envbuild.units.record import Record
from envbuild.units.starting import Restart


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """Where units are installed.

    Attributes:
        folder: The folder of unit files.
        systemd: The manager.
        seat: What they run as.
    """

    folder: Path
    systemd: Systemd
    seat: Seat


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """What installing would do.

    Attributes:
        plan: The files and what is started.
        findings: What there is to say; an error forbids it.
    """

    plan: Plan
    findings: Findings


@contextmanager
def alone(site: Site, name: str, *, purpose: str, who: Who) -> Iterator[None]:
    """Keep other commands from changing the units of an environment meanwhile.

    Raises:
        StoreError: The lock is not free in time, or this user may not write there.
    """
    path = site.folder / record.FOLDER / f"{name}.lock"
    try:
        with locks.exclusive(path, timeout_s=who.patience(), purpose=purpose, told=who.told):
            yield
    except PermissionError as error:
        message = f"{error.filename or path}: {error.strerror}"
        hint = "root may do it (sudo?), or --user for this user alone"
        raise StoreError(message, hint=hint) from error


def prepare(
    rendered: Rendered,
    site: Site,
    *,
    store: Store,
    today: date,
    start: bool = True,
    restart: Restart = "auto",
    moves_to: str = "",
) -> Prepared:
    """Look what installing would do, and whether it may be; systemd has read the units by then.

    Args:
        rendered: The units.
        site: Where they go.
        store: The store of the environment.
        today: The day (UTC), for what the recipe lets through.
        start: Whether what does not run is started.
        restart: What is done with what runs and differs.
        moves_to: The generation that becomes current with it.

    Raises:
        StoreError: The generation is not there, or units of that name are of another store.
        Refused: systemd does not take the units.
    """
    name = rendered.name
    if rendered.generation is not None and not present.complete(rendered.generation):
        message = f"{name} is not created as its lock is now: {rendered.generation.prefix}"
        raise StoreError(message, hint=f"envbuild create {name}")
    root = f"{store.resolved().root}"
    there = record.read(site.folder, name)
    if there is not None and there.store != root:
        message = f"the units of {name} are of another store, {there.store}"
        raise StoreError(message, hint=f"envbuild units remove {name}")
    drop_ins = fits.drop_ins(rendered.files, site.seat)
    wanted = Wanted(
        name=name,
        store=root,
        generation=rendered.generation.identifier if rendered.generation else "",
        files=(*rendered.files, *drop_ins),
        enabled=install.enabled(rendered.files),
        moves_to=moves_to,
    )
    plan = install.plan(
        wanted,
        folder=site.folder,
        systemd=site.systemd,
        start=start,
        restart=restart,
    )
    if plan.placing.changed:
        plan.placing.verify()
    found = fits.judge(rendered.files, site.seat)
    if rendered.generation is not None and site.seat.scope == "system":
        found += trust.judge(rendered.files, rendered.generation.prefix.resolve())
    if rendered.loaded is not None:
        found = let_through(found, rendered.loaded, today=today)
    return Prepared(plan=plan, findings=(*rendered.findings, *found))


def carry_out(
    prepared: Prepared, site: Site, *, told: Callable[[str], None], rolling: bool = False
) -> None:
    """Install what was prepared; errors as of `units.install.carry_out`."""
    if not prepared.plan.nothing:
        install.carry_out(prepared.plan, rolling=rolling, systemd=site.systemd, told=told)


def recover(site: Site, name: str, *, store: Store) -> Record | None:
    """Undo what an earlier command did not bring to its end; return what is installed."""
    current: str | None = None
    try:
        found = present.current(store.resolved().place(name))
        current = found.identifier if found else None
    except StoreError:
        current = None
    return placing.recover(site.folder, name, systemd=site.systemd, current=current)


def remove(site: Site, name: str) -> tuple[str, ...]:
    """Stop an environment's services, and remove its units; return the files that went.

    Raises:
        InputError: None are installed.
    """
    files = installed(site.folder, name)
    patterns = [unit.replace("@.", "@*.") for unit in files]
    ordered = sorted(patterns, key=lambda unit: unit.endswith((".service", ".slice")))
    site.systemd.stop(starting.running(site.systemd, ordered))
    loaded = site.systemd.show(patterns, ["ActiveState"])
    site.systemd.forget(one["Id"] for one in loaded if one.get("ActiveState") == "failed")
    return placing.remove(site.folder, name, systemd=site.systemd)


def installed(folder: Path, name: str) -> tuple[str, ...]:
    """Return the units of an environment that a folder has, sorted.

    Raises:
        InputError: There is none.
    """
    found = tuple(compare.own(folder, name))
    if not found:
        message = f"no units of {name} are installed in {folder}"
        raise InputError(message, source=name, hint=f"envbuild units install {name}")
    return found
