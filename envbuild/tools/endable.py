"""Programs that one thread waits for and another one can end."""

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from envbuild.errors import ToolFailed
from envbuild.tools.run import Completed, Started, Watch


class Endable:
    """A `Runner` whose programs another thread can end; from then on it starts no other."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._guard = threading.Lock()
        self._running: set[Started] = set()
        self._ended = False

    def __call__(  # noqa: PLR0913 - what a start depends on
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str],
        stdin: str | None = None,
        cwd: Path | None = None,
        timeout_s: float | None = None,
        log: Path | None = None,
        check: bool = True,
        keep: Sequence[int] = (),
        watch: Watch | None = None,
    ) -> Completed:
        """Run a program as `run` does.

        Raises:
            ToolFailed: It failed, or was ended.
        """
        with self._guard:
            if self._ended:
                message = f"{Path(argv[0]).name} is no longer needed"
                raise ToolFailed(message, argv=[os.fspath(word) for word in argv])
            started = Started(argv, env=env, cwd=cwd, keep=keep)
            self._running.add(started)
        try:
            return started.finish(
                stdin or "", timeout_s=timeout_s, log=log, check=check, watch=watch
            )
        finally:
            self._running.discard(started)

    def end(self) -> None:
        """Kill what runs."""
        with self._guard:
            self._ended = True
            for started in tuple(self._running):
                started.end()
