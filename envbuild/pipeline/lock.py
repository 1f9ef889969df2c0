"""From a recipe to its lock: both solves, the findings, the difference, and the files."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from packaging.utils import canonicalize_name

from envbuild.access import Access
from envbuild.compat.model import Facts
from envbuild.errors import LockError, Refused, UsageProblem
from envbuild.findings import Findings, errors_of
from envbuild.lock.model import CONDA_FILE, Lock, requirements_file
from envbuild.packages import CondaPackage
from envbuild.pipeline import allow
from envbuild.progress import Progress
from envbuild.recipe import cutoff
from envbuild.recipe.load import LoadedRecipe
from envbuild.solve import conda
from envbuild.solve.solution import PlatformSolution, Solution, Upgrade
from envbuild.store.layout import Store
from envbuild.target import PLATFORMS, Platform
from envbuild.tools import locks, rattler
from envbuild.tools.endable import Endable
from envbuild.tools.files import make_folder, sync_folder, write_atomic
from envbuild.tools.interrupts import Piece
from envbuild.tools.run import Runner, run

if TYPE_CHECKING:
    from envbuild.lock.diff import LockDiff
    from envbuild.solve.half import PipHalf

_PATIENCE_S: Final = 60.0
_LATER: Final = (
    "envbuild.solve.pip",
    "envbuild.lock.freeze",
    "envbuild.lock.files",
    "envbuild.lock.diff",
    "envbuild.store.link_scripts",
    "uv",
)
"""What is needed after the conda solve: imported while that runs, which takes as long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LockOptions:
    """What a lock is made with.

    Attributes:
        old: The lock until now, whose packages stay where they can, or None.
        upgrade: What of it may move.
        exclude_newer: Cutoff as text, before the recipe's own, or None.
        facts: What recipe and lock are held against.
        prefer_rebuilt: Whether rebuilt wheels are taken; where the old lock has some they are.
    """

    old: Lock | None = None
    upgrade: Upgrade = field(default_factory=Upgrade)
    exclude_newer: str | None = None
    facts: Facts = field(default_factory=Facts)
    prefer_rebuilt: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LockResult:
    """A lock that was made, and what is to be said about it.

    Attributes:
        lock: The lock; the old one where nothing has to change.
        changes: What differs from the old one.
        findings: What the solves had to say; those let through are notes.
    """

    lock: Lock
    changes: "LockDiff"
    findings: Findings


def make_lock(
    loaded: LoadedRecipe,
    options: LockOptions,
    *,
    access: Access,
    store: Store,
    now: datetime,
    progress: Progress,
    engine: Runner = run,
) -> LockResult:
    """Solve both halves of a recipe and freeze them; writes nothing but caches.

    Args:
        loaded: The recipe.
        options: The old lock, what may move, the cutoff.
        access: How channels and indexes are reached.
        store: Where the caches are.
        now: The clock (UTC).
        progress: Is told what begins.
        engine: How the worker of the conda engine is started.

    Raises:
        Refused: The facts speak against what the recipe asks for; nothing was solved.
        NoSolution: It cannot be done.
        FetchError: A channel or an index is out of reach.
        ToolError: An engine failed.
        UsageProblem: A cutoff is none, or a package to upgrade is not in the lock.
    """
    from envbuild.pipeline import prefer
    from envbuild.pipeline.against import against_facts
    from envbuild.rebuild.house import House

    today = now.astimezone(UTC).date()
    if errors := errors_of(against_facts(loaded, None, options.facts, today=today)):
        message = f"{loaded.recipe.name} is not locked: what is known speaks against it"
        hint = f"envbuild check {loaded.recipe.name}"
        raise Refused(message, hint=hint, details=allow.lines(errors))
    old, upgrade = options.old, _upgrade(options)
    kept = old is not None and not upgrade.everything and prefer.has_rebuilt(old)
    instant = _cutoff(loaded, options, now=now.astimezone(UTC).replace(microsecond=0))
    make_folder(store.cache)
    with _imported(_LATER):
        before = prefer.original(old)
        solution = _solve(loaded, before, upgrade, instant, access, store, progress, engine)

    from envbuild.lock.diff import diff
    from envbuild.lock.freeze import freeze
    from envbuild.store import link_scripts

    lock = freeze(loaded.recipe, solution)
    if options.prefer_rebuilt or kept:
        lock = prefer.preferred(lock, loaded, House(store.wheelhouse))
    if old is not None and options.exclude_newer is None and not upgrade.everything:
        lock = _unmoved(old, lock)
    scripts = link_scripts.ahead(
        (package for half in solution.platforms for package in half.conda),
        store.package_cache,
        allowed=loaded.recipe.link_scripts,
    )
    said = allow.judge((*solution.findings, *scripts), loaded, today=today)
    known = against_facts(loaded, lock, options.facts, today=today)
    return LockResult(
        lock=lock,
        changes=diff(old, lock),
        findings=tuple(dict.fromkeys((*said, *known))),
    )


@contextlib.contextmanager
def _imported(modules: Sequence[str]) -> Iterator[None]:
    """Import modules in another thread, while this one waits for an engine.

    What cannot be imported fails again where it is needed, and is told there.
    """

    def work() -> None:
        with contextlib.suppress(ImportError):
            for name in modules:
                import_module(name)

    importing = Thread(target=work)
    importing.start()
    try:
        yield
    finally:
        importing.join()


def check_lock(lock: Lock, loaded: LoadedRecipe, *, engine: Runner = run) -> Findings:
    """Return every line of the recipe that the lock does not answer; no solve, no network."""
    from envbuild.lock import answers

    return answers.check(
        lock,
        loaded,
        matches=partial(rattler.match, access=Access(), runner=engine),
        virtual=rattler.virtual_packages,
    )


def write_lock(lock: Lock, folder: Path) -> None:
    """Write a lock's files; where one cannot be written, all stay as they were.

    Requirements of platforms that the lock no longer covers are removed.

    Args:
        lock: The lock.
        folder: Its folder (`lockfiles/NAME`), made if it is missing.

    Raises:
        LockError: It cannot be written.
    """
    from envbuild.lock import files

    texts = files.dumps(lock).files
    stale = {requirements_file(platform) for platform in PLATFORMS} - texts.keys()
    # conda-lock.yml comes last: it holds the digests of the others.
    order = [*(name for name in texts if name != CONDA_FILE), CONDA_FILE]
    try:
        make_folder(folder)
        with locks.folder(folder, timeout_s=_PATIENCE_S), Piece():
            before = _contents(folder, [*order, *stale])
            try:
                for name in order:
                    write_atomic(_beside(folder, name), texts[name])
                for name in order:
                    _beside(folder, name).replace(folder / name)
                for name in stale:
                    (folder / name).unlink(missing_ok=True)
            except BaseException:
                _restore(folder, before)
                raise
            finally:
                for name in order:
                    _beside(folder, name).unlink(missing_ok=True)
            sync_folder(folder)
    except OSError as error:
        message = f"{folder}: the lock cannot be written: {error.strerror or error}"
        raise LockError(message, source=str(folder)) from error


def _beside(folder: Path, name: str) -> Path:
    return folder / f".{name}.new"


def _contents(folder: Path, names: list[str]) -> dict[str, bytes | None]:
    return {
        name: (folder / name).read_bytes() if (folder / name).is_file() else None for name in names
    }


def _restore(folder: Path, before: Mapping[str, bytes | None]) -> None:
    """Put back what was there, as far as the file system lets us."""
    for name, content in before.items():
        with contextlib.suppress(OSError):
            if content is None:
                (folder / name).unlink(missing_ok=True)
            elif (folder / name).read_bytes() != content:
                (folder / name).write_bytes(content)


def _solve(
    loaded: LoadedRecipe,
    old: Lock | None,
    upgrade: Upgrade,
    instant: datetime,
    access: Access,
    store: Store,
    progress: Progress,
    engine: Runner,
) -> Solution:
    platforms = loaded.recipe.target.platforms
    if loaded.recipe.on_host_python:
        from envbuild.solve import pip

        progress.step(f"solving PyPI packages of {loaded.recipe.name}")
        half = pip.solve_universal(
            loaded,
            cutoff=instant,
            prefer=old.platforms[0].pip if old is not None and old.platforms else (),
            upgrade=upgrade,
            access=access,
            uv_cache=store.uv_cache,
            metadata_cache=store.metadata_cache,
        )
        return _solution(instant, dict.fromkeys(platforms, ()), dict.fromkeys(platforms, half), ())
    progress.step(f"solving conda packages of {loaded.recipe.name} for {', '.join(platforms)}")
    condas = conda.half(
        loaded,
        platforms,
        cutoff=instant,
        prefer=_preferred(old, upgrade),
        access=access,
        cache=store.cache,
        runner=engine,
    )

    from envbuild.solve import pip

    runner = Endable()

    def solve_pip(platform: Platform) -> "PipHalf":
        half = old.for_platform(platform) if old is not None else None
        return pip.solve(
            loaded,
            platform,
            conda=condas.platforms[platform],
            cutoff=instant,
            prefer=half.pip if half is not None else (),
            upgrade=upgrade,
            access=access,
            uv_cache=store.uv_cache,
            metadata_cache=store.metadata_cache,
            runner=runner,
        )

    progress.step(f"solving PyPI packages of {loaded.recipe.name} for {', '.join(platforms)}")
    pips = dict(zip(platforms, _each(solve_pip, platforms, runner), strict=True))
    return _solution(instant, condas.platforms, pips, condas.findings)


def _each(
    solve: Callable[[Platform], "PipHalf"], platforms: Sequence[Platform], runner: Endable
) -> "Iterable[PipHalf]":
    """Solve for every platform, several at once; after a failure or a signal, no more runs."""
    if len(platforms) == 1:
        return [solve(platforms[0])]
    with ThreadPoolExecutor(max_workers=len(platforms) or 1) as pool:
        try:
            return list(pool.map(solve, platforms))
        except BaseException:
            runner.end()
            raise


def _solution(
    instant: datetime,
    condas: Mapping[Platform, tuple[CondaPackage, ...]],
    pips: "Mapping[Platform, PipHalf]",
    findings: Findings,
) -> Solution:
    return Solution(
        platforms=tuple(
            PlatformSolution(
                platform=platform,
                conda=condas[platform],
                pip=half.packages,
                wheel_bytes=half.download_bytes,
            )
            for platform, half in pips.items()
        ),
        cutoff=instant,
        uncut_indexes=tuple({name for half in pips.values() for name in half.uncut_indexes}),
        findings=(*findings, *(finding for half in pips.values() for finding in half.findings)),
    )


def _preferred(old: Lock | None, upgrade: Upgrade) -> dict[Platform, tuple[CondaPackage, ...]]:
    if old is None or upgrade.everything:
        return {}
    return {
        half.platform: tuple(one for one in half.conda if one.name not in upgrade.packages)
        for half in old.platforms
    }


def _cutoff(loaded: LoadedRecipe, options: LockOptions, *, now: datetime) -> datetime:
    """Return the instant: the flag's, the recipe's, the old lock's unless it may move, now."""
    for text, source in (
        (options.exclude_newer, "--exclude-newer"),
        (loaded.recipe.cutoff, loaded.where("cutoff")),
    ):
        if text is not None:
            try:
                return cutoff.resolve(text, now=now)
            except ValueError as error:
                message = f"{source}: {error}"
                raise UsageProblem(message) from error
    if options.old is not None and not (options.upgrade.everything or options.upgrade.packages):
        return options.old.cutoff
    return now


def _upgrade(options: LockOptions) -> Upgrade:
    """Return what may move, each name as both halves spell it.

    Raises:
        UsageProblem: A name is not in the lock.
    """
    asked = options.upgrade.packages
    if not asked:
        return options.upgrade
    if options.old is None:
        message = "there is no lock whose packages could be upgraded"
        raise UsageProblem(message, hint="without --upgrade-package everything is locked anew")
    halves = options.old.platforms
    known = {one.name for half in halves for one in half.conda}
    known |= {one.name for half in halves for one in half.pip}
    names: set[str] = set()
    for name in sorted(asked):
        spellings = {name.lower(), str(canonicalize_name(name))}
        if not spellings & known:
            near = get_close_matches(name.lower(), known, n=1)
            message = f"--upgrade-package {name}: the lock has no such package"
            hint = f"did you mean {near[0]}?" if near else "take a name that the lock has"
            raise UsageProblem(message, hint=hint)
        names |= spellings
    return replace(options.upgrade, packages=frozenset(names))


def _unmoved(old: Lock, new: Lock) -> Lock:
    """Return the old lock where only the instant moved (a recipe's cutoff by age)."""
    return old if replace(new, cutoff=old.cutoff) == old else new
