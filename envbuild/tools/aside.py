"""Work in another thread, whose end is sure where the one that waits is interrupted."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait


class Aside:
    """Work in another thread that can be waited for after an interrupt, too.

    `Thread.join` cannot: interrupted by a signal, it takes the thread for ended from then on
    (CPython up to 3.12, issue 90882).
    """

    def __init__(self, work: Callable[[], None]) -> None:
        """Take note of the work."""
        self._work = work
        self._done: Future[None] = Future()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, daemon=True).start()

    def end(self) -> None:
        """Wait for the end where it has begun; else it never begins."""
        if not self._done.cancel():
            wait([self._done])

    def result(self) -> None:
        """Wait for the end and raise what was raised there."""
        self._done.result()

    def _run(self) -> None:
        if self._done.set_running_or_notify_cancel():
            try:
                self._done.set_result(self._work())
            except BaseException as error:  # noqa: BLE001
                self._done.set_exception(error)
