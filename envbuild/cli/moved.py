"""What the commands that move `current` share: who asks, and how the answer is shown."""

from typing import TYPE_CHECKING

from envbuild.cli import output
from envbuild.cli.context import Here
from envbuild.store.history import Around, Switched
from envbuild.store.journal import Who
from envbuild.store.layout import Place

if TYPE_CHECKING:
    from envbuild.units.starting import Restart


def who(here: Here) -> Who:
    """Return who runs this command."""
    return Who(
        user=here.user,
        host=here.host,
        patience_s=here.lock_timeout_s,
        told=lambda text: output.say(here, text),
    )


def services(here: Here, place: Place, *, restart: "Restart") -> Around | None:
    """Return what moves the services of an environment with it, None where none are installed."""
    from envbuild.cli import rendering

    for user in (False, True):
        folder = rendering.unit_folder(here, user=user)
        if (folder / ".envbuild" / f"{place.name}.json").exists():
            from envbuild.units import record

            found = record.read(folder, place.name)
            if found is not None and found.store == str(place.store.resolved().root):
                return _around(here, place, user=user, restart=restart)
    return None


def _around(here: Here, place: Place, *, user: bool, restart: "Restart") -> Around:
    from envbuild.cli import rendering, serving
    from envbuild.pipeline.moving import Movers, services_moved

    told = dict.fromkeys(("version", "platform", "templates", "python"))
    movers = Movers(
        site=serving.site_of(here, user=user),
        make=lambda: rendering.make(here, place.name, {**told, "user": user}, installed=True),
        restart=restart,
        who=who(here),
        today=here.now().date(),
        told=lambda text: output.say(here, text),
    )
    return lambda generation: services_moved(generation, movers)


def show(done: Switched, *, as_json: bool) -> None:
    """Print what is current now and what was before."""
    now, name = done.generation.identifier, done.generation.place.name
    if as_json:
        output.print_json({"name": name, "from": done.origin, "to": now, "moved": done.moved})
    elif done.moved:
        output.result(f"{name}: {done.origin or 'nothing'} -> {now}")
    else:
        output.result(f"{name}: {now} is current already")
