"""`Reading`: what a sensor or a file said, or why it said nothing.

Nothing read is never a zero: who acts on a temperature has to act otherwise when there is none.
"""

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Value(Generic[T]):
    """What was read."""

    value: T


@dataclass(frozen=True, slots=True)
class Unsupported:
    """This card, driver or kernel does not have it.

    Attributes:
        why: What said so.
    """

    why: str = ""


@dataclass(frozen=True, slots=True)
class NoPermission:
    """It is there, and this user may not read it.

    Attributes:
        why: Which file or call, and who may.
    """

    why: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """The card no longer answers on its bus.

    Attributes:
        why: What said so.
    """

    why: str = ""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """It did not answer in time, or what it answered cannot be true.

    Attributes:
        why: How long it was waited for, the error's text, or the value that cannot be.
    """

    why: str = ""


Silence: TypeAlias = Unsupported | NoPermission | Lost | NoAnswer
Reading: TypeAlias = Value[T] | Silence
