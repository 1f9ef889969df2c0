"""The conda engine as functions of ours; py-rattler itself runs in a worker process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from envbuild.access import Access
from envbuild.errors import StoreError, ToolFailed
from envbuild.packages import CondaPackage
from envbuild.target import MACHINES, Platform, Target
from envbuild.tools import addresses, conda_before, conda_prefix
from envbuild.tools.conda_specs import merge_depends
from envbuild.tools.conda_tree import entry_name
from envbuild.tools.files import make_folder
from envbuild.tools.network_watch import NetworkWatch
from envbuild.tools.rattler_errors import one_line, solve_error
from envbuild.tools.rattler_process import work
from envbuild.tools.run import Runner, Stalled, run
from envbuild.tools.scratch import scratch

KERNEL = "4.18"
"""`__linux` of every target: the kernel of the oldest distributions with glibc 2.28."""

_SOLVE_TIMEOUT_S = 3600.0
_LINK_TIMEOUT_S = 3600.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class SolveRequest:
    """One solve for one platform.

    Attributes:
        target: What the environment must run on; the virtual packages come from it alone.
        channels: Names or addresses in priority order, without logins.
        specs: Match specs that are asked for.
        constraints: Match specs that hold for a package only if it is installed.
        cutoff: A record counts if its upload time is strictly before it (an instant).
        prefer: Records to keep where nothing speaks against it.
    """

    target: Target
    channels: tuple[str, ...]
    specs: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    cutoff: datetime
    prefer: tuple[CondaPackage, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Solved:
    """What one solve gave.

    Attributes:
        packages: Records sorted by name.
        undated: Addresses of records that were left out because they have no upload time, and
            could have been taken otherwise; sorted.
    """

    packages: tuple[CondaPackage, ...]
    undated: tuple[str, ...]


def virtual_packages(target: Target) -> tuple[tuple[str, str, str], ...]:
    """Return name, version and build of what the target offers without a package."""
    virtual = [
        ("__unix", "0", "0"),
        ("__linux", KERNEL, "0"),
        ("__glibc", target.glibc, "0"),
        ("__archspec", "1", target.archspec or MACHINES[target.platform]),
    ]
    if target.cuda is not None:
        virtual.append(("__cuda", target.cuda, "0"))
    return tuple(virtual)


def last_millisecond(cutoff: datetime) -> int:
    """Return the last millisecond (since 1970) strictly before the cutoff.

    conda's upload times are whole milliseconds and the engine's own cutoff is inclusive.
    """
    passed = cutoff.astimezone(UTC) - _EPOCH
    return -(-passed // _MILLISECOND) - 1 if passed % _MILLISECOND else passed // _MILLISECOND - 1


def solve(
    requests: Sequence[SolveRequest], *, access: Access, cache: Path, runner: Runner = run
) -> tuple[Solved, ...]:
    """Solve every request, all in one worker process, and return the answers in their order.

    Args:
        requests: One per platform.
        access: How channels are reached; mirrors show in no answer.
        cache: The store's cache folder; the channels' indexes are kept below it.
        runner: How the worker is started.

    Raises:
        NoSolution: The specs cannot be met; `details` is the solver's reason.
        FetchError: A channel, or one of its subdirs, cannot be read.
        RecipeError: A spec is none.
        ToolFailed: The engine broke.
    """
    repodata = cache / "repodata"
    make_folder(repodata)
    places = addresses.mirrors(access)
    answer = _solved(
        {
            "do": "solve",
            "cache": str(repodata),
            "offline": access.offline,
            "retries": access.retries,
            "mirrors": {name: list(urls) for name, urls in places.places.items()},
            "logins": [
                [login.address, login.header]
                for login in (*places.logins, *addresses.file_logins(access))
            ],
            "questions": [_question(request) for request in requests],
        },
        access=access,
        runner=runner,
    )
    if "error" in answer:
        channels = {name for request in requests for name in request.channels}
        raise solve_error(answer["error"], channels, places)
    hosts = {url for urls in places.places.values() for url in urls}
    return tuple(
        Solved(
            packages=tuple(
                sorted(
                    (_package(record, hosts) for record in solved["records"]),
                    key=lambda package: package.name,
                )
            ),
            undated=tuple(solved["undated"]),
        )
        for solved in answer["solved"]
    )


def _solved(request: Mapping[str, Any], *, access: Access, runner: Runner) -> dict[str, Any]:
    """Return the worker's answer; where its transfers do not go on, ask again, the next mirror.

    The engine gives up a request after a time for the whole of it, never because nothing arrives.
    """
    mirrors = max((len(urls) for urls in request["mirrors"].values()), default=1)
    answer: dict[str, Any] = {}
    for turn in range(max(1 + access.retries, mirrors)):
        watch = None if access.offline else NetworkWatch(access.timeout_s, silence=True)
        try:
            return work(
                {**request, "turn": turn},
                access=access,
                runner=runner,
                timeout_s=_SOLVE_TIMEOUT_S,
                watch=watch,
            )
        except Stalled as error:
            answer = {"error": {"kind": "fetch", "text": error.message}}
    return answer


def canonical(names: Sequence[str], *, access: Access, runner: Runner = run) -> dict[str, str]:
    """Return the canonical address of each channel name, without a slash at its end.

    Raises:
        ToolFailed: The engine broke.
    """
    answer = work(
        {"do": "canonical", "names": list(names)}, access=access, runner=runner, timeout_s=60
    )
    return dict(answer["channels"])


def match(
    pairs: Sequence[tuple[str, CondaPackage]], *, access: Access, runner: Runner = run
) -> tuple[bool, ...]:
    """Return for every pair whether the package is one that the match spec means.

    A spec that cannot be read means none. Nothing is fetched.

    Raises:
        ToolFailed: The engine broke.
    """
    request = {"do": "match", "pairs": [[spec, _identity(package)] for spec, package in pairs]}
    answer = work(request, access=access, runner=runner, timeout_s=_SOLVE_TIMEOUT_S)
    return tuple(answer["matches"])


def _identity(package: CondaPackage) -> dict[str, str]:
    channel = package.channel_url if package.url else ""
    return {
        "name": package.name,
        "version": package.version,
        "build": package.build,
        "channel": channel,
    }


def _question(request: SolveRequest) -> dict[str, Any]:
    return {
        "platform": request.target.platform,
        "channels": list(request.channels),
        "specs": list(request.specs),
        "constraints": list(request.constraints),
        "virtual": virtual_packages(request.target),
        "last_ms": last_millisecond(request.cutoff),
        "prefer": [package.url for package in request.prefer],
    }


def _package(record: Mapping[str, Any], mirrors: set[str]) -> CondaPackage:
    url = addresses.without_login(record["url"])
    if any(url.startswith(mirror + "/") for mirror in mirrors):
        url = f"{record['channel']}/{record['subdir']}/{record['file']}"
    return CondaPackage(
        name=record["name"],
        version=record["version"],
        build=record["build"],
        url=addresses.without_login(url),
        sha256=record["sha256"],
        md5=record["md5"],
        size=record["size"],
        depends=merge_depends(record["depends"]),
    )


def link(
    packages: Sequence[CondaPackage],
    *,
    prefix: Path,
    cache: Path,
    platform: Platform,
    keep: Sequence[int] = (),
    runner: Runner = run,
) -> dict[str, tuple[str, ...]]:
    """Link packages into a new prefix, without network; hard links where the disk can.

    No link script is run. What cannot be linked is found before the first file is written.

    Args:
        packages: Records that `conda_archives.fetch` has put into the cache.
        prefix: The prefix; it goes, absolute and resolved, into the packages' scripts.
        cache: Folder of the package cache, the one given to `fetch`.
        platform: conda subdir of the prefix.
        keep: Descriptors that the worker inherits (the store's lock).
        runner: How the worker is started.

    Returns:
        Package name to its installed files, relative to the prefix; what two packages wanted lies
        in `__clobbers__/PACKAGE` for one of them.

    Raises:
        StoreError: The prefix is too long for a package's placeholder, or not absolute.
        FetchError: A package is not in the cache, or is none that can be installed.
        LockError: A noarch Python package, and no Python.
        Refused: A package has a file where another one has a folder.
        ToolFailed: The engine broke; what lies in the prefix is rubbish.
    """
    if not prefix.is_absolute():
        message = f"{prefix}: a prefix is linked by its absolute path"
        raise StoreError(message)
    real = prefix.resolve()
    folders = {package.url: cache / entry_name(package) for package in packages}
    conda_before.check(packages, folders, real)
    with scratch() as (folder, _):
        view = folder / "pkgs"
        view.mkdir()
        moved = _make_view(view, packages, folders)
        answer = work(
            {
                "do": "link",
                "cache": str(view),
                "prefix": str(real),
                "platform": platform,
                "packages": [_linkable(package, folders[package.url]) for package in packages],
            },
            access=Access(offline=True),
            runner=runner,
            timeout_s=_LINK_TIMEOUT_S,
            keep=keep,
        )
    if "error" in answer:
        text = str(answer["error"]["text"])
        message = f"the conda half cannot be linked: {one_line(text)}"
        raise ToolFailed(message, details=text)
    return conda_prefix.settle(real, moved)


def _make_view(
    view: Path, packages: Sequence[CondaPackage], folders: Mapping[str, Path]
) -> dict[str, str]:
    """Show the engine a cache of its own kind: a link and a lock file per package.

    Its entries are named by name, version and build alone, and it takes an entry only if the lock
    file holds its revision (8 bytes) and the record's SHA-256.
    """
    moved: dict[str, str] = {}
    for package in packages:
        stem = package.filename.removesuffix(".conda").removesuffix(".tar.bz2")
        (view / stem).symlink_to(folders[package.url])
        digest = bytes.fromhex(package.sha256) if package.sha256 else b""
        (view / f"{stem}.lock").write_bytes((1).to_bytes(8, "big") + digest)
        moved[str(view / stem)] = str(folders[package.url])
    return moved


def _linkable(package: CondaPackage, folder: Path) -> dict[str, Any]:
    url = package.url if "://" in package.url else Path(package.url).resolve().as_uri()
    return {
        "name": package.name,
        "version": package.version,
        "build": package.build,
        "subdir": package.subdir,
        "file": package.filename,
        "url": url,
        "channel": url.rsplit("/", 2)[0],
        "sha256": package.sha256,
        "md5": package.md5,
        "size": package.size,
        "depends": list(package.depends),
        "folder": str(folder),
    }
