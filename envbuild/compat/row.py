"""What every row of the facts has: where it was read, when, and how sure it is."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Row(ABC):
    """What every row has.

    Attributes:
        sources: Where it was read, in words.
        read: The day on which they were read (ISO 8601).
        confidence: How sure the row is.
        note: One sentence more, or empty.
        site: Folder of the site's own facts that the row comes from; empty for one that ships.
    """

    sources: tuple[str, ...]
    read: str
    confidence: Confidence
    note: str = ""
    site: str = ""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the row is called; unique in its table."""
