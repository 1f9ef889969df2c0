"""Interrupts that come between pieces of work, and cut none of them.

A handler of signals that raises leaves a rename done and unknown to who asked for it, or a folder
made and in nobody's hands. So handlers call `interrupt`, and what has to be whole is done within
a `Piece`. Signals are handled in the main thread alone (signal(3), and Python's module): elsewhere
these functions do nothing.
"""

import contextlib
import threading
from collections.abc import Iterator
from types import TracebackType


class _State:
    depth = 0
    waiting = False


def interrupt() -> None:
    """Interrupt the main thread, which calls this: now, or at the end of its piece of work.

    Raises:
        KeyboardInterrupt: Now.
    """
    if not _State.depth:
        raise KeyboardInterrupt
    _State.waiting = True


class Piece:
    """A piece of work that is not cut: an interrupt that comes meanwhile is raised at its end."""

    def __init__(self) -> None:
        """Nothing is held back yet."""
        self._counts = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        """Hold interrupts back."""
        _State.depth += self._counts

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let them through.

        Raises:
            KeyboardInterrupt: One had come, and this was the outermost piece.
        """
        _State.depth -= self._counts
        if self._counts and not _State.depth:
            _raise_waiting()


@contextlib.contextmanager
def gap() -> Iterator[None]:
    """Let interrupts through also within a piece: it waits, and nothing of it is done yet.

    Raises:
        KeyboardInterrupt: One had come, or comes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    depth, _State.depth = _State.depth, 0
    try:
        _raise_waiting()
        yield
    finally:
        _State.depth = depth


def _raise_waiting() -> None:
    if _State.waiting:
        _State.waiting = False
        raise KeyboardInterrupt
