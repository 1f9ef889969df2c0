"""The controller of PCIe traffic, on jobs that copy as much as their CPU time allows."""

from collections.abc import Iterator
from random import Random

import pytest

from envbuild.shares.pcie import LEAST_PERCENT, Control

_GIB = 1 << 30


def _run(
    control: Control, demand: list[float], *, cpu: float, noise: float = 0.0
) -> Iterator[tuple[float, Control]]:
    """Give traffic and control after each sample of a job that would take so many percent."""
    random = Random(1)  # noqa: S311 - the same noise each time
    for wanted in demand:
        used = min(cpu, control.quota_percent or control.most_percent)
        traffic = wanted * used / cpu * (1 + random.uniform(-noise, noise))
        control = control.after(traffic, used)
        yield traffic, control


def _control(limit_gib: float = 3) -> Control:
    return Control(limit_bytes=int(limit_gib * _GIB), most_percent=1600)


def test_below_the_limit_nothing_is_done() -> None:
    seen = list(_run(_control(), [2.9 * _GIB] * 50, cpu=400))
    assert {control.quota_percent for _, control in seen} == {None}


@pytest.mark.parametrize("demand", [3.2, 6, 12, 60])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_traffic_comes_below_the_limit_and_stays(demand: float, noise: float) -> None:
    seen = list(_run(_control(), [demand * _GIB] * 200, cpu=400, noise=noise))
    assert all(traffic <= 3 * _GIB for traffic, _ in seen[30:][:5]) or noise
    late = seen[100:]
    over = [traffic for traffic, _ in late if traffic > 3 * _GIB]
    assert len(over) <= len(late) // 6
    assert sum(traffic for traffic, _ in late) / len(late) > 0.6 * 3 * _GIB


def test_it_does_not_swing_between_its_two_limits() -> None:
    steady = Control(limit_bytes=3 * _GIB, most_percent=1600, quota_percent=100)
    seen = list(_run(steady, [2.6 * _GIB] * 100, cpu=100))
    assert {control.quota_percent for _, control in seen} == {100}


def test_a_short_pause_changes_nothing() -> None:
    control = Control(limit_bytes=3 * _GIB, most_percent=1600, quota_percent=100)
    for traffic in (0.0, 0.0, 2.9 * _GIB, 0.0, 0.0, 2.9 * _GIB):
        control = control.after(traffic, 100)
    assert control.quota_percent == 100


def test_when_the_traffic_ends_the_quota_goes() -> None:
    seen = list(_run(_control(), [12 * _GIB] * 30 + [0.0] * 200, cpu=400))
    assert seen[29][1].quota_percent is not None
    assert seen[-1][1].quota_percent is None


def test_the_quota_never_falls_below_what_is_needed_to_stop() -> None:
    seen = list(_run(_control(0.001), [60 * _GIB] * 100, cpu=400))
    assert min(control.quota_percent or 1600 for _, control in seen) == LEAST_PERCENT
