"""`status`: is the current generation what recipe and lock say now, and who uses it?"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from envbuild.channel import host
from envbuild.errors import StoreError
from envbuild.findings import Finding, Findings, Severity
from envbuild.lock import files
from envbuild.lock.digest import environment_digest
from envbuild.pipeline.lock import check_lock
from envbuild.pipeline.orders import make_order
from envbuild.recipe.load import LoadedRecipe, load
from envbuild.store import manifest as manifests
from envbuild.store import moved, noop, present
from envbuild.store.layout import GENERATION_FORMAT, Generation, Place
from envbuild.store.manifest import Inputs, Interpreter, Manifest
from envbuild.target import Platform
from envbuild.tools import processes
from envbuild.tools.processes import Process

_DIGITS = 16
LockFinder = Callable[[str, Path], Path | None]
"""Gives the folder of the lock of a recipe, by its name and file; None if there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """How an environment stands.

    Attributes:
        name: Its name.
        current: ID of the current generation, None if there is none.
        wanted: First 16 digits of the environment digest that recipe and lock give now; None
            where that is unknown.
        running: IDs of its generations, each with the processes that use it, where there are any.
        findings: What is not as it should be; errors where the answer is no.
    """

    name: str
    current: str | None
    wanted: str | None
    running: tuple[tuple[str, tuple[Process, ...]], ...]
    findings: Findings


def status(
    place: Place,
    *,
    recipe_folders: Sequence[Path],
    find_lock: LockFinder,
    platform: Platform,
    proc: Path = Path("/proc"),
) -> Status:
    """Compare an environment with its recipe and lock; no network, no solve.

    Codes: `not-current` (there is no current generation), `current-damaged`, `generation-moved`,
    `recipe-missing`, `lock-missing`, those of `lock.answers`, `interpreter-changed`,
    `generation-outdated` (recipe and lock give another one, which is not there), `rolled-back` (a
    warning: it is there, and another is current), `reinstalled` (a note: a newer one of the same
    lock is there).

    Args:
        place: The environment.
        recipe_folders: Where its recipe is looked up.
        find_lock: Finds the lock of its recipe.
        platform: This machine's.
        proc: Where proc(5) is mounted.

    Raises:
        RecipeError: The recipe is wrong.
        LockError: The lock is damaged, or not for this platform.
    """
    manifest, findings = _current(place)
    wanted: str | None = None
    file = _recipe_file(place, manifest, recipe_folders)
    if file is None:
        where = f"no recipe {place.name!r} in {', '.join(map(str, recipe_folders))}"
        findings = (*findings, _finding("recipe-missing", Severity.WARNING, place.name, where))
    else:
        loaded = load(str(file), recipe_folders)
        wanted, said = _wanted(loaded, find_lock(loaded.recipe.name, file), manifest, platform)
        findings = (*findings, *said)
    if manifest is not None and wanted is not None:
        findings = (*findings, *_compared(place, manifest, wanted))
    return Status(
        name=place.name,
        current=manifest.generation if manifest else None,
        wanted=wanted[:_DIGITS] if wanted else None,
        running=_running(place, proc),
        findings=findings,
    )


def _current(place: Place) -> tuple[Manifest | None, Findings]:
    try:
        here = present.current(place)
        if here is not None:
            manifest = manifests.read(here)
            away = moved.finding(here, manifest.prefix)
            return manifest, (away,) if away else ()
    except StoreError as error:
        damaged = _finding(
            "current-damaged", Severity.ERROR, place.name, error.message, hint=error.hint
        )
        return None, (damaged,)
    what = "has no current generation"
    hint = present.to_current(place)
    return None, (_finding("not-current", Severity.ERROR, place.name, what, hint=hint),)


def _recipe_file(place: Place, manifest: Manifest | None, folders: Sequence[Path]) -> Path | None:
    """Return the recipe that `create NAME` takes, else the one that it was made from."""
    found = noop.recipe_file(place.name, folders)
    if found is None and manifest is not None and manifest.inputs.recipe:
        made_from = Path(manifest.inputs.recipe[0][0])
        return made_from if made_from.is_file() else None
    return found


def _wanted(
    loaded: LoadedRecipe, folder: Path | None, manifest: Manifest | None, platform: Platform
) -> tuple[str | None, Findings]:
    """Return the environment digest that recipe and lock give now, and what they say."""
    name = loaded.recipe.name
    if folder is None:
        hint = f"envbuild lock {name}"
        missing = _finding("lock-missing", Severity.ERROR, name, "has no lock", hint=hint)
        return None, (missing,)
    lock = files.read(folder)
    findings = check_lock(lock, loaded)
    inputs = Inputs(recipe=(), lock=())
    order = make_order(loaded, lock, platform, inputs=inputs, findings=())
    if lock.host_python is None:
        return order.environment_digest, findings
    interpreter = manifest.interpreter if manifest else None
    if interpreter is None:
        return None, findings
    digest = environment_digest(
        lock,
        platform,
        interpreter=interpreter.digest,
        python=interpreter.version,
        store_format=GENERATION_FORMAT,
    )
    return digest, (*findings, *_interpreter(interpreter, name))


def _interpreter(interpreter: Interpreter, name: str) -> Iterator[Finding]:
    try:
        now = manifests.stamps(Path(stamp.path) for stamp in interpreter.stamps)
    except OSError as error:
        what = f"{interpreter.path}: {error.filename}: {error.strerror}"
    else:
        path = Path(interpreter.path)
        if now == interpreter.stamps or host.still(path, interpreter.digest):
            return
        what = f"{interpreter.path} has changed since the generation was made"
    hint = f"envbuild create {name}"
    yield _finding("interpreter-changed", Severity.WARNING, name, what, hint=hint)


def _compared(place: Place, manifest: Manifest, wanted: str) -> Iterator[Finding]:
    name, here = place.name, manifest.generation
    newest = _newest(place, wanted)
    if manifest.environment_digest == wanted:
        if newest is not None and newest.identifier != here:
            what = f"{newest.identifier}, of the same lock, is newer than {here}"
            yield _finding("reinstalled", Severity.NOTE, name, what)
    elif newest is not None:
        what = f"{here} is current, recipe and lock give {newest.identifier}, which is there"
        hint = f"envbuild switch {name} {newest.identifier}"
        yield _finding("rolled-back", Severity.WARNING, name, what, hint=hint)
    else:
        what = f"{here} is current, recipe and lock give {wanted[:_DIGITS]}"
        hint = f"envbuild create {name}"
        yield _finding("generation-outdated", Severity.ERROR, name, what, hint=hint)


def _newest(place: Place, wanted: str) -> Generation | None:
    same = [
        generation
        for generation in present.generations(place)
        if generation.identifier.partition("-")[0] == wanted[:_DIGITS]
    ]
    return same[-1] if same else None


def _running(place: Place, proc: Path) -> tuple[tuple[str, tuple[Process, ...]], ...]:
    found = processes.using([each.prefix for each in present.generations(place)], proc=proc)
    return tuple((folder.name, users) for folder, users in found.items() if users)


def _finding(
    code: str, severity: Severity, where: str, what: str, *, hint: str | None = None
) -> Finding:
    return Finding(code=code, severity=severity, where=where, what=what, hint=hint)
