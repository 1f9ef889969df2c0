"""One page per command and the table of them, from the command line's own definitions."""

import inspect
from collections.abc import Iterator, Mapping

import click
import setting_page

from envbuild.cli.main import commands
from envbuild.cli.options import EVERYWHERE, Command, Group
from envbuild.cli.table import ALIASES, HELP, SECTIONS

_CODES = (
    "0: done, or checked and fine. 1: checked, and the answer is no. "
    "Errors have [their own codes](../errors/index.md)."
)
_HANDED_OVER = (
    "The command's own. {code} where envbuild itself fails, 126 where the command cannot be "
    "executed, 127 where it does not exist; see [exit codes](../errors/index.md)."
)
_OTHER_NAMES = {"--locks": "ENVBUILD_LOCKFILES", "--no-compile": "ENVBUILD_COMPILE"}
_ONLY_AS = {"--python": "PATH"}  # elsewhere it is a version


def pages() -> Mapping[str, str]:
    """Return a page in Markdown by file name."""
    variables = setting_page.variables()
    whole = click.Context(commands, info_name="envbuild")
    found = {}
    for name in HELP:
        command = _ours(commands.get_command(whole, name))
        lines = [f"# envbuild {name}\n", *_described(command, whole, variables, level="##")]
        if isinstance(command, Group):
            lines += _below(command, whole, variables)
        code = command.failure_code if isinstance(command, Command) else None
        told = _CODES if code is None else _HANDED_OVER.format(code=code)
        lines += ["## Options of every command\n", *_options(EVERYWHERE, whole, variables)]
        lines += ["## Exit codes\n", told]
        found[f"{name}.md"] = "\n".join(lines) + "\n"
    return found


def tables() -> str:
    """Return a table of the commands per section of the help."""
    parts = []
    for title, section in SECTIONS.items():
        parts += [f"### {title}\n", "| command | what it does |", "| --- | --- |"]
        for name, text in section.items():
            also = "".join(f" (`{alias}`)" for alias in _aliases(name))
            parts.append(f"| [`{name}`](commands/{name}.md){also} | {text} |")
        parts.append("")
    return "\n".join(parts)


def options() -> Mapping[str, str]:
    """Return the option that says the same as a variable, by the variable."""
    whole = click.Context(commands, info_name="envbuild")
    found: dict[str, str] = {}
    for name in HELP:
        for option in _ours(commands.get_command(whole, name)).get_params(whole):
            if isinstance(option, click.Option):
                variable = _variable(option, setting_page.variables())
                record = option.get_help_record(whole)
                if variable and record:
                    short = record[0].rpartition(", ")[2]
                    found.setdefault(variable, short)
    return found


def _ours(command: click.Command | None) -> Command | Group:
    if isinstance(command, Command | Group):
        return command
    message = f"{command} has no examples"
    raise TypeError(message)


def _aliases(name: str) -> list[str]:
    return [alias for alias, command in ALIASES.items() if command == name]


def _below(group: Group, whole: click.Context, variables: frozenset[str]) -> Iterator[str]:
    context = click.Context(group, parent=whole, info_name=group.name)
    for name in group.list_commands(context):
        command = _ours(group.get_command(context, name))
        yield f"## {name}\n"
        yield from _described(command, context, variables, level="###")


def _described(
    command: Command | Group, parent: click.Context, variables: frozenset[str], *, level: str
) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=command.name)
    if aliases := _aliases(command.name or ""):
        yield f"Also `envbuild {aliases[0]}`.\n"
    yield f"{_text(command)}\n"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```\n"
    everywhere = set(map(id, EVERYWHERE))
    own = [
        option
        for option in command.get_params(context)
        if isinstance(option, click.Option)
        and id(option) not in everywhere
        and "--help" not in option.opts
    ]
    if own:
        yield f"{level} Options\n"
        yield from _options(own, context, variables)
    yield f"{level} Examples\n"
    yield "```sh\n" + inspect.cleandoc(command.examples) + "\n```\n"


def _text(command: click.Command) -> str:
    return inspect.cleandoc(command.help or "").replace("\b\n", "").replace("<", "&lt;")


def _options(
    options: "tuple[click.Option, ...] | list[click.Option]",
    context: click.Context,
    variables: frozenset[str],
) -> Iterator[str]:
    yield "| option | variable | what it says |"
    yield "| --- | --- | --- |"
    for option in options:
        record = option.get_help_record(context)
        if record is None:
            continue
        names, text = record
        told = text.partition("[env")[0].strip().replace("|", "\\|")
        variable = _variable(option, variables)
        yield f"| `{names}` | {f'`{variable}`' if variable else ''} | {told} |"
    yield ""


def _variable(option: click.Option, variables: frozenset[str]) -> str | None:
    """Return the variable that says the same as an option."""
    for name in (*option.opts, *option.secondary_opts):
        made = "ENVBUILD_" + name.lstrip("-").replace("-", "_").upper()
        variable = _OTHER_NAMES.get(name, made)
        if variable in variables and option.metavar == _ONLY_AS.get(name, option.metavar):
            return variable
    return None
