"""What surrounds the conda engine: virtual packages, instants, dependencies."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.target import Target
from envbuild.tools.conda_specs import merge_depends
from envbuild.tools.rattler import last_millisecond, virtual_packages

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_virtual_packages_come_from_the_target() -> None:
    target = Target(platform="linux-aarch64", glibc="2.31", cuda="12.4")
    assert virtual_packages(target) == (
        ("__unix", "0", "0"),
        ("__linux", "4.18", "0"),
        ("__glibc", "2.31", "0"),
        ("__archspec", "1", "aarch64"),
        ("__cuda", "12.4", "0"),
    )


def test_without_a_gpu_there_is_no_cuda() -> None:
    names = {name for name, _, _ in virtual_packages(Target(platform="linux-64"))}
    assert "__cuda" not in names


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1)))  # noqa: DTZ001
def test_the_last_millisecond_is_strictly_before_the_cutoff(naive: datetime) -> None:
    cutoff = naive.replace(tzinfo=UTC)
    last = EPOCH + timedelta(milliseconds=last_millisecond(cutoff))
    assert last < cutoff <= last + timedelta(milliseconds=1)
    east = timezone(timedelta(hours=9))
    assert last_millisecond(cutoff.astimezone(east)) == last_millisecond(cutoff)


@pytest.mark.parametrize(
    ("specs", "merged"),
    [
        ((), ()),
        (("b", "a >=1"), ("a >=1", "b")),
        (("a >=1", "a <2"), ("a <2,>=1",)),
        (("a >=1", "a >=1"), ("a >=1",)),
        (("a", "a >=1"), ("a >=1",)),
        (("a *", "a"), ("a",)),
        (("a 1.* *_x", "a >=1"), ("a 1.*,>=1 *_x",)),
        (("a * *_x", "a"), ("a * *_x",)),
        (("a>=1, <2",), ("a >=1,<2",)),
        (("a  >=1   x",), ("a >=1 x",)),
    ],
)
def test_depends_are_sorted_and_one_per_name(
    specs: tuple[str, ...], merged: tuple[str, ...]
) -> None:
    assert merge_depends(specs) == merged
