"""`Reading`: what a sensor or a file said, or why it said nothing.

Nothing read is never a zero: who acts on a temperature has to act otherwise when there is none.
In JSON a reading is `{"reading": "value", "value": 41}` or `{"reading": "unsupported", "why": …}`.
"""

from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Value(Struct, Generic[T_co], frozen=True, tag_field="reading", tag="value"):
    """What was read."""

    value: T_co


class Unsupported(Struct, frozen=True, tag_field="reading", tag="unsupported"):
    """This card, driver or kernel does not have it.

    Attributes:
        why: What said so.
    """

    why: str = ""


class NoPermission(Struct, frozen=True, tag_field="reading", tag="no-permission"):
    """It is there, and this user may not read it.

    Attributes:
        why: Which file or call, and who may.
    """

    why: str = ""


class Lost(Struct, frozen=True, tag_field="reading", tag="lost"):
    """The card no longer answers on its bus.

    Attributes:
        why: What said so.
    """

    why: str = ""


class NoAnswer(Struct, frozen=True, tag_field="reading", tag="no-answer"):
    """It did not answer in time, or what it answered cannot be true.

    Attributes:
        why: How long it was waited for, the error's text, or the value that cannot be.
    """

    why: str = ""


Silence: TypeAlias = Unsupported | NoPermission | Lost | NoAnswer
Reading: TypeAlias = Value[T] | Silence


def known(reading: Reading[T]) -> T | None:
    """Return what was read, or None."""
    return reading.value if isinstance(reading, Value) else None


NOT_ASKED: Final = NoAnswer("not asked")
