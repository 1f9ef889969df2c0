"""`envbuild gc`: remove old generations."""

import click

from envbuild.cli import confirm, moved, options, output, patience
from envbuild.cli.context import Here
from envbuild.errors import InputError
from envbuild.store import collect, inventory, present
from envbuild.store.collect import Collection
from envbuild.store.layout import Generation
from envbuild.tools import units


@options.command(
    "gc",
    examples="""
    envbuild gc --dry-run
    envbuild gc h100-pt24 --keep 1 -y
    """,
)
@options.environment_argument(required=False)
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=0),
    help=f"How many of the newest generations stay (default: {collect.DEFAULT_KEEP})."
    "  [env: ENVBUILD_KEEP]",
)
@options.dry_run_option
@options.yes_option
@options.json_option
@patience.lock_timeout_option
@click.pass_obj
def command(
    here: Here, name: str | None, *, keep: int | None, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Remove old generations, of one environment or of all.

    The current generation, the newest N, pinned ones (`envbuild pin`) and those that a process or
    another host uses, or an installed unit names, stay. What killed builds left goes.
    """
    keep = here.settings.keep if keep is None else keep
    keep = collect.DEFAULT_KEEP if keep is None else keep
    names = present.names(here.store) if name is None else (name,)
    places = [here.store.place(each) for each in names]
    if name is not None:
        places = [present.own(here.stores, name, command="gc")]
    folders = units.folders(here.home)
    planned = collect.plan(places, keep=keep, unit_folders=folders)
    going = [generation for part in planned for generation in part.going]
    freed = inventory.disk_bytes(going)
    sizes = {generation: inventory.disk_bytes([generation]) for generation in going}
    if not as_json:
        _show(planned, sizes, freed)
    if going and not dry_run:
        confirm.ask(yes=yes, what=f"remove {len(going)} generations")
        who, now = moved.who(here), here.now()
        done: list[Collection] = []
        for part in planned:
            try:
                if part.going:
                    done.append(
                        collect.collect(part, keep=keep, who=who, now=now, unit_folders=folders)
                    )
            except InputError:  # it was removed meanwhile
                if name is not None:
                    raise
        planned = tuple(done)
    if not dry_run:
        collect.tidy(here.store, places, who=moved.who(here))
    if as_json:
        output.print_json(
            {"dry_run": dry_run, "freed_bytes": freed, "environments": _data(planned, sizes)}
        )


def _show(planned: tuple[Collection, ...], sizes: dict[Generation, int], freed: int) -> None:
    rows = []
    for part in planned:
        name = part.place.name
        rows += [(name, kept.generation.identifier, "keep", kept.reason) for kept in part.kept]
        for what, going in (("old", part.old), ("a build that did not end", part.rubbish)):
            for generation in going:
                size = output.bytes_text(sizes[generation])
                rows.append((name, generation.identifier, "remove", f"{what}, {size}"))
    if rows:
        output.result(output.table(("NAME", "GENERATION", "", "WHY"), rows))
    output.result(f"frees {output.bytes_text(freed)}")


def _data(planned: tuple[Collection, ...], sizes: dict[Generation, int]) -> list[dict[str, object]]:
    return [
        {
            "name": part.place.name,
            "kept": [
                {"generation": kept.generation.identifier, "reason": kept.reason}
                for kept in part.kept
            ],
            "removed": [generation.identifier for generation in part.old],
            "incomplete": [generation.identifier for generation in part.rubbish],
            "bytes": {generation.identifier: sizes[generation] for generation in part.going},
        }
        for part in planned
    ]
