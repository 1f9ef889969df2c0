"""Findings that a recipe lets through, each for a reason and until a day."""

from datetime import date

from envbuild.findings import Finding, Findings, Severity
from envbuild.recipe.load import LoadedRecipe
from envbuild.store.order import Allowed, let_through


def allowed(loaded: LoadedRecipe) -> tuple[Allowed, ...]:
    """Return what a recipe lets through."""
    return tuple(
        Allowed(
            code=entry.code,
            reason=entry.reason,
            until=entry.until.isoformat(),
            where=entry.where,
        )
        for entry in loaded.recipe.allow
    )


def judge(findings: Findings, loaded: LoadedRecipe, *, today: date) -> Findings:
    """Return findings, each once, those that the recipe lets through as notes.

    An entry of the recipe's `allow` whose day has passed lets nothing through and is a finding
    itself: `allow-expired`.

    Args:
        findings: What checks answered.
        loaded: The recipe.
        today: The day (UTC).
    """
    left = let_through(tuple(dict.fromkeys(findings)), allowed(loaded), today=today)
    expired = tuple(
        Finding(
            code="allow-expired",
            severity=Severity.WARNING,
            where=loaded.where("allow", place),
            what=f"letting `{entry.code}` through ended on {entry.until.isoformat()}",
            why=entry.reason,
            hint="remove the entry, or give it a new date and reason",
        )
        for place, entry in enumerate(loaded.recipe.allow)
        if entry.until < today
    )
    return (*left, *expired)


def lines(findings: Findings) -> str:
    """Return findings as the details of an error have them, a line each."""
    return "\n".join(f"{one.where}: {one.what} [{one.code}]" for one in findings)
