"""`--allow CODE`: findings that are let through by one run, besides what its recipe allows."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from envbuild.cli.context import Here

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def allow_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--allow CODE`, several times; `Here.allow_option` then has the codes."""
    return click.option(
        "--allow",
        metavar="CODE",
        multiple=True,
        expose_value=False,
        callback=_keep,
        shell_complete=_offered,
        help="Let findings of this code through this once; may be repeated.",
    )(function)


def _keep(ctx: click.Context, _: click.Parameter, values: tuple[str, ...]) -> None:
    """Keep codes; an unknown one is answered with the nearest."""
    if not values:
        return
    import difflib

    from envbuild.pipeline import pages

    known = pages.codes(pages.FINDINGS)
    for value in values:
        if value not in known:
            near = difflib.get_close_matches(value, known, n=1)
            ending = f"; did you mean {near[0]!r}?" if near else ""
            message = f"there is no finding {value!r}{ending}"
            raise click.BadParameter(message)
    ctx.ensure_object(Here).allow_option = values


def _offered(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    from envbuild.pipeline import pages

    codes = pages.codes(pages.FINDINGS)
    return [CompletionItem(code) for code in codes if code.startswith(incomplete)]
