"""Solving with py-rattler; loaded only in the worker process."""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rattler import (
    Channel,
    Client,
    Gateway,
    GenericVirtualPackage,
    MatchSpec,
    PackageName,
    PackageRecord,
    RepoDataRecord,
    SourceConfig,
    Version,
    solve,
)
from rattler.exceptions import GatewayError, InvalidMatchSpecError, SolverError
from rattler.networking import (
    AddHeadersMiddleware,
    CacheAction,
    MirrorMiddleware,
    RetryMiddleware,
)
from rattler.package import BuildString

from envbuild.tools.addresses import is_host

_REQUEST_TIMEOUT_S = 3600  # of a whole request; what does not go on is ended by the parent
_HALF_MS = timedelta(microseconds=500)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Question:
    """One solve, in py-rattler's types."""

    channels: tuple[Channel, ...]
    platforms: tuple[str, str]
    specs: tuple[MatchSpec, ...]
    constraints: tuple[MatchSpec, ...]
    virtual: tuple[GenericVirtualPackage, ...]
    last_ms: int
    prefer: frozenset[str]


def canonical(channel: str) -> str:
    """Return a channel's address, no slash at its end; plain names are below the default alias.

    The name `*` gives the alias itself, below which every plain name lies.
    """
    if channel == "*":
        return canonical("any").removesuffix("/any")
    return Channel(channel).base_url.rstrip("/")


async def solve_all(request: dict[str, Any]) -> dict[str, Any]:
    """Answer every question of a request with records, or say why not.

    Returns:
        `{"solved": [...]}` in the order of the questions, or `{"error": {...}}` for the first that
        has no answer; kinds are `spec`, `unsolvable` and `fetch`.
    """
    questions: list[_Question] = []
    for item in request["questions"]:
        try:
            questions.append(_question(item))
        except InvalidMatchSpecError as error:
            return {"error": {"kind": "spec", "text": str(error), "platform": item["platform"]}}
    # The engine asks a second mirror only where the first does not answer; a 404 ends it.
    attempts = max((len(urls) for urls in request["mirrors"].values()), default=1)
    last: GatewayError | None = None
    for turn in range(request["turn"], request["turn"] + attempts):
        mirrors = {
            name: urls[turn % len(urls) :] + urls[: turn % len(urls)]
            for name, urls in request["mirrors"].items()
        }
        try:
            return await _ask_one_way({**request, "mirrors": mirrors}, questions)
        except GatewayError as error:
            last = error
    return {"error": {"kind": "fetch", "text": str(last)}}


async def _ask_one_way(request: dict[str, Any], questions: Sequence[_Question]) -> dict[str, Any]:
    """Ask with shards, and otherwise where a mirror has no answer but something else.

    What a mirror gave is kept, right or wrong, and counts for the next one too: what cannot be
    read is fetched anew.
    """
    shards = True
    cache: CacheAction = "force-cache-only" if request["offline"] else "cache-or-fetch"
    while True:
        try:
            return await _ask_all(_gateway(request, shards=shards, cache=cache), questions)
        except GatewayError as error:
            text = str(error)
            if shards and "shard" in text and "(Connect)" not in text:
                shards = False
            elif cache == "cache-or-fetch" and "failed to parse" in text:
                cache = "no-cache"
            else:
                raise


def _question(item: dict[str, Any]) -> _Question:
    return _Question(
        channels=tuple(Channel(name) for name in item["channels"]),
        platforms=(item["platform"], "noarch"),
        specs=tuple(MatchSpec(text) for text in sorted(item["specs"])),
        constraints=tuple(MatchSpec(text) for text in sorted(item["constraints"])),
        virtual=tuple(
            GenericVirtualPackage(PackageName(name), Version(version), BuildString(build))
            for name, version, build in item["virtual"]
        ),
        last_ms=item["last_ms"],
        prefer=frozenset(item["prefer"]),
    )


def _gateway(request: dict[str, Any], *, shards: bool, cache: CacheAction) -> Gateway:
    places = {canonical(name) + "/": urls for name, urls in request["mirrors"].items()}
    client = Client(
        [
            RetryMiddleware(request["retries"]),
            MirrorMiddleware({name: [url + "/" for url in urls] for name, urls in places.items()}),
            AddHeadersMiddleware(_headers(request["logins"])),
        ],
        timeout=_REQUEST_TIMEOUT_S,
    )
    config = SourceConfig(sharded_enabled=shards, cache_action=cache)
    return Gateway(cache_dir=Path(request["cache"]), default_config=config, client=client)


def _headers(logins: list[list[str]]) -> Callable[[str, str], dict[str, str] | None]:
    """Return the function that adds a login; py-rattler does not send the one of a mirror's URL."""
    rows = [(urlsplit(address), header) for address, header in logins]
    rows.sort(key=lambda row: len(row[0].path), reverse=True)

    def headers(host: str, path: str) -> dict[str, str] | None:
        for address, header in rows:
            folder = address.path.rstrip("/") + "/"
            if is_host(address.hostname, host) and path.startswith(folder):
                return {"Authorization": header}
        return None

    return headers


async def _ask_all(gateway: Gateway, questions: Sequence[_Question]) -> dict[str, Any]:
    answers = await asyncio.gather(*(_ask(gateway, question) for question in questions))
    failed = next((answer for answer in answers if "error" in answer), None)
    return failed or {"solved": list(answers)}


async def _ask(gateway: Gateway, question: _Question) -> dict[str, Any]:
    locked = await _preferred(gateway, question)
    try:
        records = await solve(
            question.channels,
            question.specs,
            gateway=gateway,
            platforms=question.platforms,  # type: ignore[arg-type]  # names of subdirs
            locked_packages=locked,
            virtual_packages=question.virtual,
            # int(seconds * 1000) in py-rattler would lose a millisecond to rounding
            exclude_newer=datetime.fromtimestamp(0, UTC)
            + timedelta(milliseconds=question.last_ms)
            + _HALF_MS,
            timestamp_policy="require-timestamp",
            constraints=question.constraints,
            channel_relations="disabled",
        )
    except SolverError as error:
        return await _unsolvable(gateway, question, str(error))
    names = [record.name.normalized for record in records]
    offered = await _records(gateway, question, names)
    chosen = {record.name.normalized: record for record in records}
    undated = [
        record
        for source in offered
        for record in source
        if _uploaded_ms(record) is None and _would_count(record, chosen, question.specs)
    ]
    return {
        "records": [json_record(record) for record in records],
        "undated": sorted({record.url for record in undated}),
    }


async def _records(
    gateway: Gateway, question: _Question, names: Iterable[str], *, recursive: bool = False
) -> list[list[RepoDataRecord]]:
    return list(
        await gateway.query(
            question.channels,
            question.platforms,  # type: ignore[arg-type]  # names of subdirs
            list(names),
            recursive=recursive,
            channel_relations="disabled",
        )
    )


async def _preferred(gateway: Gateway, question: _Question) -> list[RepoDataRecord]:
    """Return the records to keep if they can be kept.

    py-rattler takes a locked record as a candidate without asking whether its channel still has
    it, whether another channel comes first for the name, or the cutoff: so we ask.
    """
    if not question.prefer:
        return []
    names = sorted({_name_of(url) for url in question.prefer})
    first: dict[str, str | None] = {}
    kept: list[RepoDataRecord] = []
    wanted = {spec.name.normalized for spec in question.specs if spec.channel}
    for source in await _records(gateway, question, names):
        for record in source:
            name = record.name.normalized
            uploaded = _uploaded_ms(record)
            before = uploaded is not None and uploaded <= question.last_ms
            # one source per channel and subdir: a name may be in linux-64 and in noarch
            in_order = first.setdefault(name, record.channel) == record.channel or name in wanted
            if record.url in question.prefer and before and in_order:
                kept.append(record)
    return sorted(kept, key=lambda record: record.url)


def _name_of(url: str) -> str:
    return url.rsplit("/", 1)[1].rsplit("-", 2)[0]


def _uploaded_ms(record: PackageRecord) -> int | None:
    moment = record.indexed_timestamp or record.timestamp
    return None if moment is None else round(moment.timestamp() * 1000)


def _would_count(
    record: RepoDataRecord, chosen: dict[str, RepoDataRecord], specs: Iterable[MatchSpec]
) -> bool:
    """Say whether a record without a date could have been taken instead of the chosen one."""
    name = record.name.normalized
    if record.version < chosen[name].version:
        return False
    asked = [spec for spec in specs if spec.name.normalized == name]
    asked += [
        MatchSpec(text)
        for other in chosen.values()
        for text in other.depends
        if re.split(r"[\s=<>!~\[]", text, maxsplit=1)[0] == name
    ]
    return all(record.matches(spec) for spec in asked)


async def _unsolvable(gateway: Gateway, question: _Question, reason: str) -> dict[str, Any]:
    """Return the solver's reason and, per asked name, what the cutoff left out."""
    error: dict[str, Any] = {
        "kind": "unsolvable",
        "text": reason,
        "platform": question.platforms[0],
    }
    names = sorted({spec.name.normalized for spec in question.specs})
    left_out: list[dict[str, Any]] = []
    for name in names:
        offered = [
            record for source in await _records(gateway, question, [name]) for record in source
        ]
        matching = [
            record
            for record in offered
            if all(record.matches(spec) for spec in question.specs if spec.name.normalized == name)
        ]
        moments = [_uploaded_ms(record) for record in matching]
        left_out.append(
            {
                "name": name,
                "offered": len(offered),
                "matching": len(matching),
                "undated": moments.count(None),
                "late": sum(1 for moment in moments if moment and moment > question.last_ms),
            }
        )
    return {"error": {**error, "names": left_out}}


def json_record(record: RepoDataRecord) -> dict[str, Any]:
    """Return what is kept of a record."""
    return {
        "name": record.name.normalized,
        "version": str(record.version),
        "build": str(record.build),
        "channel": (record.channel or "").rstrip("/"),
        "subdir": record.subdir,
        "file": record.file_name,
        "url": record.url,
        "sha256": record.sha256.hex() if record.sha256 else None,
        "md5": record.md5.hex() if record.md5 else None,
        "size": record.size,
        "depends": list(record.depends),
    }
