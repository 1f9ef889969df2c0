"""The cutoff: one UTC instant; a record counts if its upload time is strictly before it."""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

NONE: Final = "none"

_AGE: Final = re.compile(r"(\d{1,4})([hdw])", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_INSTANT: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?", re.ASCII
)
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}
_WHAT: Final = (
    'an instant with its zone such as "2026-11-30T12:00:00Z", a date such as "2026-11-30", '
    'or an age such as "14d", "36h" or "2w"'
)


def resolve(text: str, *, now: datetime) -> datetime:
    """Return the instant (UTC) that a cutoff means.

    An instant is itself; a bare date is 00:00 UTC of the next day, so that the whole day counts;
    an age counts back from now.

    Args:
        text: The cutoff as written.
        now: The clock, with its zone.

    Raises:
        ValueError: It is none of these, or has no zone, or lies outside the calendar; says what
            was expected.
    """
    text = text.strip()
    instant = None
    with suppress(ValueError, OverflowError):
        if age := _AGE.fullmatch(text):
            return now.astimezone(UTC) - timedelta(**{_UNITS[age[2]]: int(age[1])})
        if _DATE.fullmatch(text):
            day = date.fromisoformat(text) + timedelta(days=1)
            return datetime.combine(day, time.min, tzinfo=UTC)
        if _INSTANT.fullmatch(text.upper()):
            instant = datetime.fromisoformat(text.upper())
            if instant.tzinfo is not None:
                return instant.astimezone(UTC)
    if instant is not None and instant.tzinfo is None:
        message = f"the instant {text!r} has no zone; write a Z at its end for UTC"
        raise ValueError(message)
    message = f"expected {_WHAT}, found {text!r}"
    raise ValueError(message)


def check(text: str) -> str:
    """Check how a recipe's cutoff is written, without a clock, and return it.

    Raises:
        ValueError: It cannot be one.
    """
    if text == NONE:
        message = "'none' is only for an index; leave the key out to lock at the present state"
        raise ValueError(message)
    resolve(text, now=datetime(2026, 1, 1, tzinfo=UTC))
    return text


def check_of_index(text: str) -> str:
    """Check an index's cutoff likewise: `none` is one too (for an index without upload dates)."""
    return text if text == NONE else check(text)
