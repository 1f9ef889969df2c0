"""Progress on stderr: moving bars on a terminal, plain lines elsewhere, nothing with `-q`."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

import click

from envbuild.cli.context import Here
from envbuild.cli.output import bytes_text, duration_text, mask
from envbuild.progress import Progress, Quiet

if TYPE_CHECKING:
    from rich.progress import TaskID

_BETWEEN_LINES_S = 10.0


@contextlib.contextmanager
def shown(here: Here) -> Iterator[Progress]:
    """Yield what shows progress, as the user and the terminal want it; print results after it."""
    if here.quiet:
        yield Quiet()
        return
    plain = here.no_progress_option or here.flag("NO_PROGRESS") or here.verbosity > 0
    if plain or here.as_json or not sys.stderr.isatty():
        lines = Lines(timed=here.verbosity > 0)
        yield lines
        lines.end()
        return
    with Bars(color=here.forced_color()) as bars:
        yield bars


class Lines:
    """A line per step, and one at most every ten seconds for a long download."""

    def __init__(self, *, timed: bool = False) -> None:
        """Say nothing yet.

        Args:
            timed: Say after each step how long it took.
        """
        self._timed = timed
        self._guard = threading.Lock()
        self._last = time.monotonic()
        self._begun: float | None = None

    def step(self, text: str) -> None:
        """Print what begins."""
        with self._guard:
            self._close()
            self._last = self._begun = time.monotonic()
            click.echo(mask(text), err=True)

    def amount(self, what: str, done: int, total: int | None) -> None:
        """Print how far it is if nothing was printed for long."""
        with self._guard:
            now = time.monotonic()
            if now - self._last < _BETWEEN_LINES_S:
                return
            self._last = now
            of = "" if total is None else f" of {bytes_text(total)}"
            click.echo(f"  {mask(what)}: {bytes_text(done)}{of}", err=True)

    def end(self) -> None:
        """Close the last step."""
        with self._guard:
            self._close()

    def _close(self) -> None:
        if self._timed and self._begun is not None:
            click.echo(f"  took {duration_text(time.monotonic() - self._begun)}", err=True)
        self._begun = None


class Bars:
    """A line per step, and below it a bar for each thing that is under way."""

    def __init__(self, *, color: bool | None) -> None:
        """Draw nothing yet.

        Args:
            color: Whether to use colour; None: as the terminal can.
        """
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
        from rich.progress import Progress as RichProgress

        console = Console(stderr=True, no_color=color is False, highlight=False)
        self._bars = RichProgress(
            TextColumn("  {task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._tasks: dict[str, TaskID] = {}
        self._guard = threading.Lock()

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bars away; the lines stay."""
        self._bars.stop()

    def step(self, text: str) -> None:
        """Print what begins; the bars of the step before go."""
        with self._guard:
            for task in self._tasks.values():
                self._bars.remove_task(task)
            self._tasks.clear()
        self._bars.console.print(mask(text), markup=False)

    def amount(self, what: str, done: int, total: int | None) -> None:
        """Move a bar; it goes when all is done."""
        with self._guard:
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(mask(what), total=total)
            if total is not None and done >= total:
                self._bars.remove_task(self._tasks.pop(what))
            else:
                self._bars.update(self._tasks[what], completed=done, total=total)
