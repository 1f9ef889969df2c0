"""Saying so where what is shown is not in the user's own store."""

from envbuild.cli import output
from envbuild.cli.context import Here
from envbuild.store.layout import Place


def say(here: Here, place: Place) -> None:
    """Say in which store an environment was found, unless it is the user's own."""
    if place.store != here.store:
        output.say(here, f"{place.name} is in the system's store, {place.store.root}")
