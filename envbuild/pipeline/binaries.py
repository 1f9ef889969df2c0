"""What is known of the binaries of a lock's packages: read where they are, in this order.

The environment's current generation, as far as it has just these packages; then the caches; then
the tables of facts. Only with `fetch` is anything downloaded.
"""

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from envbuild.access import Access
from envbuild.compat.model import Facts, FrameworkBuild
from envbuild.errors import EnvbuildError, StoreError
from envbuild.lock.model import PlatformLock
from envbuild.native.inspect import gathered, inspect
from envbuild.native.model import NativeFacts
from envbuild.native.tree import Unreadable, listed
from envbuild.packages import WHEELHOUSE, CondaPackage, PipPackage
from envbuild.progress import Progress
from envbuild.rebuild.house import House
from envbuild.solve.names import distribution
from envbuild.store import manifest as manifests
from envbuild.store import order as orders
from envbuild.store.layout import Generation, Store
from envbuild.target import Platform, Target
from envbuild.tools import conda_archives, uv
from envbuild.tools.conda_tree import entry_name
from envbuild.tools.files import make_folder
from envbuild.tools.scratch import scratch
from envbuild.tools.uv_question import Source
from envbuild.wheel.model import Read
from envbuild.wheel.readings import Reading

Package = CondaPackage | PipPackage


@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """Where binaries are looked for.

    Attributes:
        generation: The environment's current generation, or None.
        store: The store whose caches are looked into.
        target: What wheels are for.
        python: Full version of Python that wheels are for.
        sources: The recipe's indexes.
        access: How they are reached.
        fetch: Whether what is nowhere is fetched, by hash.
    """

    generation: Generation | None
    store: Store
    target: Target
    python: str
    sources: Sequence[Source]
    access: Access
    fetch: bool = False


def readings(
    half: PlatformLock, units: Collection[str], where: Where, tables: Facts, progress: Progress
) -> tuple[Reading, ...]:
    """Return every package of a lock with what is known of its binaries.

    Of wheels all are read that can be without looking into a cache; the rest, and conda's packages,
    only where they are one of `units`, or require one.

    Args:
        half: The lock's packages of one platform, markers applied.
        units: Names of the wheels that may be rebuilt.
        where: Where to look.
        tables: The tables of facts.
        progress: Is told what is read.

    Raises:
        EnvbuildError: Something has to be fetched and cannot be.
    """
    packages: list[Package] = [*half.conda, *half.pip]
    plain = [recorded(package, tables, half.platform) for package in packages]
    absent = _absent(half, where)
    plain = [replace(one, absent=one.package in absent) for one in plain]
    wanted = [one for one in plain if _matters(one, units, plain)]
    known: dict[Package, tuple[NativeFacts, Read]] = {}
    if where.generation is not None:
        progress.step("reading the binaries of the current generation")
        from_pip = [one.package for one in plain if one.half == "pypi"]
        asked = {one.package for one in wanted} | {*from_pip}
        known.update((one, (facts, "generation")) for one, facts in _installed(where, asked))
    for one in wanted:
        package = one.package
        if package not in known and (facts := _cached(package, where)) is not None:
            known[package] = (facts, "cache")
    if where.fetch:
        every = dict.fromkeys((*(one.package for one in wanted), *half.pip))
        missing = [one for one in every if one not in known and one not in absent]
        _fetch(missing, where, progress)
        for package in missing:
            if (facts := _cached(package, where)) is not None:
                known[package] = (facts, "fetched")
    return tuple(
        replace(one, facts=found[0], read=found[1]) if (found := known.get(one.package)) else one
        for one in plain
    )


def _absent(half: PlatformLock, where: Where) -> set[PipPackage]:
    """Return the rebuilt wheels that are in no wheelhouse: not in ours, and none is served."""
    house = House(where.store.wheelhouse)
    served = any(one.name == WHEELHOUSE and one.url != house.address for one in where.sources)
    if served:
        return set()
    there = {kept.sha256 for kept in house.wheels()}
    rebuilt = (one for one in half.pip if one.index == WHEELHOUSE)
    return {one for one in rebuilt if not there.intersection(one.hashes)}


def recorded(package: Package, tables: Facts, platform: Platform) -> Reading:
    """Return a package with what the tables say of its build, its files unread.

    Args:
        package: The package.
        tables: The tables of facts.
        platform: conda subdir.
    """
    own = distribution(package) if isinstance(package, CondaPackage) else package.name
    found = Reading(package=package, distribution=own)
    if found.unit != "torch":
        return found
    rows = [row for row in tables.builds if (row.framework, row.platform) == ("pytorch", platform)]
    return replace(found, row=next((row for row in rows if _is_of(row, package)), None))


def _is_of(row: FrameworkBuild, package: Package) -> bool:
    """Say whether a row is of a package: of the default index, a variant, or a conda build."""
    if isinstance(package, PipPackage):
        version, _, local = package.version.partition("+")
        origin = local or ("pypi" if package.index is None else "")
        return (row.version, row.origin, row.build_string) == (version, origin, None)
    channel = package.channel_url.rpartition("/")[2]
    here = (row.version, row.origin) == (package.version, channel)
    return here and row.build_string is not None and fnmatchcase(package.build, row.build_string)


def _matters(one: Reading, units: Collection[str], every: Sequence[Reading]) -> bool:
    """Say whether a package may be rebuilt, or link one that may be."""
    if one.unit in units:
        return True
    others = (other for other in every if other.unit in units and other.half == one.half)
    return any(one.needs(other.package.name, other.half, every) for other in others)


def _installed(where: Where, asked: Collection[Package]) -> Iterator[tuple[Package, NativeFacts]]:
    """Yield those packages that the generation has just as they are locked, with their binaries."""
    generation = where.generation
    if generation is None:
        return
    try:
        order = orders.loads(generation.order.read_bytes())
        files = manifests.read_files(generation, manifests.read(generation))
    except (OSError, ValueError, StoreError):
        return  # damaged: `verify` says so, and the caches are asked instead
    packages: list[Package] = [*order.conda, *order.pip]
    there = set(map(_key, packages))
    paths: dict[str, list[str]] = {}
    for row in files.rows:
        if row.package is not None and row.kind != "bytecode":
            paths.setdefault(files.packages[row.package], []).append(row.path)
    for package in asked:
        half = "conda" if isinstance(package, CondaPackage) else "pypi"
        own = paths.get(f"{half}:{package.name}")
        if own is None or _key(package) not in there:
            continue
        with suppress(Unreadable):
            yield (
                package,
                gathered(listed(generation.prefix, own), name=package.name, is_folder=True),
            )


def _key(package: Package) -> tuple[str, ...]:
    """Return what two locks have to have in common for one package to be the same."""
    if isinstance(package, CondaPackage):
        return ("conda", package.filename, package.sha256 or package.md5 or "")
    return ("pypi", package.name, package.version, *sorted(package.hashes))


def _cached(package: Package, where: Where) -> NativeFacts | None:
    """Return what a package's binaries say where a cache has it, else None."""
    if isinstance(package, CondaPackage):
        folder = where.store.package_cache / entry_name(package)
        return inspect(folder) if conda_archives.read_entry(folder) is not None else None
    if not uv.unpacked(where.store.uv_cache).is_dir():
        return None
    try:
        return _wheel(package, where, replace(where.access, offline=True))
    except EnvbuildError:
        return None


def _fetch(packages: Sequence[Package], where: Where, progress: Progress) -> None:
    """Bring packages into the caches, by hash, all at once."""
    conda = [one for one in packages if isinstance(one, CondaPackage)]
    wheels = [one for one in packages if isinstance(one, PipPackage)]
    if packages:
        progress.step(f"fetching {len(packages)} packages")
    if conda:
        conda_archives.fetch(
            conda,
            cache=where.store.package_cache,
            access=where.access,
            progress=progress,
            first_digest=lambda _package, _sha256: None,
        )
    if wheels:
        make_folder(where.store.uv_cache)
        with _linked(wheels, where, where.access):
            pass


def _wheel(package: PipPackage, where: Where, access: Access) -> NativeFacts:
    with _linked([package], where, access) as folder:
        return replace(inspect(folder), name=package.name)


@contextmanager
def _linked(packages: Sequence[PipPackage], where: Where, access: Access) -> Iterator[Path]:
    """Yield a folder with wheels out of uv's cache, which has them or fetches them by hash."""
    with scratch(where.store.uv_cache.parent) as (folder, keep):
        engine = uv.Engine(
            access=access,
            cache=where.store.uv_cache,
            python=Path(sys.executable),
            keep=(keep,),
        )
        uv.prefetch(
            packages,
            engine,
            folder=folder / "wheels",
            target=where.target,
            python_version=where.python,
            sources=where.sources,
        )
        yield folder / "wheels"
