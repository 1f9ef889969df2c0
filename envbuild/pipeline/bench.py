"""What rebuilds have ready before the first one: compilers, sources, and where they happen."""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from envbuild.access import Access
from envbuild.compat.model import Facts
from envbuild.errors import FetchError, ToolMissing
from envbuild.lock.model import PlatformLock
from envbuild.packages import CondaPackage
from envbuild.progress import Progress
from envbuild.rebuild import build, crates, rust, sources, toolchain
from envbuild.store.layout import Store
from envbuild.target import Target
from envbuild.tools import locks, uv
from envbuild.tools.files import make_folder, remove_tree
from envbuild.tools.http import Session
from envbuild.tools.scratch import scratch
from envbuild.tools.uv_question import Source
from envbuild.wheel.model import Rebuild

_PATIENCE_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """Where rebuilds happen.

    Attributes:
        store: The store.
        access: How indexes and channels are reached.
        half: The lock's packages for this machine, markers applied.
        indexes: The recipe's indexes.
        cutoff: The lock's instant (UTC).
        target: The platform, and the oldest glibc that the recipe is for.
        glibc: This machine's.
        python: The machine's interpreter for recipes on the host's, None with conda's.
        python_version: Full version of the lock's Python.
        search: The user's PATH.
        own: Variables of the user that git and cargo need to reach sources.
        facts: The tables.
        now: The clock (UTC).
        progress: Is told what begins.
    """

    store: Store
    access: Access
    half: PlatformLock
    indexes: Sequence[Source]
    cutoff: datetime
    target: Target
    glibc: str
    python: Path | None
    python_version: str
    search: str
    own: Mapping[str, str]
    facts: Facts
    now: Callable[[], datetime]
    progress: Progress


class Bench:
    """Compilers and sources of what is rebuilt, found and fetched once."""

    def __init__(self, site: Site) -> None:
        """Have nothing yet."""
        self._site = site
        self.prefix: Path | None = None
        self.tools: dict[str, toolchain.Tools] = {}
        self.fetched: dict[str, sources.Fetched] = {}

    def prepare(self, one: Rebuild) -> None:
        """Find the compilers of a rebuild and fetch its sources."""
        if one.name in self.fetched:
            return
        site = self._site
        self.prefix = self.prefix or _prefix(site)
        tools = toolchain.find(
            one.toolchain,
            prefix=self.prefix,
            platform=site.target.platform,
            search=site.search,
            facts=site.facts,
        )
        how = _fetching(site)
        fetched = _fetch(one, how)
        self.tools[one.name], self.fetched[one.name] = self._with_rust(one, tools, fetched, how)

    def _with_rust(
        self,
        one: Rebuild,
        tools: toolchain.Tools,
        fetched: sources.Fetched,
        how: sources.Fetching,
    ) -> tuple[toolchain.Tools, sources.Fetched]:
        """Find Rust and fetch crates, where the sources' build says that it needs them."""
        make_folder(how.cache)
        with scratch(how.cache) as (folder, _):
            placed = fetched.path
            if not placed.is_dir():
                placed = sources.place(fetched, folder / "sources")
            if not rust.needed(build.backend(placed).requires):
                return tools, fetched
            search = self._site.search
            try:
                found = rust.find(prefix=self.prefix, search=search, own=how.own, runner=how.run)
            except ToolMissing as error:
                error.message = f"{one.name} {one.version}: {error.message}"
                raise
            needed = crates.fetch(
                placed,
                fetched.digest,
                found,
                cache=how.cache,
                offline=how.offline,
                own=how.own,
                progress=how.progress,
                runner=how.run,
            )
        return replace(tools, rust=found), replace(fetched, crates=needed)


def _fetch(one: Rebuild, how: sources.Fetching) -> sources.Fetched:
    if one.source is None:
        message = f"{one.name} {one.version} has no sdist, and the recipe names no sources of it"
        hint = f"name `git` with a commit, or an `archive`, under build.packages.{one.name}"
        raise FetchError(message, hint=hint)
    return sources.fetch(one.source, how)


def _fetching(site: Site) -> sources.Fetching:
    addresses: dict[str | None, str] = {
        source.name: source.url for source in site.indexes if source.url is not None
    }
    if None not in addresses:
        addresses[None] = uv.default_index(engine(site, Path(sys.executable)))
    return sources.Fetching(
        cache=site.store.rebuild_cache / "sources",
        session=Session(site.access),
        indexes=addresses,
        offline=site.access.offline,
        own=site.own,
        progress=site.progress,
    )


def engine(site: Site, python: Path) -> uv.Engine:
    """Return how uv is run with an interpreter."""
    make_folder(site.store.uv_cache)
    return uv.Engine(access=site.access, cache=site.store.uv_cache, python=python)


def _prefix(site: Site) -> Path | None:
    """Return the lock's conda half, linked: its Python, its compilers, what wheels link with."""
    packages = site.half.conda
    if not packages:
        return None
    from envbuild.tools import conda_archives, rattler

    rows = json.dumps([[one.url, one.sha256, one.md5] for one in packages])
    key = hashlib.sha256(rows.encode()).hexdigest()[:32]
    folder = site.store.resolved().rebuild_cache / "prefixes" / key
    made = folder.with_name(f"{key}.json")
    with locks.exclusive(
        folder.with_name(f"{key}.lock"), timeout_s=_PATIENCE_S, purpose="wheel rebuild"
    ):
        if made.exists():
            return folder
        remove_tree(folder)
        fetched = conda_archives.fetch(
            packages,
            cache=site.store.package_cache,
            access=site.access,
            progress=site.progress,
            first_digest=_nothing_known,
        )
        site.progress.step(f"linking {len(fetched)} conda packages for the builds")
        rattler.link(
            [one.package for one in fetched],
            prefix=folder,
            cache=site.store.package_cache,
            platform=site.target.platform,
        )
        made.write_text(f"{rows}\n", encoding="utf-8")
    return folder


def _nothing_known(_: CondaPackage, __: str) -> None:
    pass
