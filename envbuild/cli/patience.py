"""`--lock-timeout`, the option of every command that changes the store."""

from collections.abc import Callable
from typing import Any

import click

from envbuild.cli.context import MOST_SECONDS, Here


def lock_timeout_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--lock-timeout`; `Here.lock_timeout_s` then says so."""

    def callback(ctx: click.Context, _: click.Parameter, value: float | None) -> None:
        if value is not None:
            ctx.ensure_object(Here).lock_timeout_option = value

    return click.option(
        "--lock-timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0, max=MOST_SECONDS),
        expose_value=False,
        callback=callback,
        help="How long to wait for another process (default: 60; create: 3600)."
        "  [env: ENVBUILD_LOCK_TIMEOUT]",
    )(function)
