"""Ending in order when a signal asks for it: what is half done is removed, once."""

import signal
from types import FrameType

from envbuild.tools import interrupts

_WORDS = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "ended by SIGTERM",
    signal.SIGHUP: "ended by SIGHUP",
}


class Ending:
    """Turns the first signal that ends a program into an interrupt; others change nothing.

    What the program was started to ignore (nohup) stays ignored.
    """

    def __init__(self) -> None:
        """No signal came yet."""
        self._number = signal.SIGINT
        self._came = False

    def watch(self) -> None:
        """Begin; from the main thread."""
        for number in _WORDS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note)

    @property
    def text(self) -> str:
        """What happened, in words."""
        return _WORDS[self._number]

    @property
    def code(self) -> int:
        """The exit code that shells give to such an end."""
        return 128 + self._number

    def _note(self, number: int, _: FrameType | None) -> None:
        if not self._came:
            self._came = True
            self._number = signal.Signals(number)
            interrupts.interrupt()
