"""`envbuild list`: environments, or the packages of one."""

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.store import inventory, present, use


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
    found = inventory.summaries(here.store)
    if as_json:
        rows = [
            {
                "name": each.name,
                "current": each.current,
                "generations": each.generations,
                "bytes": each.size,
                "platform": each.platform or None,
                "python": each.python or None,
                "created": each.created or None,
                "problem": each.problem or None,
            }
            for each in found
        ]
        output.print_json({"store": str(here.store.root), "environments": rows})
    elif found:
        headings = ("NAME", "CURRENT", "GENERATIONS", "SIZE", "PLATFORM", "PYTHON", "CREATED")
        lines = (
            (
                each.name,
                each.current or "-",
                str(each.generations),
                "-" if each.size is None else output.bytes_text(each.size),
                each.platform or "-",
                each.python or "-",
                each.problem or each.created or "-",
            )
            for each in found
        )
        output.result(output.table(headings, lines))
    else:
        output.say(here, f"no environments in {here.store.root}")
        output.next_step(here, "envbuild create quickstart")


def _packages(here: Here, name: str, generation: str | None, *, as_json: bool) -> None:
    chosen = use.chosen(present.existing(here.store, name), generation)
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
