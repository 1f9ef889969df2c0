"""`envbuild remove`: remove an environment with all its generations."""

import click

from envbuild.cli import confirm, moved, options, output, patience
from envbuild.cli.context import Here
from envbuild.store import collect, inventory, present


@options.command(
    "remove",
    examples="""
    envbuild remove quickstart
    envbuild remove quickstart -y
    """,
)
@options.environment_argument()
@options.yes_option
@options.json_option
@patience.lock_timeout_option
@click.pass_obj
def command(here: Here, name: str, *, yes: bool, as_json: bool) -> None:
    """Remove an environment with all its generations.

    Refused while a process or another host uses one of them, or an installed unit names one.
    Caches, recipes and locks stay.
    """
    place = present.own(here.stores, name, command="remove")
    parts = (*present.generations(place), *present.incomplete(place))
    freed = inventory.disk_bytes(parts)
    size = output.bytes_text(freed)
    confirm.ask(yes=yes, what=f"remove {name}, {len(parts)} generations, {size}")
    done = collect.remove(place, home=here.home, who=moved.who(here), now=here.now())
    left = [str(path) for path in done.left]
    if as_json:
        data = {"name": name, "removed": list(done.generations), "freed_bytes": freed, "left": left}
        output.print_json(data)
        return
    output.result(f"{name} is removed, {size} are free")
    for path in left:
        output.say(here, f"left, not ours: {path}")
