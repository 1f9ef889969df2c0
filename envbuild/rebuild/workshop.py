"""A rebuild from its sources to a wheel that was proven: prepared, built, repaired, written anew.

The folder of a build is named by everything that decides its result. One that failed stays there
and is gone on with; what another compiler left is never used.
"""

import hashlib
import json
import resource
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from envbuild.packages import PipPackage
from envbuild.progress import Progress
from envbuild.rebuild import (
    archive,
    build,
    environment,
    jobs,
    limits,
    portable,
    provenance,
    sources,
    unpack,
    variables,
)
from envbuild.rebuild.toolchain import Tools
from envbuild.rebuild.variables import PLACE, CompilerCache, Layout
from envbuild.solve.names import provided
from envbuild.target import Target
from envbuild.tools import sandbox, uv
from envbuild.tools.files import make_folder, remove_tree, sha256_file, write_atomic
from envbuild.tools.run import Runner, base_environment, run
from envbuild.wheel.model import Rebuild

_READY = "ready.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Workshop:
    """What rebuilds share.

    Attributes:
        around: What build environments are made of.
        engine: How uv is run.
        prefix: The recipe's conda half, linked; None without one.
        builds: Folder of build folders.
        caches: Folder of compiler caches.
        glibc: The oldest glibc that the recipe is for.
        max_jobs: How many compilers at a time the user said, and where; or None.
        now: The clock (UTC).
        progress: Is told what begins.
        run: Starts programs.
    """

    around: environment.Around
    engine: uv.Engine
    prefix: Path | None
    builds: Path
    caches: Path
    glibc: str
    max_jobs: tuple[int, str] | None
    now: Callable[[], datetime]
    progress: Progress
    run: Runner = run


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """A wheel that was built.

    Attributes:
        wheel: Its file, written anew, in the build's folder.
        sha256: Its digest.
        raw: The file that it was written anew from.
        local: Its local version.
        facts: How it was built.
        log: What its build printed.
        folder: The build's folder.
    """

    wheel: Path
    sha256: str
    raw: Path
    local: str
    facts: provenance.Facts
    log: Path
    folder: Path


@dataclass(kw_only=True)
class _Prepared:
    """A build folder with sources and environment."""

    layout: Layout
    seen: Layout
    sources: Path
    epoch: int
    isolation: str
    packages: tuple[PipPackage, ...] = ()
    requires: tuple[str, ...] = ()
    building: build.Building = field(init=False)


def make(
    rebuild: Rebuild,
    fetched: sources.Fetched,
    tools: Tools,
    shop: Workshop,
    *,
    afresh: bool = False,
) -> Made:
    """Build a wheel.

    Args:
        rebuild: What is built.
        fetched: Its sources.
        tools: Its compilers.
        shop: What rebuilds share.
        afresh: Whether it is built in another new folder, and nothing comes from the compiler
            cache: for comparison.

    Raises:
        NoSolution: What its build requires does not go with the lock.
        ToolFailed: Its build failed.
        StoreError: There is too little disk.
        UsageProblem: MAX_JOBS or a compute capability is none.
    """
    root = shop.builds / _folder_name(rebuild, fetched, tools, shop)
    if afresh:
        root = root.with_name(f"{root.name}-again")
        remove_tree(root)
    make_folder(shop.builds)
    limits.check_disk(rebuild, fetched, shop.builds)
    started = shop.now()
    cache = _compiler_cache(tools, shop, enabled=not afresh)
    prepared = _prepare(rebuild, fetched, tools, shop, root, cache)
    count, by = limits.choose(rebuild, shop.max_jobs)
    wheel, count, by, told = _built(rebuild, tools, shop, prepared, cache, count, by)
    if rebuild.portable:
        target = Target(platform=shop.around.target.platform, glibc=shop.glibc)
        folder = prepared.layout.root / "portable"
        wheel = portable.repaired(
            wheel,
            folder,
            target=target,
            epoch=prepared.epoch,
            runner=shop.run,
            libraries=shop.prefix / "lib" if shop.prefix is not None else None,
        )
    local = archive.label(
        tools.compiler.family, tools.compiler.version, rebuild.cuda_archs, rebuild.abi
    )
    final = prepared.layout.root / "final"
    remove_tree(final)
    make_folder(final)
    new = archive.rewrite(wheel, final, local=local, epoch=prepared.epoch)
    facts = provenance.Facts(
        sources=fetched,
        tools=tools,
        environment=prepared.packages,
        against=_against(prepared, shop.around),
        variables=told,
        python=shop.around.python_version,
        jobs=count,
        jobs_by=by,
        isolation=prepared.isolation,
        epoch=prepared.epoch,
        memory_bytes=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        disk_bytes=limits.disk_bytes(root),
        started=started,
        finished=shop.now(),
    )
    return Made(
        wheel=new,
        sha256=sha256_file(new),
        raw=wheel,
        local=local,
        facts=facts,
        log=prepared.building.log,
        folder=root,
    )


def _folder_name(rebuild: Rebuild, fetched: sources.Fetched, tools: Tools, shop: Workshop) -> str:
    rows = [
        provenance.parameters(rebuild),
        fetched.digest,
        tools.digest,
        f"{shop.around.python}",
        shop.around.python_version,
        [[one.name, one.version, *one.hashes] for one in shop.around.pip],
        [one.url for one in shop.around.conda],
    ]
    key = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
    return f"{rebuild.name}-{rebuild.version}-{key[:16]}"


def _compiler_cache(tools: Tools, shop: Workshop, *, enabled: bool) -> CompilerCache | None:
    """Return the compiler cache of this toolchain alone."""
    if tools.ccache is None:
        return None
    folder = shop.caches.absolute() / tools.digest[:16]
    make_folder(folder)
    return CompilerCache(program=tools.ccache, folder=folder, enabled=enabled)


def _prepare(
    rebuild: Rebuild,
    fetched: sources.Fetched,
    tools: Tools,
    shop: Workshop,
    root: Path,
    cache: CompilerCache | None,
) -> _Prepared:
    """Place sources and make the build environment, unless an earlier try did."""
    layout = Layout(root=root.absolute())
    remembered = _remembered(root / _READY)
    if remembered is None:
        remove_tree(root)
        make_folder(root)
    for folder in (layout.temporary, layout.home, layout.output):
        make_folder(folder)
    seen, isolation = _place(root, shop)
    if remembered is None:
        placed = sources.place(fetched, layout.sources)
        if fetched.crates is not None:
            fetched.crates.place(layout.crates, layout.home, seen=seen.crates)
        epoch = unpack.newest(placed) if fetched.moment is None else fetched.moment
        unpack.set_times(layout.sources, epoch)
    else:
        placed, epoch = Path(remembered["sources"]), int(remembered["epoch"])
    prepared = _Prepared(layout=layout, seen=seen, sources=placed, epoch=epoch, isolation=isolation)
    prepared.building = build.Building(
        folder=layout,
        seen=seen,
        sources=placed,
        backend=build.backend(placed),
        log=layout.root / "build.log",
        what=f"{rebuild.name} {rebuild.version}",
        progress=shop.progress,
        run=shop.run,
    )
    if remembered is not None:
        prepared.packages = msgspec.convert(remembered["packages"], tuple[PipPackage, ...])
        prepared.requires = tuple(remembered["requires"])
        return prepared
    _make_environment(rebuild, tools, shop, prepared, cache)
    rows = {
        "sources": f"{placed}",
        "epoch": epoch,
        "packages": msgspec.to_builtins(prepared.packages),
        "requires": prepared.requires,
    }
    write_atomic(root / _READY, json.dumps(rows))
    return prepared


def _remembered(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _place(root: Path, shop: Workshop) -> tuple[Layout, str]:
    """Return where the build sees its folder, and how it is kept apart."""
    make_folder(PLACE)
    refused = sandbox.refusal(root.absolute(), PLACE, runner=shop.run)
    if refused is None:
        return Layout(root=PLACE), "namespaces"
    shop.progress.step(f"building without a sandbox, with a network: {refused}")
    return Layout(root=root.absolute()), f"none: {refused}"


def _make_environment(
    rebuild: Rebuild,
    tools: Tools,
    shop: Workshop,
    prepared: _Prepared,
    cache: CompilerCache | None,
) -> None:
    """Install what the backend requires, then what it requires after it saw the sources."""
    requires = prepared.building.backend.requires
    shop.progress.step(f"{rebuild.name}: making the build environment")
    prepared.packages = environment.solve(requires, shop.around, shop.engine)
    folder = prepared.layout.environment
    environment.make(folder, prepared.packages, shop.around, shop.engine)
    told = _variables(rebuild, tools, shop, prepared, cache, count=1)
    _write_scripts(tools, shop, prepared, cache, count=1)
    more = prepared.building.requires(told)
    if more:
        prepared.packages = environment.solve((*requires, *more), shop.around, shop.engine)
        environment.make(folder, prepared.packages, shop.around, shop.engine)
    prepared.requires = (*requires, *more)


def _variables(
    rebuild: Rebuild,
    tools: Tools,
    shop: Workshop,
    prepared: _Prepared,
    cache: CompilerCache | None,
    *,
    count: int,
) -> dict[str, str]:
    return variables.variables(
        rebuild,
        tools,
        prepared.seen,
        jobs=count,
        epoch=prepared.epoch,
        prefix=shop.prefix,
        cache=cache,
    )


def _write_scripts(
    tools: Tools, shop: Workshop, prepared: _Prepared, cache: CompilerCache | None, *, count: int
) -> None:
    path = [prepared.layout.environment / "bin"]
    path += [shop.prefix / "bin"] if shop.prefix is not None else []
    search = ":".join([*map(str, path), base_environment()["PATH"]])
    ninja = shutil.which("ninja", path=search)
    if ninja is not None:
        ninja = ninja.replace(f"{prepared.layout.root}", f"{prepared.seen.root}")
    variables.write_scripts(
        prepared.layout,
        prepared.seen,
        tools,
        jobs=count,
        ninja=Path(ninja) if ninja else None,
        cache=cache,
    )


def _built(
    rebuild: Rebuild,
    tools: Tools,
    shop: Workshop,
    prepared: _Prepared,
    cache: CompilerCache | None,
    count: int,
    by: str,
) -> tuple[Path, int, str, Mapping[str, str]]:
    """Build; where memory did not do, go on with fewer jobs, unless the user said how many."""
    while True:
        told = _variables(rebuild, tools, shop, prepared, cache, count=count)
        _write_scripts(tools, shop, prepared, cache, count=count)
        jobs_text = f"{count} job" if count == 1 else f"{count} jobs"
        shop.progress.step(f"{rebuild.name} {rebuild.version}: building with {jobs_text}")
        try:
            return prepared.building.wheel(told), count, by, told
        except build.OutOfMemory as error:
            less = jobs.fewer(count)
            error.message += f" for {jobs_text}"
            if less == count or shop.max_jobs is not None:
                error.hint = (
                    f"set MAX_JOBS={less}" if less < count else "take a machine with more memory"
                )
                raise
            shop.progress.step(f"{error.message}; going on with {less}")
            count, by = less, "memory that did not do for more"


def _against(prepared: _Prepared, around: environment.Around) -> dict[str, str]:
    """Return name and version of what the lock has in the build environment."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    locked = {(one.name, one.version) for one in around.pip}
    found = {
        one.name: one.version for one in prepared.packages if (one.name, one.version) in locked
    }
    conda = provided(around.conda)
    for line in prepared.requires:
        name = canonicalize_name(Requirement(line).name)
        if name in conda:
            found[name] = str(conda[name].version)
    return found


def tagged(made: Made, build_tag: int) -> Made:
    """Return a wheel written anew with a build tag, which tells it from one of its name."""
    epoch = made.facts.epoch
    new = archive.rewrite(
        made.raw, made.wheel.parent, local=made.local, epoch=epoch, build=build_tag
    )
    return replace(made, wheel=new, sha256=sha256_file(new))
