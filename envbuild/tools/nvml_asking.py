"""Calls into NVML, each announced before it is made, and what they said, as lines of JSON.

`["ask", card, path, function]` is written before a call, `["said", card, path, cell]` after an
answer, `["end"]` when all is asked. The card is None for the driver as a whole; the path is that of
a field of `host.model`, empty for a whole card. A cell is `{"value": …}` or `{"error": code,
"text": …, "call": function}`; values may hold cells. Loaded in the worker alone.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pynvml

Cell = dict[str, Any]
Call = tuple[Any, ...]

# What a driver says to a call, or to a form of it, that came after it.
LATER = frozenset(
    {pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH}
)


class Asking:
    """Makes calls and writes what they said.

    Attributes:
        card: Which card is asked, or None.
        path: For which field.
    """

    def __init__(self, descriptor: int) -> None:
        """Nothing is asked yet; lines are written to the descriptor."""
        self.card: int | None = None
        self.path = ""
        self._descriptor = descriptor
        self._unsent: list[str] = []

    def __call__(self, name: str, *arguments: Any) -> Any:  # noqa: ANN401
        """Announce and make a call.

        Raises:
            NVMLError: Its error, with the function's name as `function`.
        """
        self.announce(name)
        try:
            return getattr(pynvml, name)(*arguments)
        except pynvml.NVMLError as error:
            error.function = name
            raise

    def announce(self, name: str) -> None:
        """Say what is called next, for the field that is asked for."""
        self._write("ask", self.card, self.path, name)
        self.send()

    def first(self, *calls: Call) -> Any:  # noqa: ANN401
        """Return the answer of the first call that this driver knows; errors as of a call."""
        for name, *arguments in calls[:-1]:
            try:
                return self(name, *arguments)
            except pynvml.NVMLError as error:
                if error.value not in LATER:
                    raise
        name, *arguments = calls[-1]
        return self(name, *arguments)

    def cell(self, name: str, *arguments: Any) -> Cell:  # noqa: ANN401
        """Return what a call says, or its error."""
        try:
            return {"value": self(name, *arguments)}
        except Exception as error:  # noqa: BLE001 - a name that is no UTF-8, for one
            return failure(error)

    def say(self, path: str, cell: Cell) -> None:
        """Write what a field is; it is sent with the next call."""
        self._write("said", self.card, path, cell)

    def end(self) -> None:
        """Say that all was asked."""
        self._write("end")
        self.send()

    def send(self) -> None:
        """Send what was written."""
        data = "".join(self._unsent).encode()
        self._unsent.clear()
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _write(self, *line: Any) -> None:  # noqa: ANN401
        self._unsent.append(json.dumps(line) + "\n")


def mig_devices(ask: Asking, gpu: Any, count: int) -> Iterator[tuple[int, Any]]:  # noqa: ANN401
    """Yield number and handle of each MIG device that a card has, of `count` that it may have."""
    for index in range(count):
        try:
            yield index, ask("nvmlDeviceGetMigDeviceHandleByIndex", gpu, index)
        except pynvml.NVMLError as error:
            if error.value != pynvml.NVML_ERROR_NOT_FOUND:
                raise


def serve(answer: Callable[[dict[str, Any]], None]) -> None:
    """Read the request, answer, leave at once: what ends late in the driver is not waited for."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own waits until the call returns
    answer(json.load(sys.stdin))
    os._exit(0)


def failure(error: Exception) -> Cell:
    """Return the cell of an error; what is not NVML's own has no code."""
    if isinstance(error, pynvml.NVMLError):
        return refused(error.value, getattr(error, "function", ""))
    return {"error": None, "text": f"{type(error).__name__}: {error}", "call": ""}


def refused(code: int, call: str) -> Cell:
    """Return the cell of one of NVML's errors."""
    return {"error": code, "text": str(pynvml.NVMLError(code)), "call": call}
