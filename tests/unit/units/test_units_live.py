"""Which changes of a unit need a restart."""

import pytest
from unit.units.rendering import rendered

from envbuild.units import live

_SERVICE = "services:\n  a: {{exec: [x], {more}}}\n"
_UNIT = "envbuild-x.a.service"


@pytest.mark.parametrize(
    "more",
    [
        "limits: {memory_max: 2G, cpu_quota: 50%, cpus: 0-1, io_weight: 5, tasks_max: 9}",
        "restart: {policy: always, delay: 7s, limit: 3, not_on: [4]}",
        "stop: {checkpoint_time: 5min}",
        "description: another",
        "after: [network-online.target]",
    ],
)
def test_live(more: str) -> None:
    before, after = _texts(more)
    assert before != after
    assert not live.must_restart(before, after)


@pytest.mark.parametrize(
    "more",
    [
        "environment: {A: b}",
        "limits: {locked_memory: 1G}",
        "user: trainer",
        "write: [/srv/x]",
        "network: none",
        "watchdog: 30s",
        "working_directory: /srv",
    ],
)
def test_not_live(more: str) -> None:
    assert live.must_restart(*_texts(more))


def test_another_generation_is_not_live() -> None:
    before = rendered(_SERVICE.format(more="kind: service"))[_UNIT]
    assert live.must_restart(before, before.replace("0123456789abcdef", "1" * 16))


def test_a_slice_is_live_and_a_socket_is_not() -> None:
    first = rendered("slice: {memory_max: 2G}")["envbuild-x.slice"]
    second = rendered("slice: {memory_max: 3G, cpu_weight: 5}")["envbuild-x.slice"]
    assert not live.must_restart(first, second)
    listening = "services: {{a: {{exec: x, kind: socket, listen: [{port}]}}}}"
    ports = [rendered(listening.format(port=port))["envbuild-x.a.socket"] for port in (80, 81)]
    assert live.must_restart(*ports)


def _texts(more: str) -> tuple[str, str]:
    units = [rendered(_SERVICE.format(more=each))[_UNIT] for each in ("kind: service", more)]
    return units[0], units[1]
