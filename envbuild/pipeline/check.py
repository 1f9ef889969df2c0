"""Is this recipe fine: its lock against it, both against the facts."""

from dataclasses import dataclass
from datetime import date

from envbuild.compat.model import Facts
from envbuild.findings import Findings
from envbuild.lock.model import Lock
from envbuild.pipeline import allow
from envbuild.pipeline.against import against_facts
from envbuild.pipeline.lock import check_lock
from envbuild.recipe.load import LoadedRecipe
from envbuild.tools.run import Runner


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """What was looked at, and what was found.

    Attributes:
        locked: Whether there is a lock.
        findings: What speaks against recipe and lock; what is let through are notes.
    """

    locked: bool
    findings: Findings


def check_recipe(
    loaded: LoadedRecipe, lock: Lock | None, facts: Facts, *, today: date, engine: Runner
) -> Looked:
    """Hold a recipe and its lock against each other and against the facts.

    Args:
        loaded: The recipe.
        lock: Its lock, None where there is none.
        facts: The tables.
        today: The day (UTC).
        engine: Runs py-rattler's worker.
    """
    answers = () if lock is None else check_lock(lock, loaded, engine=engine)
    found = (
        *allow.judge(answers, loaded, today=today),
        *against_facts(loaded, lock, facts, today=today),
    )
    return Looked(locked=lock is not None, findings=tuple(dict.fromkeys(found)))
