"""What a package declares of itself, and where its content says otherwise."""

from dataclasses import dataclass
from typing import Literal

Format = Literal["wheel", "conda"]
Difference = Literal["hash", "size", "weak", "absent", "unlisted", "twice"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordDifference:
    """One row of a package's own list of files that its content contradicts.

    Attributes:
        path: The file.
        kind: `hash` or `size` differ; the hash is of a `weak` algorithm; the file is listed but
            `absent`, there but `unlisted`, or listed `twice`.
        listed: What the list says, or None.
        found: What the file has, or None.
    """

    path: str
    kind: Difference
    listed: str | None = None
    found: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageFacts:
    """A wheel or conda package as it declares itself.

    Attributes:
        format: Which of them.
        file_name: Its name.
        file_tags: Tags of a wheel's name, each spelt out; empty where it is no wheel's name.
        wheel_tags: `Tag` lines of WHEEL.
        record: Rows of RECORD (or `info/paths.json`) that the content contradicts.
        has_record: Whether it has such a list.
        variant: Label at the end of a wheel's name, or None.
        properties: What a wheel declares to be for: namespace, feature and values.
        odd_members: Members that it cannot have (names that lead out, links in a wheel, a name
            twice), each with what is wrong.
    """

    format: Format
    file_name: str
    file_tags: frozenset[str] = frozenset()
    wheel_tags: frozenset[str] = frozenset()
    record: tuple[RecordDifference, ...] = ()
    has_record: bool = False
    variant: str | None = None
    properties: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    odd_members: tuple[tuple[str, str], ...] = ()
