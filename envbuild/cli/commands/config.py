"""`envbuild config`: what is set, and where."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from envbuild.config.keys import Setting, Value


@options.group(
    "config",
    examples="""
    envbuild config
    envbuild config --json
    envbuild config get store
    """,
    invoke_without_command=True,
)
@options.json_option
@click.pass_context
def command(ctx: click.Context, *, as_json: bool) -> None:
    """Show every setting with its value and where it was said.

    An option wins over a variable, a variable over ~/.config/envbuild/config.toml, that over
    /etc/envbuild/config.toml, and that over what pip, uv, conda and pixi are told.
    """
    if ctx.invoked_subcommand is not None:
        return
    here: Here = ctx.ensure_object(Here)
    rows = _rows(here)
    files = [str(path) for path in here.settings.files]
    if as_json:
        output.print_json({"files": files, "settings": [_data(row) for row in rows]})
        return
    lines = ((row.key, _text(row.value) or "-", row.origin) for row in rows)
    output.result(output.table(("SETTING", "VALUE", "FROM"), lines))
    if not files:
        output.say(here, "there is no configuration file of envbuild's")


def _keys(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    from envbuild.config.keys import BY_NAME

    return [CompletionItem(name) for name in BY_NAME if name.startswith(incomplete)]


@command.command("get", examples="envbuild config get mirrors.conda-forge")
@click.argument("key", shell_complete=_keys)
@options.json_option
@click.pass_obj
def get(here: Here, key: str, *, as_json: bool) -> int:
    """Print the value of one setting.

    Exit code 0: it has one; 1: it is not set.
    """
    from envbuild.config.keys import BY_NAME, key_of

    if key_of(key) is None:
        import difflib

        near = difflib.get_close_matches(key, BY_NAME, n=1)
        message = f"there is no setting {key!r}{f'; did you mean {near[0]!r}?' if near else ''}"
        raise click.UsageError(message)
    found = next((row for row in _rows(here) if row.key == key), None)
    if as_json:
        output.print_json({"setting": None if found is None else _data(found)})
    elif found is not None and found.value != "":
        output.result(_text(found.value))
    return 0 if found is not None and found.value != "" else 1


def _rows(here: Here) -> "tuple[Setting, ...]":
    from envbuild.config import foreign, origins, settings

    own = settings.load(here.settings.files, home=here.home, lines=True).rows
    others = foreign.rows(here.environment, here.home, with_files=here.settings.files_read)
    told = {
        "store": here.store_option or "",
        "recipes": here.recipes_option or "",
        "lockfiles": here.locks_option or "",
        "color": here.color_option,
    }
    rows = origins.effective(told, here.environment, (*own, *others))
    return tuple(
        replace(row, value=str(here.store.root)) if row.key == "store" else row for row in rows
    )


def _data(row: "Setting") -> dict[str, object]:
    value = list(map(output.mask, row.value)) if isinstance(row.value, tuple) else row.value
    return {
        "key": row.key,
        "value": output.mask(value) if isinstance(value, str) else value,
        "from": row.source,
        "line": row.line,
        "tool": row.tool or None,
    }


def _text(value: "Value") -> str:
    """Return a value as a table shows it, logins masked."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return output.mask(", ".join(value))
    return output.mask(f"{value}")
