"""`rebuild`: builds what a plan says, proves it, and puts it into the wheelhouse."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.utils import canonicalize_name

from envbuild.errors import Refused, UsageProblem
from envbuild.findings import Finding, Findings, Severity
from envbuild.lock.model import PlatformLock
from envbuild.packages import WHEELHOUSE, PipPackage
from envbuild.pipeline.bench import Bench, Site, engine
from envbuild.rebuild import (
    archive,
    current,
    environment,
    proof,
    provenance,
    trial,
    workshop,
)
from envbuild.rebuild.house import House, Kept
from envbuild.target import Target
from envbuild.tools import locks
from envbuild.tools.files import make_folder, remove_tree, sha256_file
from envbuild.tools.uv_question import Source
from envbuild.wheel.model import Plan, Rebuild, Sdist

_PATIENCE_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """How rebuilds are wanted.

    Attributes:
        packages: Names of those that are rebuilt; empty for all that the plan says.
        again: Whether what is in the wheelhouse already is built once more.
        verify: Whether each is built twice, in different folders, and both are compared.
        archs: Compute capabilities in place of the plan's, or None.
        max_jobs: How many compilers at a time the user said, and where; or None.
    """

    packages: tuple[str, ...] = ()
    again: bool = False
    verify: bool = False
    archs: tuple[str, ...] | None = None
    max_jobs: tuple[int, str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One rebuild that was done, or was not needed.

    Attributes:
        rebuild: What was asked for.
        kept: The wheel in the wheelhouse.
        made: Whether it was built now.
        identical: Whether a second build gave the same bytes; None where none was asked for.
        findings: What is to be said.
    """

    rebuild: Rebuild
    kept: Kept
    made: bool
    identical: bool | None = None
    findings: Findings = ()


def chosen(plan: Plan, wish: Wish) -> tuple[tuple[Rebuild, ...], Findings]:
    """Return what of a plan is rebuilt, in its order, and what is to be said about it.

    Raises:
        UsageProblem: A package that is named is not rebuilt by the plan.
    """
    asked = {canonicalize_name(name) for name in wish.packages}
    known = {rebuild.name for rebuild in plan.rebuilds}
    if unknown := sorted(asked - known):
        message = f"the plan of {plan.name} does not rebuild {', '.join(unknown)}"
        raise UsageProblem(message, hint=f"envbuild wheel plan {plan.name}")
    found = [one for one in plan.rebuilds if not asked or one.name in asked]
    if wish.archs is None:
        return tuple(found), ()
    said = [finding for one in found for finding in _left_out(one, wish.archs)]
    archs = wish.archs
    return tuple(
        replace(one, cuda_archs=archs) if one.toolchain.cuda else one for one in found
    ), tuple(said)


def _left_out(rebuild: Rebuild, archs: Sequence[str]) -> Iterator[Finding]:
    missing = [arch for arch in rebuild.cuda_archs if arch not in archs]
    if missing and rebuild.toolchain.cuda:
        yield Finding(
            code="gpu-code-replaced",
            severity=Severity.WARNING,
            where=rebuild.name,
            what=f"built for {', '.join(archs)}, and {', '.join(missing)} of the recipe is missing",
            why="the option replaces what the recipe asks for",
            hint="change build.cuda_archs of the recipe instead",
        )


def rebuild(rebuilds: Sequence[Rebuild], site: Site, wish: Wish) -> Iterator[Outcome]:
    """Build, one after the other, what is not in the wheelhouse; yields each as it is done.

    Compilers are found and sources are fetched for all of them before the first is built.

    Raises:
        ToolMissing: A compiler is missing; nothing was built.
        FetchError: Sources, or something that a build requires, cannot be had.
        NoSolution: What a build requires does not go with the lock.
        ToolFailed: A build failed, or gave something else than was asked for.
        Refused: Two builds differ.
        StoreError: There is too little disk, or the store cannot be written.
    """
    house = House(site.store.wheelhouse)
    half = site.half
    rebuilds = [_of_official(one, half) for one in rebuilds]
    bench = Bench(site)
    for one in rebuilds:
        if wish.again or _known(one, half, house, site) is None:
            bench.prepare(one)
    for one in rebuilds:
        known = None if wish.again else _known(one, half, house, site)
        if known is not None:
            outcome = Outcome(rebuild=one, kept=known, made=False)
        else:
            bench.prepare(one)  # also where what it is built against was rebuilt just now
            outcome = _one(one, bench, half, house, site, wish)
        half = with_rebuilt(half, outcome.kept, replaces=one.replaces)
        yield outcome


def _known(one: Rebuild, half: PlatformLock, house: House, site: Site) -> Kept | None:
    return current.current(house, one, _locked(half), python=site.python_version)


def with_rebuilt(half: PlatformLock, kept: Kept, *, replaces: Sequence[str] = ()) -> PlatformLock:
    """Return a lock's half with a rebuilt wheel in the place of the package.

    Args:
        half: The half, markers applied.
        kept: The wheel.
        replaces: The conda packages whose place it takes, as a plan names them.
    """
    version, hashes = str(kept.version), (kept.sha256,)
    gone = {label.partition(" ")[0] for label in replaces}
    own = PipPackage(name=kept.name, version=version, hashes=hashes, index=WHEELHOUSE)
    pip = [one for one in half.pip if one.name != kept.name]
    return replace(
        half,
        conda=tuple(one for one in half.conda if one.name not in gone),
        pip=tuple(sorted([*pip, own], key=lambda one: one.name)),
    )


def _of_official(one: Rebuild, half: PlatformLock) -> Rebuild:
    """Return a rebuild of the official version, where the lock has a rebuilt one already."""
    rebuilt = any(each.name == one.name and each.index == WHEELHOUSE for each in half.pip)
    if not rebuilt:
        return one
    version = archive.official(one.version)
    source = one.source
    if isinstance(source, Sdist):
        source = replace(source, version=version, index=None)
    return replace(one, version=version, source=source)


def _locked(half: PlatformLock) -> dict[str, str]:
    from envbuild.solve.names import provided

    found = {str(name): str(one.version) for name, one in provided(half.conda).items()}
    return found | {one.name: one.version for one in half.pip}


def _one(
    one: Rebuild, bench: Bench, half: PlatformLock, house: House, site: Site, wish: Wish
) -> Outcome:
    """Build one wheel, prove it, try it, and put it into the wheelhouse."""
    shop = _shop(site, half, bench.prefix, house, wish)
    tools, fetched = bench.tools[one.name], bench.fetched[one.name]
    make_folder(shop.builds)
    lock = shop.builds / f"{one.name}.lock"
    with locks.exclusive(
        lock, timeout_s=_PATIENCE_S, purpose="wheel rebuild", told=site.progress.step
    ):
        made = workshop.make(one, fetched, tools, shop)
        identical = None
        if wish.verify:
            identical = True
            _compare(one, made, workshop.make(one, fetched, tools, shop, afresh=True))
        there = house.root / one.name / made.wheel.name
        if there.exists() and sha256_file(there) != made.sha256:
            made = workshop.tagged(made, house.next_build(made.wheel.name))
        site.progress.step(f"{one.name} {one.version}: reading what was built")
        proof.prove(made.wheel, one, tools.compiler, glibc=site.target.glibc)
        statement = provenance.state(one, made.facts, wheel=made.wheel.name, sha256=made.sha256)
        site.progress.step(f"{one.name} {one.version}: importing it in a fresh environment")
        said = trial.imports(made.wheel, statement, made.log, shop.around, shop.engine)
        kept = house.put(made.wheel, statement, made.log)
        remove_tree(made.folder)
        remove_tree(made.folder.with_name(f"{made.folder.name}-again"))
    return Outcome(rebuild=one, kept=kept, made=True, identical=identical, findings=said)


def _compare(one: Rebuild, made: workshop.Made, other: workshop.Made) -> None:
    """Refuse a wheel of which a second build gave other bytes.

    Raises:
        Refused: It did; names what differs.
    """
    differing = archive.differences(made.wheel, other.wheel)
    if differing:
        message = f"{one.name} {one.version}: two builds differ in {len(differing)} files"
        hint = f"both are kept: {made.folder} and {other.folder}"
        raise Refused(message, hint=hint, details="\n".join(differing))


def _shop(
    site: Site, half: PlatformLock, prefix: Path | None, house: House, wish: Wish
) -> workshop.Workshop:
    python = site.python if prefix is None else prefix / "bin/python"
    own = Source(
        name=WHEELHOUSE,
        url=house.address,
        packages=frozenset(one.name for one in half.pip if one.index == WHEELHOUSE),
        cutoff="none",
    )
    here = Path(sys.executable) if python is None else python
    return workshop.Workshop(
        around=environment.Around(
            python=here,
            python_version=site.python_version,
            target=Target(platform=site.target.platform, glibc=site.glibc),
            conda=half.conda,
            pip=half.pip,
            sources=(*site.indexes, *([own] if own.packages else [])),
            cutoff=site.cutoff,
        ),
        engine=engine(site, here),
        prefix=prefix,
        builds=site.store.rebuild_cache / "builds",
        caches=site.store.rebuild_cache / "ccache",
        glibc=site.target.glibc,
        max_jobs=wish.max_jobs,
        now=site.now,
        progress=site.progress,
    )
