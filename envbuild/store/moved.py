"""A generation that lies elsewhere than it was made: how to tell, and what to say."""

import os

from envbuild.errors import StoreError
from envbuild.findings import Finding, Severity
from envbuild.store.layout import Generation


def text(generation: Generation, made_for: str) -> str | None:
    """Return what to say of a generation that was made for another path, None where it was not.

    Args:
        generation: Where it lies.
        made_for: The prefix that stands in its files.
    """
    here = os.path.realpath(generation.prefix)
    if os.path.realpath(made_for) == here:
        return None
    return f"was made for {made_for}, lies in {here}"


def remedy(generation: Generation) -> str:
    """Return the command that makes it work where it lies."""
    return f"envbuild store relink {generation.place.name}"


def finding(generation: Generation, made_for: str) -> Finding | None:
    """Return the finding `generation-moved` (error), None where it lies where it was made."""
    said = text(generation, made_for)
    if said is None:
        return None
    return Finding(
        code="generation-moved",
        severity=Severity.ERROR,
        where=generation.identifier,
        what=said,
        why="scripts and libraries hold the old path",
        hint=remedy(generation),
    )


def refuse(generation: Generation, made_for: str) -> None:
    """Refuse to use a generation that was moved.

    Raises:
        StoreError: It was.
    """
    said = text(generation, made_for)
    if said is not None:
        message = f"generation {generation.identifier} of {generation.place.name} {said}"
        raise StoreError(message, hint=remedy(generation))
