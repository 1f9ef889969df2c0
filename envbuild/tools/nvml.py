"""Asking NVML in a process of its own, which is ended where a call does not return.

What came before that is kept. This module knows nothing of what the answers mean.
"""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from envbuild.errors import ToolTimedOut
from envbuild.tools.run import Started, base_environment

LIBRARY = "libnvidia-ml.so.1"
Cell = Mapping[str, Any]

_LEAVE_AFTER_S = 0.5
_INTERVAL_S = 0.05
# Where the loader does not look: WSL 2 (NVIDIA, CUDA on WSL user guide), NixOS, and containers that
# find it by LD_LIBRARY_PATH (Google Kubernetes Engine, running GPUs: libraries in containers).
_ELSEWHERE = ("/usr/lib/wsl/lib", "/run/opengl-driver/lib", "/usr/local/nvidia/lib64")
# Where distributions and driver containers have it (nvidia-container-toolkit, lookup of libraries).
_FOLDERS = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/nvidia/current",
    "usr/lib/aarch64-linux-gnu/nvidia/current",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib",
    "usr/local/nvidia/lib64",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How long NVML is waited for, in seconds.

    A driver without persistence mode starts every card when it is first opened, which takes it
    seconds each; after that a call takes less than a millisecond.

    Attributes:
        silence_s: For one call.
        total_s: For all.
    """

    silence_s: float = 15
    total_s: float = 60


class Ending(Enum):
    """How the asking ended."""

    WHOLE = "whole"
    SILENT = "silent"
    DIED = "died"


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """What came before the end, and how it ended.

    Attributes:
        said: Cells by card (None: the driver) and path; see `nvml_asking`.
        ending: How the asking ended.
        unanswered: Card and path of what was asked last, where it did not end well.
        why: In words, where it did not end well.
    """

    said: Mapping[tuple[int | None, str], Cell] = field(default_factory=dict)
    ending: Ending = Ending.WHOLE
    unanswered: tuple[int | None, str] | None = None
    why: str = ""


def libraries(driver_root: Path | None) -> tuple[str, ...]:
    """Return what is to be tried as NVML's library, first first.

    Args:
        driver_root: The file tree of a driver that is not this host's own (a driver container's),
            or None for the loader's search.
    """
    if driver_root is None:
        return (LIBRARY, *(f"{folder}/{LIBRARY}" for folder in _ELSEWHERE))
    found = [driver_root / folder / LIBRARY for folder in _FOLDERS]
    return tuple(str(path) for path in found if path.exists()) or (str(found[0]),)


def hear(driver_root: Path | None = None, *, limits: Limits | None = None) -> Heard:
    """Ask NVML for everything; a call that hangs, and a crash, are part of the answer.

    Args:
        driver_root: As for `libraries`.
        limits: How long it is waited for.
    """
    return converse("nvml_worker", {}, driver_root, limits=limits)


def converse(
    module: str,
    request: Mapping[str, Any],
    driver_root: Path | None = None,
    *,
    limits: Limits | None = None,
) -> Heard:
    """Let a module of `tools` talk to NVML, and return what it heard.

    Args:
        module: Its name.
        request: What it is asked, besides where it finds the library and answers to.
        driver_root: As for `libraries`.
        limits: How long it is waited for.
    """
    limits = limits or Limits()
    answers = os.memfd_create("nvml")
    try:
        argv = (sys.executable, "-I", "-m", f"envbuild.tools.{module}")
        worker = Started(argv, env=base_environment(), keep=(answers,))
        request = {**request, "descriptor": answers, "libraries": libraries(driver_root)}
        listening = _Listening(answers, limits.silence_s)
        late = ""
        status = 0
        try:
            status = worker.finish(
                json.dumps(request),
                timeout_s=limits.total_s,
                check=False,
                watch=listening,
                leave_after_s=_LEAVE_AFTER_S,
            ).status
        except ToolTimedOut:
            waited = limits.silence_s if listening.silent else limits.total_s
            late = f"did not answer within {waited:g} s"
        return _heard(_read(answers), late, status)
    finally:
        os.close(answers)


class _Listening:
    """Looks whether lines still come."""

    interval_s = _INTERVAL_S

    def __init__(self, descriptor: int, limit_s: float) -> None:
        self.silent = False
        self._descriptor = descriptor
        self._limit_s = limit_s
        self._size = 0
        self._since = time.monotonic()

    def look(self, _pid: int) -> str | None:
        size = os.fstat(self._descriptor).st_size
        if size != self._size:
            self._size, self._since = size, time.monotonic()
        # Before the first line Python starts, which is no call, and slow on a busy host.
        self.silent = size > 0 and time.monotonic() - self._since > self._limit_s
        return "NVML does not answer" if self.silent else None


def _read(descriptor: int) -> list[list[Any]]:
    """Return the lines; a last one that was cut off is left out."""
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    lines = data.split(b"\n")[:-1]
    return [json.loads(line) for line in lines]


def _heard(lines: list[list[Any]], late: str, status: int) -> Heard:
    said = {(line[1], line[2]): line[3] for line in lines if line[0] == "said"}
    if lines and lines[-1] == ["end"]:
        return Heard(said=said)
    unanswered = None
    call = "the process that asks NVML"
    for what, *rest in reversed(lines):
        if what == "ask":
            card, path, function = rest
            unanswered = (card, path)
            call = function if card is None else f"{function} on GPU {card}"
            break
    if late:
        why = f"{call} {late}"
        return Heard(said=said, ending=Ending.SILENT, unanswered=unanswered, why=why)
    how = f"status {status}"
    with contextlib.suppress(ValueError):
        how = signal.Signals(-status).name
    why = f"the process that asks NVML ended with {how}" + (f" in {call}" if unanswered else "")
    return Heard(said=said, ending=Ending.DIED, unanswered=unanswered, why=why)
