"""`envbuild wheel list`, `show` and `gc`: what the wheelhouse has."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envbuild.cli import confirm, options, output
from envbuild.cli.context import Here
from envbuild.errors import EnvbuildError

if TYPE_CHECKING:
    from envbuild.rebuild.house import House, Kept

_LEFT = ("builds", "prefixes")


@dataclass(frozen=True, kw_only=True, slots=True)
class _User:
    """A lock: its name, the digests that it has, and its versions by name."""

    name: str
    hashes: frozenset[str]
    versions: Mapping[str, str]


@options.command(
    "list",
    examples="""
    envbuild wheel list
    envbuild wheel list --json
    """,
)
@options.json_option
@click.pass_obj
def list_(here: Here, *, as_json: bool) -> None:
    """List the wheels of the wheelhouse, and which locks have them."""
    house = _house(here)
    users = list(_users(here))
    rows = [_row(kept, users) for kept in house.wheels()]
    if as_json:
        output.print_json({"wheelhouse": f"{house.root}", "wheels": rows})
    elif not rows:
        output.result(f"{house.root}: no wheel is there; envbuild wheel rebuild NAME makes them")
    else:
        heads = ("NAME", "VERSION", "COMPILER", "AGAINST", "BUILT", "SIZE", "LOCKS")
        output.result(output.table(heads, map(_cells, rows)))


def _row(kept: "Kept", users: Sequence[_User]) -> dict[str, Any]:
    from envbuild.rebuild.current import stale

    outdated = [
        f"{user.name}: {why}"
        for user in users
        if kept.name in user.versions and (why := stale(kept, user.versions)) is not None
    ]
    compiler = kept.statement.internal["compiler"]
    return {
        "name": kept.name,
        "version": str(kept.version),
        "file": kept.path.name,
        "sha256": kept.sha256,
        "bytes": kept.path.stat().st_size,
        "built": kept.statement.started,
        "compiler": f"{compiler['name']} {compiler['version']}",
        "against": kept.statement.against,
        "locks": [user.name for user in users if kept.sha256 in user.hashes],
        "stale": outdated,
    }


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    against = ", ".join(f"{name} {version}" for name, version in row["against"].items())
    used = ", ".join(row["locks"]) or "none"
    return (
        row["name"],
        row["version"],
        row["compiler"],
        against or "-",
        row["built"][:10],
        output.bytes_text(row["bytes"]),
        f"{used}; stale for {row['stale'][0]}" if row["stale"] else used,
    )


@options.command(
    "show",
    examples="""
    envbuild wheel show kiwisolver
    envbuild wheel show kiwisolver --json
    """,
)
@click.argument("wheel", metavar="NAME|FILE|SHA256")
@options.json_option
@click.pass_obj
def show(here: Here, wheel: str, *, as_json: bool) -> int:
    """Show how a wheel was built, and check that it is the one that its provenance is of.

    A name means its newest wheel. With --json the whole statement is printed. Exit code 1 if
    wheel and provenance do not agree.
    """
    from envbuild.rebuild import house as houses

    kept = _house(here).find(wheel)
    wrong = houses.check(kept)
    if as_json:
        output.print_json(
            {
                "file": f"{kept.path}",
                "wrong": list(wrong),
                "provenance": json.loads(kept.statement.text),
            }
        )
    else:
        output.result("\n".join(_lines(kept, _house(here))))
        output.result("\n".join(wrong) if wrong else "the wheel is the one that this is of")
    return int(bool(wrong))


def _lines(kept: "Kept", house: "House") -> Iterator[str]:
    internal, asked = kept.statement.internal, kept.statement.parameters
    told = json.loads(kept.statement.text)["predicate"]["buildDefinition"]["resolvedDependencies"]
    sources = next(row for row in told if row["name"] == "sources")
    compiler = internal["compiler"]
    rows = {
        "file": f"{kept.path}",
        "sha256": kept.sha256,
        "sources": sources["uri"],
        "": " ".join(f"{kind} {value}" for kind, value in sources["digest"].items()),
        "compiler": f"{compiler['name']} {compiler['version']} ({compiler['origin']})",
        "CUDA": f"{internal['cuda']['version']}" if "cuda" in internal else "",
        "Rust": "{version} ({origin})".format(**internal["rust"]) if "rust" in internal else "",
        "GPU code": ", ".join(asked["cudaArchs"]),
        "string ABI": asked["cxxAbi"] or "",
        "flags": " ".join(asked["flags"]),
        "python": internal["python"],
        "against": ", ".join(f"{name} {old}" for name, old in kept.statement.against.items()),
        "jobs": f"{internal['maxJobs']} ({internal['maxJobsBy']})",
        "kept apart by": internal["isolation"],
        "built": f"{kept.statement.started} to {kept.statement.finished}",
        "inputs": f"{len(told)} with digests: {house.statement_file(kept.path)}",
        "log": f"{house.log(kept.path)}",
    }
    for name, value in rows.items():
        if value:
            yield f"{name:14}{value}"


@options.command(
    "gc",
    examples="""
    envbuild wheel gc --dry-run
    envbuild wheel gc -y
    """,
)
@click.option("--all", "everything", is_flag=True, help="Also the compilers' caches and sources.")
@options.dry_run_option
@options.yes_option
@click.pass_obj
def gc(here: Here, *, everything: bool, dry_run: bool, yes: bool) -> None:
    """Remove wheels that no lock and no generation has, and what failed builds left.

    The newest wheel of each package stays. Locks are those in the folders of locks; what another
    host's lock has is not known here.
    """
    from envbuild.tools.files import remove_tree

    house = _house(here)
    used = {digest for user in _users(here) for digest in user.hashes} | _installed(here)
    every = list(house.wheels())
    newest = {kept.name: kept for kept in every}
    going = [one for one in every if one.sha256 not in used and newest[one.name] is not one]
    cache = here.store.rebuild_cache
    folders = [
        path
        for name in (*_LEFT, *(("ccache", "sources") if everything else ()))
        for path in sorted((cache / name).glob("*"))
    ]
    rows = [(one.path.name, "no lock and no generation has it") for one in going]
    rows += [(f"{path}", "left of builds") for path in folders if path.is_dir()]
    if rows:
        output.result(output.table(("REMOVE", "WHY"), rows))
    else:
        output.result("nothing is to be removed")
    if dry_run or not rows:
        return
    confirm.ask(yes=yes, what=f"remove {len(rows)} of them")
    for kept in going:
        house.remove(kept)
    for path in folders:
        if path.is_dir():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)


def _house(here: Here) -> "House":
    from envbuild.rebuild.house import House

    return House(here.store.resolved().wheelhouse)


def _users(here: Here) -> Iterator[_User]:
    """Yield the locks of the folders of locks that can be read."""
    from envbuild.lock import files

    for folder in _lock_folders(here):
        try:
            lock = files.read(folder)
        except EnvbuildError:
            continue
        packages = [one for half in lock.platforms for one in half.pip]
        yield _User(
            name=lock.name,
            hashes=frozenset(digest for one in packages for digest in one.hashes),
            versions={one.name: one.version for one in packages},
        )


def _lock_folders(here: Here) -> list[Path]:
    found: dict[str, Path] = {}
    for folder in here.lock_folders:
        for path in sorted(folder.glob("*/conda-lock.yml")):
            found.setdefault(path.parent.name, path.parent)
    return list(found.values())


def _installed(here: Here) -> set[str]:
    """Return the digests of the wheels of every generation of the store."""
    from envbuild.store import order

    found: set[str] = set()
    for path in here.store.environments.glob("*/generations/*/.envbuild/order.json"):
        try:
            made = order.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        found.update(digest for one in made.pip for digest in one.hashes)
    return found
