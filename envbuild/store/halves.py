"""Both halves of a lock: fetched at once, then linked one after the other."""

import contextlib
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.errors import Refused
from envbuild.packages import WHEELHOUSE, CondaPackage
from envbuild.store import disk, link_scripts
from envbuild.store.arrivals import Known
from envbuild.store.installed import Owner
from envbuild.store.unpacked import Contradictions, contradictions
from envbuild.target import Target
from envbuild.tools import uv
from envbuild.tools.aside import Aside
from envbuild.tools.endable import Endable
from envbuild.tools.files import make_folder, remove_tree
from envbuild.tools.scratch import scratch
from envbuild.tools.uv_question import Source, index_address

if TYPE_CHECKING:
    from envbuild.store.build import Build
    from envbuild.tools.conda_archives import Fetched

_DIST_INFO = re.compile(r"(?P<name>[^/]+?)-[^/-]+\.(?:dist|egg)-info")


def normalized(name: str) -> str:
    """Return a distribution's name as PEP 503 normalizes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def archive_key(package: CondaPackage) -> str:
    """Return what the ledger knows an archive by that has only an md5."""
    return f"{package.url}#{package.md5}"


@contextlib.contextmanager
def fetched(
    work: "Build", contents: MutableMapping[Known, str]
) -> "Iterator[tuple[tuple[Fetched, ...], Contradictions]]":
    """Fetch both halves at once and check every archive; nothing is linked yet.

    Wheels that were not installed together before are held against their own RECORD, where uv's
    cache can be written: one that cannot was filled, and looked at, by others.

    The folder into which uv links what it fetches is removed while the caller goes on. Where
    something else fails, uv is ended.

    Args:
        work: What is built.
        contents: Files that were hashed on their way here; others that are hashed are added.

    Yields:
        conda's packages, extracted, and where wheels contradict their RECORD.

    Raises:
        FetchError: An archive is out of reach or has another hash.
        HostError: The machine's interpreter cannot be packed.
        ToolError: uv or patchelf failed.
        StoreError: There is no room.
    """
    has_wheels = work.ledger.has_wheels(_wheels_key(work))
    if not work.order.pip or has_wheels or not disk.can_write(work.store.uv_cache):
        yield _fetch_conda(work), Contradictions()
        return
    make_folder(work.store.cache)
    with scratch(work.store.cache) as (folder, descriptor):
        runner = Endable()
        engine = _engine(work, Path(sys.executable))
        engine = replace(engine, run=runner, keep=(*work.keep, descriptor))
        wheels = Aside(lambda: _prefetch(work, folder / "wheels", engine))
        removal = Aside(lambda: remove_tree(folder / "wheels"))
        try:
            wheels.start()
            conda = _fetch_conda(work)
            wheels.result()
            work.progress.step(
                f"checking {len(work.order.pip)} wheels against their lists of files"
            )
            found = contradictions(
                folder / "wheels",
                uv.unpacked(work.store.uv_cache),
                contents=contents,
                python_version=work.python_version or "",
            )
            removal.start()
            yield conda, found
        finally:
            runner.end()
            wheels.end()
            removal.end()


def _fetch_conda(work: "Build") -> "tuple[Fetched, ...]":
    packages = list(work.order.conda)
    if work.host_python is not None:
        from envbuild.channel import host

        work.progress.step(f"packing {work.host_python.path}")
        record, archive = host.pack(
            work.host_python, work.store.cache / "host" / work.order.platform
        )
        packages.append(replace(record, url=archive.as_uri()))
    if not packages:
        return ()
    from envbuild.tools import conda_archives

    work.progress.step(f"fetching {len(packages)} conda packages")
    return conda_archives.fetch(
        packages,
        cache=work.store.package_cache,
        access=work.access,
        progress=work.progress,
        first_digest=lambda package, sha256: work.ledger.first_digest(
            archive_key(package), sha256, when=work.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        ),
        patience_s=work.patience_s,
    )


def _prefetch(work: "Build", folder: Path, engine: uv.Engine) -> None:
    work.progress.step(f"fetching {len(work.order.pip)} wheels")
    make_folder(work.store.uv_cache)
    uv.prefetch(
        work.order.pip,
        engine,
        folder=folder,
        target=Target(platform=work.order.platform, glibc=work.order.glibc),
        python_version=work.python_version or "",
        sources=_sources(work),
    )


def link(work: "Build", fetched: "Sequence[Fetched]") -> link_scripts.Ran:
    """Link conda's half, run the link scripts that the order names, and install wheels.

    Returns:
        What the link scripts did.

    Raises:
        EnvbuildError: One of them cannot be, as each says.
    """
    make_folder(work.generation.own, inherits=False)
    disk.refuse(work.store, work.generation.own, fetched)
    link_conda(work, fetched)
    ran = link_scripts.run(
        work.prefix,
        [one.package for one in fetched],
        allowed=work.order.link_scripts,
        log=work.log,
        keep=work.keep,
    )
    refuse_twice(work)
    install_pip(work)
    return ran


def link_conda(work: "Build", fetched: "Sequence[Fetched]") -> None:
    """Link the conda half into the prefix.

    Raises:
        EnvbuildError: It cannot be linked, as `rattler.link` says; then nothing was.
    """
    if not fetched:
        return
    from envbuild.tools import conda_before, rattler

    work.progress.step(f"linking {len(fetched)} conda packages")
    try:
        rattler.link(
            [one.package for one in fetched],
            prefix=work.prefix,
            cache=work.store.package_cache,
            platform=work.order.platform,
            keep=work.keep,
        )
    except conda_before.PrefixTooLong as error:
        root = len(os.fsencode(work.store.root))
        longest = error.room - (len(os.fsencode(work.prefix)) - root)
        if longest > 1:
            error.hint = f"use a --store whose path has at most {longest} bytes (now {root})"
        else:
            error.hint = "no path of a store is short enough: leave that package out"
        raise


def refuse_twice(work: "Build") -> None:
    """Refuse a distribution that both halves bring: uv would remove conda's files of it.

    Raises:
        Refused: There is one.
    """
    asked = {package.name for package in work.order.pip}
    for site in sorted(work.prefix.glob("lib/python3*/site-packages")):
        names = (_DIST_INFO.fullmatch(entry.name) for entry in site.iterdir())
        found = sorted(asked & {normalized(name["name"]) for name in names if name})
        if found:
            message = f"both halves bring {', '.join(found)} [in-both-halves]"
            hint = f"take it from one side only, then: envbuild lock {work.order.name}"
            raise Refused(message, hint=hint)


def install_pip(work: "Build") -> None:
    """Install the PyPI half into the prefix, from the cache where it is there.

    Raises:
        FetchError: A wheel is out of reach or has another hash.
        ToolFailed: uv failed.
    """
    if work.order.pip:
        work.progress.step(f"linking {len(work.order.pip)} wheels")
        make_folder(work.store.uv_cache)
        python = work.prefix / "bin/python"
        uv.install(work.order.pip, _engine(work, python), sources=_sources(work))


def note_accepted(work: "Build") -> None:
    """Remember that the PyPI half is in the cache, and that nothing in it was refused."""
    if work.order.pip:
        work.ledger.note_wheels(_wheels_key(work))


def install_again(work: "Build", names: Sequence[str]) -> None:
    """Install wheels of the PyPI half once more, one after the other.

    Raises:
        FetchError: The cache was changed meanwhile, and a wheel is out of reach.
        ToolFailed: uv failed.
    """
    python = work.prefix / "bin/python"
    by_name = {package.name: package for package in work.order.pip}
    for name in names:
        engine, sources = _engine(work, python), _sources(work)
        uv.install([by_name[normalized(name)]], engine, sources=sources, again=True)


def evict(work: "Build", conda: Sequence[CondaPackage], owners: Sequence[Owner]) -> None:
    """Remove packages from the caches whose files there are not what they should be.

    Raises:
        ToolFailed: uv cannot remove its own.
    """
    work.ledger.forget([owner.package for owner in owners])
    spoiled = {owner.name for owner in owners if owner.is_conda}
    for package in conda:
        if package.name in spoiled:
            from envbuild.tools import conda_archives

            conda_archives.evict(
                package, cache=work.store.package_cache, patience_s=work.patience_s
            )
    if wheels := sorted({owner.name for owner in owners if not owner.is_conda}):
        uv.evict(wheels, _engine(work, Path(sys.executable)))


def _engine(work: "Build", python: Path) -> uv.Engine:
    cache = work.store.uv_cache
    return uv.Engine(
        access=work.access,
        cache=cache if disk.can_write(cache) else disk.linked_cache(work.store),
        python=python,
        log=work.log,
        keep=work.keep,
    )


def _sources(work: "Build") -> tuple[Source, ...]:
    return (
        Source(name=None, url=work.access.default_index),
        *(
            Source(
                name=index.name,
                url=index_address(index.name, index.url, work.access),
                packages=frozenset(map(normalized, index.packages)),
            )
            for index in work.order.indexes
        ),
        *_wheelhouse(work),
    )


def _wheelhouse(work: "Build") -> Iterator[Source]:
    """Yield the wheelhouse where something comes from there.

    Raises:
        FetchError: It is this store's own, and lacks a wheel.
    """
    rebuilt = [package for package in work.order.pip if package.index == WHEELHOUSE]
    if rebuilt:
        from envbuild.rebuild import house

        named = work.access.index_logins.get(WHEELHOUSE)
        if named is None:
            house.check_has(work.store.wheelhouse, rebuilt, name=work.order.name)
        yield Source(name=WHEELHOUSE, url=named or work.store.wheelhouse.absolute().as_uri())


def _wheels_key(work: "Build") -> str:
    rows = [[package.name, package.version, *package.hashes] for package in work.order.pip]
    text = json.dumps([work.python_version, work.order.platform, rows])
    return hashlib.sha256(text.encode()).hexdigest()
