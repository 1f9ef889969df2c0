"""The conda engine as functions of ours; py-rattler itself runs in a worker process."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from envbuild.access import Access
from envbuild.errors import FetchError, NoSolution, RecipeError, ToolFailed
from envbuild.packages import CondaPackage
from envbuild.target import MACHINES, Target
from envbuild.tools import addresses
from envbuild.tools.files import make_folder
from envbuild.tools.run import Runner, base_environment, run

KERNEL = "4.18"
"""`__linux` of every target: the kernel of the oldest distributions with glibc 2.28."""

_SOLVE_TIMEOUT_S = 1800.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_URL = re.compile(r"https?://[^\s'\")\]]+")


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
    answer = _work(
        {
            "do": "solve",
            "cache": str(repodata),
            "offline": access.offline,
            "mirrors": {name: list(urls) for name, urls in places.places.items()},
            "logins": [
                [login.address, login.header]
                for login in (*places.logins, *addresses.netrc_logins(access))
            ],
            "questions": [_question(request) for request in requests],
        },
        access=access,
        runner=runner,
        timeout_s=_SOLVE_TIMEOUT_S,
    )
    if "error" in answer:
        raise _solve_error(answer["error"], requests, places)
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


def canonical(names: Sequence[str], *, access: Access, runner: Runner = run) -> dict[str, str]:
    """Return the canonical address of each channel name, without a slash at its end.

    Raises:
        ToolFailed: The engine broke.
    """
    answer = _work(
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
    answer = _work(request, access=access, runner=runner, timeout_s=_SOLVE_TIMEOUT_S)
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


def _work(
    request: Mapping[str, Any], *, access: Access, runner: Runner, timeout_s: float
) -> dict[str, Any]:
    """Let a worker act and return its answer.

    Raises:
        ToolFailed: It ended without an answer (an abort, a panic).
        ToolTimedOut: It did not end in time.
    """
    argv = (sys.executable, "-I", "-m", "envbuild.tools.rattler_worker")
    completed = runner(
        argv,
        env=base_environment() | dict(access.environment),
        stdin=json.dumps(request),
        timeout_s=timeout_s,
        check=False,
    )
    tail = completed.stderr.strip()[-4000:]
    if completed.status != 0:
        how = f"signal {-completed.status}" if completed.status < 0 else f"{completed.status}"
        message = f"the conda engine (py-rattler) ended with {how}"
        raise ToolFailed(message, argv=argv, status=completed.status, details=tail)
    try:
        answer: dict[str, Any] = json.loads(completed.stdout)
    except ValueError as error:
        message = "the conda engine (py-rattler) gave no answer"
        raise ToolFailed(message, argv=argv, status=0, details=tail) from error
    failure = answer.get("error", {})
    if failure.get("kind") == "failed":
        message = f"the conda engine (py-rattler) failed: {_one_line(failure['text'])}"
        raise ToolFailed(message, argv=argv, status=0, details=tail)
    return answer


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]


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


def merge_depends(specs: Sequence[str]) -> tuple[str, ...]:
    """Return match specs sorted, one per name: a lock's map holds no more.

    Several specs of one name become one with all version parts joined by a comma, and the most
    telling of their builds.
    """
    by_name: dict[str, list[str]] = {}
    for spec in specs:
        name, rest = _split_spec(spec)
        by_name.setdefault(name, []).append(rest)
    return tuple(sorted(f"{name} {_merge(rests)}".strip() for name, rests in by_name.items()))


def _split_spec(spec: str) -> tuple[str, str]:
    found = re.match(r"\s*([^\s=<>!~\[,]+)\s*(.*)", spec, re.DOTALL)
    if found is None:
        return spec.strip(), ""
    return found[1], re.sub(r"\s*,\s*", ",", " ".join(found[2].split()))


def _merge(rests: Sequence[str]) -> str:
    unique = sorted(set(rests))
    if len(unique) == 1:
        return unique[0]
    versions: list[str] = []
    builds: list[str] = []
    for rest in unique:
        version, _, build = rest.partition(" ")
        parts = [f"({version})"] if "|" in version else version.split(",")
        versions += [part for part in parts if part not in {"", "*"}]
        builds += [build] if build not in {"", "*"} else []
    version = ",".join(sorted(set(versions))) or "*"
    build = max(builds, key=lambda text: (len(text), text), default="")
    return f"{version} {build}".strip() if build or version != "*" else ""


def _solve_error(
    error: Mapping[str, Any], requests: Sequence[SolveRequest], places: addresses.Mirrors
) -> NoSolution | FetchError | RecipeError:
    text = str(error["text"])
    if error["kind"] == "spec":
        return RecipeError(f"a conda spec cannot be read: {_one_line(text)}")
    if error["kind"] == "fetch":
        return _fetch_error(text, requests, places)
    reason = text.removeprefix("Cannot solve the request because of: ").strip()
    notes = [note for row in error["names"] if (note := _left_out(row))]
    return NoSolution(
        f"conda finds no solution for {error['platform']}",
        hint="change what the recipe asks for; "
        "'no candidates' may also mean: excluded by another of its specs",
        details="\n".join([reason, *notes]),
    )


def _left_out(row: Mapping[str, Any]) -> str | None:
    if row["offered"] and not row["matching"]:
        return f"{row['name']}: none of {row['offered']} records matches what is asked"
    parts = [
        f"{row[key]} {what}"
        for key, what in (("late", "not before the cutoff"), ("undated", "without an upload time"))
        if row[key]
    ]
    if not parts:
        return None
    return f"{row['name']}: of {row['matching']} records that match, {' and '.join(parts)}"


_REASONS = (
    ("no usable repodata cache", "it is not in the cache"),
    ("could not find subdir", "404 Not Found"),
    ("Connection refused", "connection refused"),
    ("dns error", "the host's name is unknown"),
    ("certificate", "the server's certificate is not trusted"),
    ("timed out", "no answer in time"),
    ("end of file before message length", "the answer was cut short"),
    ("deserialize", "the answer is not a channel index (a login page?)"),
    ("decode", "the answer is not a channel index (a login page?)"),
)


def _fetch_error(
    text: str, requests: Sequence[SolveRequest], places: addresses.Mirrors
) -> FetchError:
    found = _URL.search(text)
    url = addresses.without_login(found[0]) if found else ""
    status = re.search(r"\((\d{3} [A-Z][A-Za-z ]+)\)", text)
    reason = next((words for mark, words in _REASONS if mark in text), None)
    if reason is None or (status and reason != "it is not in the cache"):
        reason = status[1] if status else _one_line(text.splitlines()[-1])
    names = {name for request in requests for name in request.channels}
    channel = _channel_of(url, names, places)
    offline = reason == "it is not in the cache"
    return FetchError(
        f"channel {channel}: {reason}" + (f" ({url})" if url else ""),
        hint="run it once without --offline"
        if offline
        else "check the address, ENVBUILD_CHANNEL_MIRRORS and the proxy settings",
        details=addresses_hidden(text),
    )


def addresses_hidden(text: str) -> str:
    """Return a text of the engine's with the logins of all addresses taken out."""
    return _URL.sub(lambda found: addresses.without_login(found[0]), text)


def _channel_of(url: str, names: set[str], places: addresses.Mirrors) -> str:
    """Return the channel, as the recipe names it, that an address belongs to."""
    bases: dict[str, str] = {}
    for name in names:
        for place in places.places.get(name, ()):
            bases[place + "/"] = name
        bases.setdefault(name if "://" in name else f"/{name}/", name)
    fitting = [base for base in bases if (url.startswith(base) or base in url)]
    return bases[max(fitting, key=len)] if fitting else ", ".join(sorted(names))
