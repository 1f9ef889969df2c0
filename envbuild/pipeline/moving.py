"""Moving services with `current`: units of another generation, restarted before the link moves."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date

from envbuild.errors import InputError, Refused
from envbuild.findings import errors_of
from envbuild.pipeline import serving
from envbuild.pipeline.allow import lines
from envbuild.pipeline.serving import Site
from envbuild.pipeline.units import Rendered
from envbuild.store.history import origin_of
from envbuild.store.journal import Who
from envbuild.store.layout import Generation
from envbuild.units import compare, install
from envbuild.units.model import UnitFile
from envbuild.units.record import Record
from envbuild.units.starting import Restart


@dataclass(frozen=True, kw_only=True, slots=True)
class Movers:
    """How services are moved.

    Attributes:
        site: Where their units are.
        make: Renders the recipe's units as they are now.
        restart: What is done with what runs.
        who: Who asks.
        today: The day (UTC).
        told: Is told what is waited for.
    """

    site: Site
    make: Callable[[], Rendered]
    restart: Restart
    who: Who
    today: date
    told: Callable[[str], None]


@contextmanager
def services_moved(to: Generation, movers: Movers) -> Iterator[None]:
    """Install the units of a generation and restart what must be, before `current` moves.

    Whatever is raised, inside or by a service that does not come up, puts everything back.

    Raises:
        Refused: A service did not come up, or this host cannot do what the units say.
        StoreError: A unit cannot be written.
        ToolFailed: systemd refuses.
    """
    site, place = movers.site, to.place
    with serving.alone(site, place.name, purpose="move services", who=movers.who):
        there = serving.recover(site, place.name, store=place.store)
        if there is None or not there.generation:
            yield
            return
        prepared = serving.prepare(
            _units_of(to, there, movers),
            site,
            store=place.store,
            today=movers.today,
            start=False,
            restart=movers.restart,
            moves_to="" if origin_of(place) == to.identifier else to.identifier,
        )
        if errors := errors_of(prepared.findings):
            message = f"the services of {place.name} cannot be moved: {errors[0].what}"
            hint = f"envbuild units install {place.name} --dry-run"
            raise Refused(message, hint=hint, details=lines(errors))
        with install.carried_out(
            prepared.plan,
            rolling=movers.restart == "rolling",
            systemd=site.systemd,
            told=movers.told,
        ):
            yield


def _units_of(to: Generation, there: Record, movers: Movers) -> Rendered:
    """Return the units for a generation.

    They are the recipe's, where it answers to that generation; else what was installed with it;
    else what is installed now, with its path.
    """
    name = to.place.name
    try:
        made = movers.make()
    except (InputError, Refused):
        made = None
    if made is not None and made.generation is not None:
        before = made.generation.identifier
        if _digest(before) == _digest(to.identifier):
            files = _for(made.files, before, to)
            return Rendered(
                name=name, loaded=made.loaded, generation=to, files=files, findings=made.findings
            )
    kept = there.kept.get(to.identifier)
    if kept is not None:
        files = tuple(UnitFile(name=unit, text=text) for unit, text in sorted(kept.items()))
    else:
        units = (unit for unit in there.files if "/" not in unit)
        texts = {unit: compare.read(movers.site.folder / unit) or "" for unit in units}
        now = tuple(UnitFile(name=unit, text=text) for unit, text in texts.items() if text)
        files = _for(now, there.generation, to)
    return Rendered(name=name, loaded=None, generation=to, files=files, findings=())


def _for(files: tuple[UnitFile, ...], before: str, to: Generation) -> tuple[UnitFile, ...]:
    """Return units with the path of another generation."""
    path = re.compile(rf"/generations/{before}(?![0-9a-f-])")
    return tuple(
        UnitFile(
            name=file.name,
            text=path.sub(f"/generations/{to.identifier}", file.text),
            shared=file.shared,
        )
        for file in files
    )


def _digest(identifier: str) -> str:
    return identifier.partition("-")[0]
