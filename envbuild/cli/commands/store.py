"""`envbuild store`: the store itself: after a move, and after an upgrade."""

import click

from envbuild.cli import moved, options, output, patience, progress
from envbuild.cli.context import Here
from envbuild.store import migrate, present, relink
from envbuild.store.relink import Relinked


@options.group(
    "store",
    examples="""
    envbuild store relink
    envbuild store relink h100-pt24 --dry-run
    envbuild store migrate
    envbuild store share mlgroup
    """,
)
def command() -> None:
    """Keep the store itself in order, after a move and after an upgrade."""


@command.command(
    "relink",
    examples="""
    envbuild store relink
    envbuild store relink h100-pt24 --dry-run
    """,
)
@options.environment_argument(required=False)
@options.dry_run_option
@patience.lock_timeout_option
@options.json_option
@click.pass_obj
def relink_(here: Here, name: str | None, *, dry_run: bool, as_json: bool) -> int:
    """Make environments work where they lie, after their store was moved.

    Every file that holds the old path gets the new one; IDs, history and pins stay. It needs no
    network. A generation that is damaged, or has a file without room for the path, stays as it
    is and is named. Exit code 0: all work now; 1: some do not.
    """
    names = present.names(here.store) if name is None else (name,)
    places = [present.own(here.stores, each, command="store relink") for each in names]
    with progress.shown(here) as shown:
        done = [
            one
            for place in places
            for one in relink.relink(
                place,
                home=here.home,
                progress=shown,
                who=moved.who(here),
                now=here.now(),
                dry_run=dry_run,
            )
        ]
    if as_json:
        output.print_json({"dry_run": dry_run, "generations": [_data(one) for one in done]})
    else:
        _show(here, done, dry_run=dry_run)
    return 1 if any(one.findings for one in done) else 0


def _data(one: Relinked) -> dict[str, object]:
    return {
        "name": one.generation.place.name,
        "generation": one.generation.identifier,
        "from": one.origin,
        "to": str(one.generation.prefix),
        "files": one.changed,
        "relinked": not one.findings,
        "findings": output.findings_json(one.findings),
    }


def _show(here: Here, done: list[Relinked], *, dry_run: bool) -> None:
    for one in done:
        label = f"{one.generation.place.name}: generation {one.generation.identifier}"
        if one.findings:
            output.print_findings(here, one.findings, err=True)
            output.result(f"{label} stays as it was made for {one.origin}")
        else:
            what = "would be relinked" if dry_run else "relinked"
            output.result(f"{label} {what} from {one.origin} ({one.changed} files)")
    if not done:
        output.result("every generation lies where it was made")


@command.command("migrate", examples="envbuild store migrate --dry-run")
@options.dry_run_option
@patience.lock_timeout_option
@options.json_option
@click.pass_obj
def migrate_(here: Here, *, dry_run: bool, as_json: bool) -> None:
    """Move a store that an older envbuild made on to the format of this one.

    An older store works as it is; an older envbuild may refuse it afterwards. Nothing of any
    environment changes.
    """
    done = migrate.migrate(here.store, who=moved.who(here), now=here.now(), dry_run=dry_run)
    if as_json:
        data = {"dry_run": dry_run, "from": done.origin, "to": done.to, "steps": list(done.steps)}
        output.print_json(data)
        return
    for step in done.steps:
        output.result(step)
    if not done.steps:
        output.result(f"the store is of format {done.to} already")


@command.command("share", examples="envbuild store share mlgroup")
@click.argument("group")
@options.json_option
@click.pass_obj
def share_(here: Here, group: str, *, as_json: bool) -> None:
    """Let a group of users create, switch, roll back and collect in one store.

    The store is made where it is missing. A generation stays its maker's: the group runs it, and
    only its maker or root can change or remove it. Each user has caches of his own.
    """
    from envbuild.store import owners

    number = owners.share(here.store, group, who=moved.who(here), now=here.now())
    if as_json:
        output.print_json({"store": str(here.store.root), "group": number})
    else:
        output.result(f"{here.store.root} is shared with the group {group}")
