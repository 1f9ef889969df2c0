"""`envbuild channel`: local channels, that is, host Pythons and added archives."""

from pathlib import Path

import click

from envbuild.channel import added, host, local
from envbuild.cli import moved, options, output, patience
from envbuild.cli.context import Here
from envbuild.cli.wish import wish
from envbuild.store import journal
from envbuild.store.journal import Change

_ARCHIVE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@options.group(
    "channel",
    examples="""
    envbuild channel add-python /usr/bin/python3.12
    envbuild channel list
    envbuild channel index ./my-channel
    """,
)
def command() -> None:
    """Manage local channels: host Pythons and added archives."""


@command.command(
    "add-python",
    examples="""
    envbuild channel add-python
    envbuild channel add-python /usr/bin/python3.12
    """,
)
@click.argument("path", required=False)
@options.json_option
@patience.lock_timeout_option
@click.pass_obj
def add_python(here: Here, path: str | None, as_json: bool) -> None:  # noqa: FBT001
    """Pack an interpreter of this machine into the store.

    Recipes with `channels: [host]` then take it before any other, also when the machine's own is
    updated or removed. Without PATH it is the one that `create` would take.
    """
    found = host.choose("", wish(here, path, added=False))
    output.say(here, f"packing {found.path}, Python {found.version}")
    who = moved.who(here)
    patience_s = who.patience(added.PATIENCE_S)
    python = added.add_python(found, here.store.channels, patience_s=patience_s)
    change = Change(what="channel add-python", environment=None, to=f"{python.path}")
    journal.note(here.store, change, who=who, now=here.now())
    if as_json:
        data = {"path": str(python.path), "python": python.version, "digest": python.archive_digest}
        output.print_json({**data, "archive": str(python.archive)})
    else:
        output.result(str(python.archive))


@command.command("add", examples="envbuild channel add ./zlib-1.3.1-h4ab18f5_1.conda")
@click.argument("archives", metavar="FILE…", nargs=-1, required=True, type=_ARCHIVE)
@options.json_option
@patience.lock_timeout_option
@click.pass_obj
def add(here: Here, archives: tuple[Path, ...], as_json: bool) -> None:  # noqa: FBT001
    """Check conda archives and add them to the store's local channel.

    The channel is a folder that any web server can serve; a recipe uses it by a name whose
    address stands in ENVBUILD_CHANNEL_MIRRORS (`local=http://127.0.0.1:8000`).
    """
    who = moved.who(here)
    patience_s = who.patience(local.PATIENCE_S)
    taken = local.add(archives, here.store.channels, patience_s=patience_s)
    for path in taken:
        change = Change(what="channel add", environment=None, to=path.name)
        journal.note(here.store, change, who=who, now=here.now())
    if as_json:
        output.print_json({"added": [str(path) for path in taken]})
    else:
        output.result("\n".join(str(path) for path in taken))


@command.command("list", examples="envbuild channel list --json")
@options.json_option
@click.pass_obj
def list_(here: Here, as_json: bool) -> None:  # noqa: FBT001
    """List what the store's channels hold."""
    packages = local.held(here.store.channels)
    if as_json:
        output.print_json(
            {
                "packages": [
                    {
                        "channel": package.channel,
                        "subdir": package.subdir,
                        "name": package.name,
                        "version": package.version,
                        "build": package.build,
                        "path": str(package.path),
                        "size": package.size,
                        "made_of": str(package.source) if package.source else None,
                    }
                    for package in packages
                ]
            }
        )
    elif packages:
        output.result(
            output.table(
                ("CHANNEL", "SUBDIR", "NAME", "VERSION", "BUILD", "SIZE", "MADE OF"),
                (
                    (
                        package.channel,
                        package.subdir,
                        package.name,
                        package.version,
                        package.build,
                        output.bytes_text(package.size),
                        str(package.source or "-"),
                    )
                    for package in packages
                ),
            )
        )
    else:
        output.say(here, "the store's channels are empty")


@command.command("index", examples="envbuild channel index ./my-channel")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@options.json_option
@click.pass_obj
def index(here: Here, folder: Path, as_json: bool) -> None:  # noqa: ARG001, FBT001
    """Write repodata.json for a folder of conda archives (DIR/SUBDIR/FILE)."""
    written = local.index(folder)
    if as_json:
        output.print_json({"written": [str(path) for path in written]})
    else:
        output.result("\n".join(str(path) for path in written))
