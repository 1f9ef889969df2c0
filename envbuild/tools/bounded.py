"""Calls that may never return, because a file server does not answer."""

import threading
from collections.abc import Callable
from typing import Any


class NoAnswer(Exception):
    """A call did not return in time; the thread that made it is left to itself."""


def bounded(call: Callable[[], Any], limit_s: float) -> Any:  # noqa: ANN401
    """Return what a call returns, or raise what it raises.

    Raises:
        NoAnswer: It did not return within `limit_s`.
    """
    job = _Job(call)
    if not job.done.wait(limit_s):
        raise NoAnswer
    return job.result()


class _Job:
    """A call in a thread that nobody has to wait for."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.done = threading.Event()
        self._call = call
        self._result: Any = None
        self._error: BaseException | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def result(self) -> Any:  # noqa: ANN401
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:  # noqa: BLE001
            self._error = error
        finally:
            self.done.set()
