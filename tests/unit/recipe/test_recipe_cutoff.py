"""The cutoff is one UTC instant, however it is written."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.recipe.cutoff import check, check_of_index, resolve

NOW = datetime(2026, 12, 1, 12, 30, tzinfo=timezone(timedelta(hours=9)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T12:00:00Z", "2026-11-30T12:00:00+00:00"),
        ("2026-11-30t12:00:00z", "2026-11-30T12:00:00+00:00"),
        ("2026-11-30 12:00:00+09:00", "2026-11-30T03:00:00+00:00"),
        ("2026-11-30T12:00:00.250-01:00", "2026-11-30T13:00:00.250000+00:00"),
        ("2026-11-30T12:00Z", "2026-11-30T12:00:00+00:00"),
        ("2026-11-30", "2026-12-01T00:00:00+00:00"),
        ("2024-02-29", "2024-03-01T00:00:00+00:00"),
        ("2026-12-31", "2027-01-01T00:00:00+00:00"),
        ("14d", "2026-11-17T03:30:00+00:00"),
        ("36h", "2026-11-29T15:30:00+00:00"),
        ("2w", "2026-11-17T03:30:00+00:00"),
        ("0d", "2026-12-01T03:30:00+00:00"),
        ("3026-01-01", "3026-01-02T00:00:00+00:00"),
    ],
)
def test_resolve(text: str, expected: str) -> None:
    instant = resolve(text, now=NOW)
    assert instant.isoformat() == expected
    assert instant.tzinfo is UTC
    check(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2026-11-30T12:00:00", "has no zone"),
        ("2026-11-30T12:00", "has no zone"),
        ("2026-13-01", "expected an instant"),
        ("2026-02-30", "expected an instant"),
        ("20261130", "expected an instant"),
        ("20261130T120000Z", "expected an instant"),
        ("2026-W01-1", "expected an instant"),
        ("14", "expected an instant"),
        ("14 days", "expected an instant"),
        ("-14d", "expected an instant"),
        ("99999w", "expected an instant"),
        ("9999-12-31", "expected an instant"),
        ("0001-01-01T00:00:00+01:00", "expected an instant"),
        ("yesterday", "expected an instant"),
        ("", "expected an instant"),
        ("none", "only for an index"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check(text)


def test_none_is_for_an_index() -> None:
    assert check_of_index("none") == "none"
    with pytest.raises(ValueError, match="expected an instant"):
        resolve("none", now=NOW)


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2900, 1, 1)),  # noqa: DTZ001
       st.integers(-14 * 60, 14 * 60))  # fmt: skip
def test_an_instant_is_itself(naive: datetime, minutes: int) -> None:
    instant = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert resolve(instant.isoformat(), now=NOW) == instant


@given(st.integers(0, 5000), st.sampled_from([("h", 1), ("d", 24), ("w", 168)]))
def test_an_age_counts_back(number: int, unit: tuple[str, int]) -> None:
    assert NOW - resolve(f"{number}{unit[0]}", now=NOW) == timedelta(hours=number * unit[1])


@given(st.text(max_size=30))
def test_anything_else_is_refused_in_words(text: str) -> None:
    reason = ""
    try:
        resolve(text, now=NOW)
    except ValueError as error:
        reason = str(error)
    assert not reason or "expected" in reason or "has no zone" in reason
