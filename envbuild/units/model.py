"""What units are made for, and what they become: `Manager`, `Origin`, `UnitFile`."""

from dataclasses import dataclass
from typing import Literal

Scope = Literal["system", "user"]

OLDEST = 239
"""The oldest systemd whose lack of directives is known here (RHEL 8)."""
DEFAULT = 252
"""What units are rendered for when nothing is said: the oldest that they are tried with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Manager:
    """The systemd that units are for.

    Attributes:
        version: Its version; directives that are newer are left out, with a comment.
        scope: The machine's manager, or a user's.
    """

    version: int = DEFAULT
    scope: Scope = "system"


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """What the units of an environment belong to.

    Attributes:
        name: The environment.
        prefix: Absolute path of the generation that their programs are in.
        own: The folder of the generation's own files, in the prefix.
        interpreter: The host's interpreter that the generation is made of, with its digest, or
            None with conda's.
    """

    name: str
    prefix: str
    own: str
    interpreter: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitFile:
    """A unit as a file.

    Attributes:
        name: The file's name.
        text: Its whole text.
        shared: Whether other environments render the same file.
    """

    name: str
    text: str
    shared: bool = False
