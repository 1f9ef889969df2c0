"""`envbuild list`: environments, or the packages of one."""

import click

from envbuild.cli import options, output, whose
from envbuild.cli.context import Here
from envbuild.store import inventory, present, use
from envbuild.store.inventory import Summary
from envbuild.store.layout import Store


@options.command(
    "list",
    examples="""
    envbuild list
    envbuild list h100-pt24 --json
    """,
)
@options.generation_option
@options.environment_argument(required=False)
@options.json_option
@click.pass_obj
def command(here: Here, name: str | None, generation: str | None, *, as_json: bool) -> None:
    """List the environments of the store, or the packages of one."""
    if name is not None:
        _packages(here, name, generation, as_json=as_json)
    elif generation is not None:
        message = "--generation needs a NAME"
        raise click.UsageError(message)
    else:
        _environments(here, as_json=as_json)


def _environments(here: Here, *, as_json: bool) -> None:
    found = _seen(here)
    if as_json:
        rows = [
            {
                "name": each.name,
                "store": str(store.root),
                "current": each.current,
                "generations": each.generations,
                "bytes": each.size,
                "platform": each.platform or None,
                "python": each.python or None,
                "created": each.created or None,
                "problem": each.problem or None,
            }
            for store, each in found
        ]
        output.print_json({"store": str(here.store.root), "environments": rows})
    elif found:
        headings = ["NAME", "CURRENT", "GENERATIONS", "SIZE", "PLATFORM", "PYTHON", "CREATED"]
        texts = [
            [
                each.name,
                each.current or "-",
                str(each.generations),
                "-" if each.size is None else output.bytes_text(each.size),
                each.platform or "-",
                each.python or "-",
                each.problem or each.created or "-",
                str(store.root),
            ]
            for store, each in found
        ]
        if any(store != here.store for store, _ in found):
            headings.append("STORE")
        output.result(output.table(headings, [row[: len(headings)] for row in texts]))
    else:
        output.say(here, f"no environments in {here.store.root}")
        output.next_step(here, "envbuild create quickstart")


def _seen(here: Here) -> list[tuple[Store, Summary]]:
    """Return the environments of the user's own store, then those of the system's besides."""
    found: dict[str, tuple[Store, Summary]] = {}
    for store in here.stores:
        for each in inventory.summaries(store):
            found.setdefault(each.name, (store, each))
    return list(found.values())


def _packages(here: Here, name: str, generation: str | None, *, as_json: bool) -> None:
    place = present.found(here.stores, name)
    whose.say(here, place)
    chosen = use.chosen(place, generation)
    packages = sorted(inventory.packages(chosen), key=lambda each: (each.name, each.kind))
    if as_json:
        rows = [
            {
                "name": each.name,
                "version": each.version,
                "build": each.build or None,
                "kind": each.kind,
                "source": each.source or None,
                "sha256": each.digest or None,
            }
            for each in packages
        ]
        output.print_json({"name": name, "generation": chosen.identifier, "packages": rows})
        return
    lines = (
        (each.name, each.version, each.build or "-", each.kind, output.mask(each.source) or "-")
        for each in packages
    )
    output.result(output.table(("PACKAGE", "VERSION", "BUILD", "KIND", "FROM"), lines))
