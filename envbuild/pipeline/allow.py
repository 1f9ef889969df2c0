"""Findings that a recipe lets through, each for a reason and until a day."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from envbuild.findings import Finding, Findings, Severity
from envbuild.recipe.load import LoadedRecipe
from envbuild.recipe.model import Allow
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


def once(loaded: LoadedRecipe, codes: Sequence[str], *, today: date) -> LoadedRecipe:
    """Return a recipe that lets findings of more codes through, today only.

    Args:
        loaded: The recipe.
        codes: What is let through, wherever it is found.
        today: The day (UTC).
    """
    if not codes:
        return loaded
    entries = tuple(Allow(code=code, reason="--allow, this once", until=today) for code in codes)
    recipe = loaded.recipe
    more = recipe.model_copy(update={"allow": (*recipe.allow, *entries)})
    return replace(loaded, recipe=more)


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
    """Return findings as the details of an error have them: a line each, and one for its hint."""
    found: list[str] = []
    for one in findings:
        found.append(f"{one.where}: {one.what} [{one.code}]")
        found += [f"  hint: {one.hint}"] if one.hint else []
    return "\n".join(found)
