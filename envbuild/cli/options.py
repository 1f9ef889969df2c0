"""Our click classes, the options that every command has, and those that several share."""

from collections.abc import Callable
from typing import Any

import click

from envbuild.cli import complete
from envbuild.cli.context import Here

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_FOLDER = click.Path(file_okay=False)


def _here(ctx: click.Context) -> Here:
    return ctx.ensure_object(Here)


def _verbose(ctx: click.Context, _: click.Parameter, value: int) -> None:
    _here(ctx).verbosity += value


def _keep(attribute: str) -> Callable[[click.Context, click.Parameter, object], None]:
    """Return a callback that keeps a value that was given; the last one given wins."""

    def callback(ctx: click.Context, _: click.Parameter, value: object) -> None:
        if value:
            setattr(_here(ctx), attribute, value)

    return callback


def _color(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    here = _here(ctx)
    here.color = here.color_option = value or here.color_option
    _show_color(ctx)


def _show_color(ctx: click.Context) -> None:
    context: click.Context | None = ctx
    while context is not None:
        context.color = _here(ctx).forced_color()
        context = context.parent


def _everywhere(*names: str, callback: Callable[..., None], **settings: Any) -> click.Option:  # noqa: ANN401
    return click.Option(names, callback=callback, expose_value=False, **settings)


EVERYWHERE: tuple[click.Option, ...] = (
    _everywhere(
        "--store",
        metavar="DIR",
        type=_FOLDER,
        callback=_keep("store_option"),
        is_eager=True,
        help="Where environments lie.",
    ),
    _everywhere(
        "--recipes",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        callback=_keep("recipes_option"),
        is_eager=True,
        help="Look for recipes here first.",
    ),
    _everywhere(
        "--locks",
        metavar="DIR",
        type=_FOLDER,
        callback=_keep("locks_option"),
        is_eager=True,
        help="Look for locks here first; write them here.",
    ),
    _everywhere(
        "--config-file",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        callback=_keep("config_option"),
        is_eager=True,
        help="Read this configuration file instead of the system's and the user's.",
    ),
    _everywhere(
        "--no-config",
        is_flag=True,
        callback=_keep("no_config_option"),
        is_eager=True,
        help="Read no configuration file, neither ours nor another tool's.",
    ),
    _everywhere(
        "-v",
        "--verbose",
        count=True,
        callback=_verbose,
        is_eager=True,
        help="Say more; twice: much more.",
    ),
    _everywhere(
        "-q",
        "--quiet",
        is_flag=True,
        callback=_keep("quiet"),
        is_eager=True,
        help="Only results and errors; wins over -v.",
    ),
    _everywhere(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        callback=_color,
        is_eager=True,
        help="When to use colour.",
    ),
    _everywhere(
        "--no-progress",
        is_flag=True,
        callback=_keep("no_progress_option"),
        is_eager=True,
        help="No moving bars.",
    ),
    _everywhere(
        "--debug",
        is_flag=True,
        callback=_keep("debug"),
        is_eager=True,
        help="Show the traceback of an internal error.",
    ),
)


def _with_everywhere(own: list[click.Parameter]) -> list[click.Parameter]:
    """Put the options of every command before `--help`, which click has last."""
    return [*own[:-1], *EVERYWHERE, *own[-1:]]


def _write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write the command's own options, then those of every command."""
    everywhere = set(map(id, EVERYWHERE))
    for title, ours in (("Options", False), ("Options of every command", True)):
        records = [
            record
            for option in command.get_params(ctx)
            if isinstance(option, click.Option)
            if (id(option) in everywhere) is ours
            if (record := option.get_help_record(ctx)) is not None
        ]
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def _write_examples(examples: str, formatter: click.HelpFormatter) -> None:
    """Write the examples as they are."""
    with formatter.section("Examples"):
        for line in examples.strip().splitlines():
            formatter.write(f"{'':{formatter.current_indent}}{line.strip()}\n")


class Command(click.Command):
    """A command with examples.

    Attributes:
        examples: Command lines, one a line, as they can be pasted.
        failure_code: Exit code of every failure of ours, None for each error's own
            (`run` keeps the others for the command that it runs).
    """

    def __init__(self, *, examples: str, failure_code: int | None = None, **settings: Any) -> None:  # noqa: ANN401
        """Keep the examples; everything else is click's."""
        super().__init__(**settings)
        self.examples = examples
        self.failure_code = failure_code

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options, those of every command, and `--help`."""
        return _with_everywhere(super().get_params(ctx))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write options in two sections."""
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples."""
        _write_examples(self.examples, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; from here on failures have this command's code."""
        _here(ctx).failure_code = self.failure_code
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run the command; what it returns is the exit code."""
        here = _here(ctx)
        here.color = here.color_option or here.settings.color
        _show_color(ctx)
        if here.verbosity and not here.quiet:
            from envbuild.cli.logs import show

            show(here.verbosity)
        return super().invoke(ctx)


class Group(click.Group):
    """A command with commands below it."""

    command_class: type[click.Command] | None = Command

    def __init__(self, *, examples: str, **settings: Any) -> None:  # noqa: ANN401
        """Keep the examples; everything else is click's."""
        super().__init__(**settings)
        self.examples = examples

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options, those of every command, and `--help`."""
        return _with_everywhere(super().get_params(ctx))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options in two sections."""
        self.format_commands(ctx, formatter)
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples."""
        _write_examples(self.examples, formatter)


def command(
    name: str,
    *,
    examples: str,
    failure_code: int | None = None,
    **settings: Any,  # noqa: ANN401
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function; its docstring is the help, its result the exit code.

    Args:
        name: The command's name.
        examples: Command lines, one a line.
        failure_code: Exit code of every failure of ours, None for each error's own.
        settings: Further arguments of `click.Command`.
    """
    return click.command(
        name, cls=Command, examples=examples, failure_code=failure_code, **settings
    )


def group(
    name: str,
    *,
    examples: str,
    **settings: Any,  # noqa: ANN401
) -> Callable[[Callable[..., Any]], Group]:
    """Make a group of a function; its docstring is the help.

    Args:
        name: The group's name.
        examples: Command lines, one a line.
        settings: Further arguments of `click.Group`.
    """
    return click.group(name, cls=Group, examples=examples, **settings)


def recipe_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add NAME, a recipe's name or file."""
    return click.argument("name", shell_complete=complete.both)(function)


def recipes_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add NAME…, at least one recipe."""
    return click.argument(
        "names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete.recipes
    )(function)


def environment_argument(*, required: bool = True) -> Decorator:
    """Add NAME, an environment in the store."""
    return click.argument("name", required=required, shell_complete=complete.environments)


def generation_argument(*, required: bool = True) -> Decorator:
    """Add GENERATION: an ID, the beginning of one, or a number of the history."""
    return click.argument("generation", required=required, shell_complete=complete.generations)


def generation_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--generation ID` as `generation`; without it, the current one is meant."""
    return click.option(
        "--generation",
        metavar="ID",
        shell_complete=complete.generations,
        help="Another generation than the current one; the beginning of an ID is enough.",
    )(function)


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--json` as `as_json`; errors are then printed as JSON too."""

    def callback(ctx: click.Context, _: click.Parameter, value: bool) -> bool:  # noqa: FBT001
        _here(ctx).as_json = value
        return value

    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        is_eager=True,
        callback=callback,
        help="Print one JSON object.",
    )(function)


def offline_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--offline`; `Here.access` then says so."""
    return click.option(
        "--offline",
        is_flag=True,
        expose_value=False,
        callback=_keep("offline_option"),
        help="Use caches only; fail on a miss.",
    )(function)


def locked_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--locked` and `--frozen`; `Here.locked` and `Here.frozen` then say so."""
    for name, text in (
        ("frozen", "Take the lock as it is, without asking whether it answers the recipe."),
        ("locked", "Fail if the lock does not answer the recipe."),
    ):
        function = click.option(
            f"--{name}",
            is_flag=True,
            expose_value=False,
            callback=_keep(f"{name}_option"),
            help=text,
        )(function)
    return function


def dry_run_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--dry-run`, which always exits with 0 where the work could be done."""
    return click.option(
        "-n", "--dry-run", is_flag=True, help="Show what would be done; change nothing."
    )(function)


def yes_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--yes`."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask.")(function)


def python_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--python PATH` as `python`."""
    return click.option(
        "--python",
        metavar="PATH",
        type=click.Path(dir_okay=False),
        help="The interpreter that a recipe on the host's Python uses.",
    )(function)


def platform_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-p/--platform`, several times, as `platforms`."""
    from envbuild.target import PLATFORMS

    return click.option(
        "-p",
        "--platform",
        "platforms",
        multiple=True,
        type=click.Choice(PLATFORMS),
        help="Only this platform; may be repeated.",
    )(function)
