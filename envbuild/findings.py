"""`Finding`: the one shape of every answer that can be "no"."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters; only an error makes a command exit with 1."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One answer of a check.

    Attributes:
        code: Stable name, lower case with hyphens (`weak-hash`); a recipe's `allow` refers to it.
        severity: Error, warning or note.
        where: The file with its line, or the package, or the path it is about.
        what: What was seen, one sentence without a full stop at its end.
        why: Why it matters, or the source of the claim; may be empty.
        hint: What to do, or None.
    """

    code: str
    severity: Severity
    where: str
    what: str
    why: str = ""
    hint: str | None = None


Findings = tuple[Finding, ...]


def errors_of(findings: Iterable[Finding]) -> Findings:
    """Return the findings that make a command answer no."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)
