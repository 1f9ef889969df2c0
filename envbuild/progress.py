"""What long work tells the person who waits for it."""

from typing import Protocol


class Progress(Protocol):
    """Receives progress; the command line shows it, tests ignore it.

    Methods may be called from several threads.
    """

    def step(self, text: str) -> None:
        """Say in one line what begins now (`solving conda for linux-64`)."""

    def amount(self, what: str, done: int, total: int | None) -> None:
        """Say how many bytes of `what` are done; `total` is None where it is unknown."""


class Quiet:
    """A `Progress` that says nothing."""

    def step(self, text: str) -> None:
        """Say nothing."""

    def amount(self, what: str, done: int, total: int | None) -> None:
        """Say nothing."""
