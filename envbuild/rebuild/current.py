"""Which wheel of a wheelhouse is what a plan asks for, and which is stale."""

from collections.abc import Mapping
from datetime import datetime

from packaging.version import Version

from envbuild.rebuild import provenance
from envbuild.rebuild.house import House, Kept
from envbuild.wheel.model import Cost, Rebuild


def current(
    house: House, rebuild: Rebuild, locked: Mapping[str, str], *, python: str
) -> Kept | None:
    """Return the newest wheel that was built as asked, against what the lock has; None if none is.

    Args:
        house: The wheelhouse.
        rebuild: What is asked for.
        locked: Version of each package of the lock, by normalized name.
        python: Full version of the lock's Python.
    """
    asked = provenance.parameters(rebuild)
    found = [
        kept
        for kept in house.wheels(rebuild.name)
        if kept.statement.parameters == asked
        and minor(str(kept.statement.internal["python"])) == minor(python)
        and stale(kept, locked) is None
    ]
    return max(found, key=lambda kept: kept.statement.started, default=None)


def stale(kept: Kept, locked: Mapping[str, str]) -> str | None:
    """Return why a wheel is no longer what a lock needs, None while it is.

    Args:
        kept: The wheel.
        locked: Version of each package of the lock, by normalized name.
    """
    for name, version in sorted(kept.statement.against.items()):
        now = locked.get(name)
        if now is None:
            return f"built against {name} {version}, which the lock no longer has"
        if Version(now) != Version(version):
            return f"built against {name} {version}, and the lock has {now}"
    return None


def minor(python: str) -> str:
    """Return major and minor of a version (`3.11`)."""
    return ".".join(python.split(".")[:2])


def costs(house: House) -> dict[str, Cost]:
    """Return what the last rebuild of each package took, by name."""
    found: dict[str, Cost] = {}
    for kept in sorted(house.wheels(), key=lambda kept: kept.statement.started):
        internal, statement = kept.statement.internal, kept.statement
        begun, ended = (
            datetime.fromisoformat(text) for text in (statement.started, statement.finished)
        )
        found[kept.name] = Cost(
            time_s=(ended - begun).total_seconds(),
            memory_bytes=int(internal["mostMemoryBytes"]),
            disk_bytes=int(internal["diskBytes"]),
            origin=f"{kept.name} {kept.version}, {begun:%Y-%m-%d}",
        )
    return found
