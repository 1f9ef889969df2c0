"""Asking before something is removed."""

import sys

import click

from envbuild.errors import UsageProblem


def ask(*, yes: bool, what: str) -> None:
    """Return if the user agrees.

    Args:
        yes: Whether `--yes` was given.
        what: What is about to be done (`remove 2 generations`).

    Raises:
        UsageProblem: There is no terminal to ask on.
        click.Abort: The answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        message = f"not asked on a terminal whether to {what}"
        raise UsageProblem(message, hint="say --yes")
    click.confirm(f"{what}?", abort=True, err=True)
