"""What keeps generations from being removed: processes, units, and other hosts."""

from collections.abc import Sequence
from pathlib import Path

from envbuild.store import leases
from envbuild.store.layout import Generation
from envbuild.tools import processes, units
from envbuild.tools.processes import Process

_MOST = 3


def uses(
    generations: Sequence[Generation],
    *,
    proc: Path = Path("/proc"),
    unit_folders: Sequence[Path] = units.SYSTEM,
) -> dict[Generation, str]:
    """Say for each generation what uses it, empty for nothing.

    Where other hosts share the store, they are told what this one uses.

    Args:
        generations: Complete ones or not, of one store.
        proc: Where proc(5) is mounted.
        unit_folders: Where units are installed.
    """
    prefixes = [generation.prefix for generation in generations]
    running = processes.using(prefixes, proc=proc)
    named = units.naming(prefixes, unit_folders)
    elsewhere = leases.of_others(generations[0].place.store) if generations else ()
    found: dict[Generation, str] = {}
    for generation in generations:
        key = (generation.place.name, generation.identifier)
        texts = [
            _listed("used by", [_name(user) for user in running[generation.prefix]]),
            _listed("named by", named[generation.prefix]),
            *(one.text for one in elsewhere if (one.environment, one.identifier) == key),
        ]
        found[generation] = ", ".join(filter(None, texts))
        for user in running[generation.prefix]:
            leases.hold(generation, user.pid)
        for unit in named[generation.prefix]:
            leases.hold_for_unit(generation, unit)
    if generations:
        _renew(generations, named)
    return found


def _renew(generations: Sequence[Generation], named: "dict[Path, tuple[str, ...]]") -> None:
    """Renew this host's leases; of generations that were not looked at, units' ones stay."""
    store = generations[0].place.store
    leases.renew(
        store,
        units={
            (generation.place.name, generation.identifier, unit)
            for generation in generations
            for unit in named[generation.prefix]
        },
        looked_at={(generation.place.name, generation.identifier) for generation in generations},
    )


def _name(process: Process) -> str:
    return f"{process.pid} ({process.name})"


def _listed(how: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    return f"{how} {', '.join(names[:_MOST])}{' and others' if len(names) > _MOST else ''}"
