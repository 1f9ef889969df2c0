"""Why a unit does not run, in words, from what systemd says of it."""

import re
import signal
from collections.abc import Sequence
from typing import Final

from envbuild.tools.systemd import Properties, number

PROPERTIES: Final = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "ExecMainCode",
    "ExecMainStatus",
    "ExecCondition",
    "InvocationID",
    "NRestarts",
    "MainPID",
)
REFUSALS: Final = {
    101: "platform-differs",
    102: "cpu-too-old",
    103: "glibc-too-old",
    104: "card-needed",
    105: "driver-out-of-range",
    106: "driver-too-old",
    107: "no-gpu-code",
}
"""Exit codes of the check before each start, and the findings that they stand for."""
TOO_OFTEN: Final = "Start request repeated too quickly."
_STATUS: Final = {  # systemd.exec(5), "Process Exit Codes"
    200: "its working directory cannot be entered",
    203: "its program cannot be started",
    209: "its output cannot be opened",
    214: "its scheduling cannot be set",
    216: "its group does not exist",
    217: "its user does not exist",
    218: "its capabilities cannot be set",
    219: "its cgroup cannot be set up",
    226: "its view of the files cannot be set up: is every path that it reads or writes there?",
    228: "its system calls cannot be filtered",
    238: "its state directory cannot be made",
    239: "its cache directory cannot be made",
    243: "its credentials cannot be read",
}
_RESULTS: Final = {
    "timeout": "it did not get ready, or did not end, in its time",
    "watchdog": "it was silent for longer than its watchdog allows",
    "oom-kill": "the kernel killed a process of it: its memory was used up",
    "resources": "systemd could not set it up (memory, descriptors, a file it names)",
    "protocol": "it ended without saying that it was ready",
    "start-limit-hit": "it was started too often within the interval",
}
_EXITED: Final = "1"  # CLD_EXITED of waitid(2)
_OF_CONDITION: Final = re.compile(r"code=exited ; status=(\d+)")


def condition_status(properties: Properties) -> int | None:
    """Return how the check before the start ended where it refused, else None."""
    if properties.get("Result") != "exec-condition":
        return None
    found = [int(text) for text in _OF_CONDITION.findall(properties.get("ExecCondition", ""))]
    return next((status for status in found if status), None)


def why(properties: Properties, own_words: Sequence[str] = ()) -> str:
    """Return why a unit does not run, empty where it does or is not to.

    Args:
        properties: `PROPERTIES` of it.
        own_words: What systemd said of it last.
    """
    if properties.get("LoadState") == "not-found":
        return "systemd does not know it"
    result = properties.get("Result", "success")
    if result == "exec-condition":
        return _refused(condition_status(properties))
    if result == "success":
        waits = properties.get("SubState") == "auto-restart"
        return "ended, and is started again" if waits else ""
    text = _RESULTS.get(result) or _ended(properties) or result
    if properties.get("SubState") == "auto-restart":
        return f"{text}; it is started again"
    if result != "start-limit-hit" and any(TOO_OFTEN in word for word in own_words):
        text = f"{text}; started too often, now left alone: systemctl reset-failed"
    return text


def _refused(status: int | None) -> str:
    if status is None:
        return "the check before its start refused it"
    if status in _STATUS:
        return f"the check before its start could not run: {_STATUS[status]}"
    meaning = REFUSALS.get(status, "the check before its start refused it")
    return f"refused: {meaning} (exit code {status})"


def _ended(properties: Properties) -> str:
    status = number(properties, "ExecMainStatus")
    if status is None or properties.get("ExecMainCode") == "0":
        return "a command before it failed" if status is not None else ""
    if properties.get("ExecMainCode") == _EXITED:
        meaning = _STATUS.get(status)
        return f"exit code {status}: {meaning}" if meaning else f"exit code {status}"
    try:
        return f"ended by {signal.Signals(status).name}"
    except ValueError:
        return f"ended by signal {status}"
