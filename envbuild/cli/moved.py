"""What the commands that move `current` share: who asks, and how the answer is shown."""

from envbuild.cli import output
from envbuild.cli.context import Here
from envbuild.store.history import Switched
from envbuild.store.journal import Who


def who(here: Here) -> Who:
    """Return who runs this command."""
    return Who(
        user=here.user,
        host=here.host,
        patience_s=here.lock_timeout_s,
        told=lambda text: output.say(here, text),
    )


def show(done: Switched, *, as_json: bool) -> None:
    """Print what is current now and what was before."""
    now, name = done.generation.identifier, done.generation.place.name
    if as_json:
        output.print_json({"name": name, "from": done.origin, "to": now, "moved": done.moved})
    elif done.moved:
        output.result(f"{name}: {done.origin or 'nothing'} -> {now}")
    else:
        output.result(f"{name}: {now} is current already")
