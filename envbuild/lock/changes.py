"""What a recipe asks for now, against what it asked for when the lock was made."""

import json
from collections.abc import Collection, Iterator
from typing import Any, Final

from envbuild.findings import Finding, Severity
from envbuild.lock import digest
from envbuild.lock.model import Lock
from envbuild.recipe.load import LoadedRecipe
from envbuild.recipe.requirements import name_of as pip_name_of
from envbuild.recipe.requirements import pip_needs
from envbuild.recipe.specs import conda_needs
from envbuild.recipe.specs import name_of as conda_name_of

Path = tuple[str | int, ...]

_MAPPINGS: Final = ("target", "triangle", "build")
_PLAIN: Final = ("python", "cutoff", "channels", "link_scripts")
STALE_HINT: Final = "envbuild lock {}"


def changes(lock: Lock, loaded: LoadedRecipe, *, known: Collection[Path] = ()) -> Iterator[Finding]:
    """Give a finding for everything that changed in the recipe since the lock was made.

    Nothing is given while the solve digest is the same.

    Args:
        lock: The lock.
        loaded: Its recipe.
        known: Places in the recipe that other findings name already.
    """
    asked = digest.asked(loaded.recipe)
    if digest.digest_of(asked) == lock.solve_digest:
        return
    now, then = dict(asked), dict(lock.asked)
    different = sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key))
    if not different:
        yield _finding(
            loaded, "digest", (), "the lock's solve digest is not the one of its own contents"
        )
    for section in different:
        new, old = _value(now, section), _value(then, section)
        if section in {"conda", "pypi"}:
            yield from _specs(loaded, section, new or [], old or [], known)
        elif section == "indexes":
            yield from _indexes(loaded, new or [], old or [])
        elif section in _MAPPINGS:
            yield from _fields(loaded, section, new or {}, old or {}, known)
        elif (section,) not in known:
            yield _changed(loaded, section, (section,), new, old)


def _value(sections: dict[str, str], section: str) -> Any:  # noqa: ANN401
    """Return the content of a section, None if there is none or it cannot be read."""
    try:
        return json.loads(sections[section])
    except (KeyError, ValueError):
        return None


def _finding(loaded: LoadedRecipe, kind: str, path: Path, what: str) -> Finding:
    return Finding(
        code=f"lock-{kind.replace('_', '-')}",
        severity=Severity.ERROR,
        where=loaded.where(*path),
        what=what,
        hint=STALE_HINT.format(loaded.recipe.name),
    )


def _changed(loaded: LoadedRecipe, kind: str, path: Path, new: Any, old: Any) -> Finding:  # noqa: ANN401
    field = ".".join(map(str, path))
    what = f"`{field}` is {_shown(new)}, it was {_shown(old)} when the lock was made"
    return _finding(loaded, kind, path, what)


def _shown(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "empty"
    return str(value) if value else "not set"


def _specs(
    loaded: LoadedRecipe, section: str, new: list[str], old: list[str], known: Collection[Path]
) -> Iterator[Finding]:
    """Give what changed in a list of specs; one that was rewritten is told with what it was."""
    name_of = conda_name_of if section == "conda" else pip_name_of
    gone = [spec for spec in old if spec not in new]
    for spec, path in _written(loaded, section):
        if spec in old:
            continue
        before = next((one for one in gone if name_of(one) == name_of(spec)), None)
        if before is not None:
            gone.remove(before)
        if path in known:
            continue
        was = "not there" if before is None else f"`{before}`"
        what = f"`{spec}` was {was} when the lock was made"
        yield _finding(loaded, section, path, what)
    for spec in gone:
        what = f"the lock was made with `{spec}`, which the recipe does not ask for"
        yield _finding(loaded, section, (section,), what)


def _written(loaded: LoadedRecipe, section: str) -> Iterator[tuple[str, Path]]:
    """Give every spec of a section in one spelling, with its place."""
    if section == "conda":
        for need in conda_needs(loaded.recipe):
            if need.path[:1] == ("conda",):
                yield digest.spec(need), need.path
    else:
        for pip_need in pip_needs(loaded.recipe):
            yield digest.requirement(pip_need), pip_need.path


def _indexes(
    loaded: LoadedRecipe, new: list[dict[str, Any]], old: list[dict[str, Any]]
) -> Iterator[Finding]:
    now = {index["name"]: index for index in new}
    then = {index["name"]: index for index in old}
    places = {index.name: place for place, index in enumerate(loaded.recipe.indexes)}
    for name in sorted(now.keys() | then.keys()):
        path: Path = ("indexes", places[name]) if name in places else ("indexes",)
        if name not in then:
            yield _finding(loaded, "indexes", path, f"index {name} was not there when locked")
        elif name not in now:
            what = f"the lock was made with the index {name}, which the recipe does not have"
            yield _finding(loaded, "indexes", path, what)
        else:
            fields = sorted(
                key
                for key in now[name].keys() | then[name].keys()
                if now[name].get(key) != then[name].get(key)
            )
            for key in fields:
                field = "url" if key == "address_sha256" else key
                what = f"`{field}` of index {name} is not what it was when the lock was made"
                yield _finding(loaded, "indexes", (*path, field), what)


def _fields(
    loaded: LoadedRecipe,
    section: str,
    new: dict[str, Any],
    old: dict[str, Any],
    known: Collection[Path],
) -> Iterator[Finding]:
    for key in sorted(new.keys() | old.keys()):
        if new.get(key) != old.get(key) and (section, key) not in known:
            yield _changed(loaded, section, (section, key), new.get(key), old.get(key))
