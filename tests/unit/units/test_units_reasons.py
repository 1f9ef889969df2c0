"""Why a unit does not run, from properties as systemd 252 prints them."""

import pytest

from envbuild.units import reasons

_CONDITION = (
    "{ path=/bin/sh ; argv[]=/bin/sh /x ; ignore_errors=no ; start_time=[n/a] ;"
    " stop_time=[n/a] ; pid=7 ; code=exited ; status=106 }"
)


@pytest.mark.parametrize(
    ("properties", "own", "why"),
    [
        ({"ActiveState": "active", "Result": "success"}, (), ""),
        ({"LoadState": "not-found"}, (), "systemd does not know it"),
        (
            {"Result": "exit-code", "ExecMainCode": "1", "ExecMainStatus": "203"},
            (),
            "exit code 203: its program cannot be started",
        ),
        (
            {"Result": "exit-code", "ExecMainCode": "1", "ExecMainStatus": "3"},
            ("envbuild-x.a.service: Start request repeated too quickly.",),
            "exit code 3; started too often, now left alone: systemctl reset-failed",
        ),
        (
            {"Result": "signal", "ExecMainCode": "2", "ExecMainStatus": "9"},
            (),
            "ended by SIGKILL",
        ),
        (
            {"Result": "oom-kill", "SubState": "auto-restart"},
            (),
            "the kernel killed a process of it: its memory was used up; it is started again",
        ),
        (
            {"Result": "exec-condition", "ExecCondition": _CONDITION},
            (),
            "refused: driver-too-old (exit code 106)",
        ),
        (
            {"Result": "exec-condition", "ExecCondition": _CONDITION.replace("106", "203")},
            (),
            "the check before its start could not run: its program cannot be started",
        ),
    ],
)
def test_why(properties: dict[str, str], own: tuple[str, ...], why: str) -> None:
    assert reasons.why(properties, own) == why
