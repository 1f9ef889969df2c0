"""Whether a lock answers its recipe: looked up, not solved.

Codes, all errors: `lock-conda`, `lock-pypi`, `lock-python`, `lock-channels`, `lock-target`,
`lock-triangle`, `lock-build`, `lock-indexes`, `lock-cutoff`, `lock-link-scripts` (the recipe
changed there), `lock-digest` (changed by hand), `lock-platform` (not covered), `lock-conda-unmet`,
`lock-pypi-unmet` (a line of the recipe that no package meets), `lock-name`, `lock-compiler`
(copied otherwise), `lock-no-python`, `lock-depends`, `lock-virtual`, `lock-channel`, `lock-index`,
`lock-twice` (its packages do not go together, or come from elsewhere).
"""

from envbuild.findings import Findings
from envbuild.lock.changes import changes
from envbuild.lock.consistency import Matches, Virtual, consistency
from envbuild.lock.model import Lock
from envbuild.recipe.load import LoadedRecipe


def check(lock: Lock, loaded: LoadedRecipe, *, matches: Matches, virtual: Virtual) -> Findings:
    """Return every line of the recipe that the lock does not answer, and why.

    Args:
        lock: The lock.
        loaded: Its recipe.
        matches: Asks conda's engine whether packages match specs (it starts no solve).
        virtual: Gives name, version and build of a target's virtual packages.

    Returns:
        Findings, all errors; none if the lock answers the recipe.
    """
    seen = consistency(lock, loaded, matches=matches, virtual=virtual)
    known = {one.path for one in seen if one.path is not None}
    found = (*(one.finding for one in seen), *changes(lock, loaded, known=known))
    return tuple(dict.fromkeys(found))
