"""`envbuild lock`: solve recipes and write their locks, or say whether locks answer."""

import gc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envbuild.cli import allowing, complete, options, output, progress, report
from envbuild.cli.context import Here
from envbuild.errors import EnvbuildError, LockError
from envbuild.findings import Findings, errors_of

if TYPE_CHECKING:
    from envbuild.lock.model import Lock
    from envbuild.recipe.load import LoadedRecipe
    from envbuild.tools.run import Runner, Started


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What the command line asks for."""

    names: tuple[str, ...]
    every: bool
    check: bool
    upgrade: bool
    upgrade_packages: tuple[str, ...]
    exclude_newer: str | None
    prefer_rebuilt: bool
    dry_run: bool
    as_json: bool


@options.command(
    "lock",
    examples="""
    envbuild lock h100-pt24
    envbuild lock h100-pt24 --upgrade-package transformers
    envbuild lock --all --check
    envbuild lock h100-pt24 --exclude-newer 2026-11-30 --dry-run
    envbuild lock --prefer-rebuilt rebuild-demo
    """,
)
@click.option(
    "--check", is_flag=True, help="Say whether the locks answer their recipes; solve nothing."
)
@options.locked_options
@click.option("-U", "--upgrade", is_flag=True, help="Keep nothing of the old lock.")
@click.option(
    "-P",
    "--upgrade-package",
    "upgrade_packages",
    metavar="PACKAGE",
    multiple=True,
    help="Keep all but this package of the old lock; may be repeated.",
)
@click.option(
    "--exclude-newer",
    metavar="WHEN",
    help="Only what was uploaded before: an instant, a date (that day included), an age (14d).",
)
@click.option(
    "--prefer-rebuilt",
    is_flag=True,
    help="Take wheels that `envbuild wheel rebuild` made for it; the lock then goes on to.",
)
@options.dry_run_option
@allowing.allow_option
@options.offline_option
@click.option("--all", "every", is_flag=True, help="Lock every recipe of the project.")
@options.json_option
@click.argument("names", metavar="[NAME...]", nargs=-1, shell_complete=complete.recipes)
@click.pass_obj
def command(here: Here, /, **told: Any) -> int:  # noqa: ANN401
    """Solve recipes and write their locks; what need not change stays as it is.

    Exit code 0: locked, or unchanged; 1: findings are left, or (--check, --locked) the lock does
    not answer its recipe; 3: there is no lock to check; 4: there is no solution. Of several
    recipes each is tried, whatever the others say; the exit code is then the highest.
    """
    wish = Wish(**told)
    act = _act_of(here, wish)
    names = _names(here, wish)
    codes: list[int] = []
    rows: list[dict[str, object]] = []
    with _no_collection(), closing(_engine(here, wish)) as engine:
        for name in names:
            try:
                row, findings = act(here, _load(here, name), wish, engine)
            except EnvbuildError as error:
                if len(names) == 1:
                    raise
                if not wish.as_json:
                    report.show(here, error)
                rows.append({"name": name, "error": report.error_json(error)})
                codes.append(error.exit_code)
            else:
                rows.append(row)
                codes.append(1 if errors_of(findings) else 0)
    if wish.as_json:
        output.print_json({"locks": rows})
    return max(codes)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage: imports make many objects that stay, looking at them takes a fifth."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


Row = tuple[dict[str, object], Findings]


def _engine(here: Here, wish: Wish) -> "Started":
    """Start the conda engine, which loads while the recipe is read."""
    from envbuild.access import Access
    from envbuild.tools.rattler_process import ahead

    return ahead(Access() if _looks(here, wish) else here.access)


def _looks(here: Here, wish: Wish) -> bool:
    """Tell whether locks are only looked at, and nothing is solved."""
    return wish.check or here.locked or here.frozen


def _act_of(here: Here, wish: Wish) -> "Any":  # noqa: ANN401
    """Return what is done with every recipe.

    Raises:
        click.UsageError: Options contradict each other.
    """
    if here.frozen and wish.check:
        message = "--check and --frozen cannot be used together"
        raise click.UsageError(message)
    looks = _looks(here, wish)
    changing = {
        "--upgrade": wish.upgrade,
        "--upgrade-package": wish.upgrade_packages,
        "--exclude-newer": wish.exclude_newer,
    }
    useless = [name for name, given in changing.items() if given]
    if looks and useless:
        message = f"{useless[0]} has no meaning where nothing is solved"
        raise click.UsageError(message)
    if not looks:
        return _lock
    return _read if here.frozen else _check


def _names(here: Here, wish: Wish) -> tuple[str, ...]:
    """Return the names of the recipes that are asked for, each once.

    Raises:
        click.UsageError: None is.
    """
    from envbuild.recipe import load

    if wish.every == bool(wish.names):
        message = "name the recipes to lock, or give --all for every recipe of the project"
        raise click.UsageError(message)
    names = wish.names or load.available(here.recipe_folders[:-1])
    if not names:
        message = f"there is no recipe in {', '.join(map(str, here.recipe_folders[:-1]))}"
        raise click.UsageError(message)
    return tuple(dict.fromkeys(names))


def _load(here: Here, name: str) -> "LoadedRecipe":
    from envbuild.pipeline.allow import once
    from envbuild.recipe import load

    loaded = load.load(name, here.recipe_folders)
    return once(loaded, here.allow_option, today=here.now().date())


def _old(here: Here, loaded: "LoadedRecipe") -> "tuple[Path, Lock] | None":
    from envbuild.lock import files

    folder = here.lock_folder(loaded.recipe.name, recipe=loaded.sources[0].path)
    return None if folder is None else (folder, files.read(folder))


def _existing(here: Here, loaded: "LoadedRecipe") -> "tuple[Path, Lock]":
    found = _old(here, loaded)
    if found is None:
        name = loaded.recipe.name
        looked = ", ".join(map(str, here.lock_folders))
        message = f"there is no lock of {name} (looked in {looked})"
        raise LockError(message, source=name, hint=f"envbuild lock {name}")
    return found


def _read(here: Here, loaded: "LoadedRecipe", wish: Wish, _engine: "Runner") -> Row:
    """Read the lock, and take it as it is."""
    folder, _ = _existing(here, loaded)
    name = loaded.recipe.name
    if not wish.as_json:
        output.result(f"{name}: the lock in {folder} can be read (--frozen: not compared)")
    return {"name": name, "folder": str(folder), "findings": []}, ()


def _check(here: Here, loaded: "LoadedRecipe", wish: Wish, engine: "Runner") -> Row:
    """Say whether the lock answers the recipe."""
    from envbuild.pipeline import allow, lock

    folder, old = _existing(here, loaded)
    name = loaded.recipe.name
    found = lock.check_lock(old, loaded, engine=engine)
    findings = allow.judge(found, loaded, today=here.now().date())
    stale = bool(errors_of(findings))
    if not wish.as_json:
        output.print_findings(here, findings)
        if stale:
            output.next_step(here, f"envbuild lock {name}")
        else:
            output.result(f"{name}: the lock in {folder} answers the recipe")
    row = {"name": name, "folder": str(folder), "answers": not stale}
    return {**row, "findings": output.findings_json(findings)}, findings


def _lock(here: Here, loaded: "LoadedRecipe", wish: Wish, engine: "Runner") -> Row:
    """Solve the recipe and write its lock if it differs."""
    from envbuild.lock.model import CONDA_FILE
    from envbuild.pipeline import lock, prefer
    from envbuild.solve.solution import Upgrade

    old = _to_keep(here, loaded, wish)
    upgrade = Upgrade(everything=wish.upgrade, packages=frozenset(wish.upgrade_packages))
    with progress.shown(here) as shown:
        made = lock.make_lock(
            loaded,
            lock.LockOptions(
                old=old,
                upgrade=upgrade,
                exclude_newer=wish.exclude_newer,
                facts=here.facts,
                prefer_rebuilt=wish.prefer_rebuilt,
            ),
            access=here.access,
            store=here.store,
            now=here.now(),
            progress=shown,
            engine=engine,
        )
    refused = bool(errors_of(made.findings))
    changed = old is None or bool(made.changes)
    folder = here.lock_output / loaded.recipe.name
    new_here = not (folder / CONDA_FILE).is_file()  # the old one may lie elsewhere
    written = (changed or new_here) and not refused and not wish.dry_run
    if written:
        lock.write_lock(made.lock, folder)
    if not wish.as_json:
        output.print_findings(here, made.findings, err=True)
        place = f"written to {folder}" if written else "nothing was written"
        output.result(_told(made, old, place, wish, refused=refused, changed=changed))
        if wish.prefer_rebuilt and not refused and not prefer.has_rebuilt(made.lock):
            name = loaded.recipe.name
            output.say(here, f"{name}: no rebuilt wheel fits; envbuild wheel rebuild {name}")
    row: dict[str, object] = {
        "name": loaded.recipe.name,
        "folder": str(folder),
        "cutoff": output.time_text(made.lock.cutoff),
        "changed": changed,
        "written": written,
        "changes": made.changes.as_json(),
        "findings": output.findings_json(made.findings),
    }
    return row, made.findings


def _to_keep(here: Here, loaded: "LoadedRecipe", wish: Wish) -> "Lock | None":
    """Return the old lock; a damaged one does not matter where nothing of it is kept."""
    try:
        found = _old(here, loaded)
    except LockError as error:
        if wish.upgrade:
            return None
        error.hint = f"{error.hint or 'restore the file'} (--upgrade locks without it)"
        raise
    return None if found is None else found[1]


def _told(
    made: "Any",  # noqa: ANN401
    old: "Lock | None",
    place: str,
    wish: Wish,
    *,
    refused: bool,
    changed: bool,
) -> str:
    name = made.lock.name
    if refused:
        return f"{name}: not locked, {place}"
    if not changed:
        return f"{name}: unchanged, {place}"
    halves = ", ".join(
        f"{half.platform}: {len(half.conda)} conda and {len(half.pip)} PyPI packages"
        for half in made.lock.platforms
    )
    verb = "would be locked" if wish.dry_run else "locked"
    lines = [f"{name}: {verb}, {halves}; {place}"]
    if wish.dry_run or old is not None:
        lines.append(made.changes.text())
    return "\n".join(lines)
