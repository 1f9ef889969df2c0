"""How a wheel was built: an in-toto statement with SLSA's provenance predicate, version 1.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md, https://slsa.dev/provenance/v1.
It is not signed: it tells what was done, not that nobody changed it since.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from envbuild import __version__
from envbuild.packages import PipPackage
from envbuild.rebuild.sources import Fetched
from envbuild.rebuild.toolchain import Tools
from envbuild.wheel.model import Rebuild

_STATEMENT = "https://in-toto.io/Statement/v1"
_PREDICATE = "https://slsa.dev/provenance/v1"
_BUILD_TYPE = "urn:envbuild:wheel-rebuild:1"
_HIDDEN = ("TOKEN", "PASSWORD", "SECRET", "API_KEY")


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """A provenance statement.

    Attributes:
        text: It, as JSON.
        subject: Name of the wheel that it is of.
        sha256: The wheel's digest.
        parameters: What was asked for.
        internal: How it was done.
        started: When the build began (RFC 3339).
        finished: When it ended.
    """

    text: str
    subject: str
    sha256: str
    parameters: Mapping[str, Any]
    internal: Mapping[str, Any]
    started: str
    finished: str

    @property
    def against(self) -> dict[str, str]:
        """Name and version of the lock's packages that it was built against."""
        return {str(name): str(version) for name, version in self.internal["builtAgainst"].items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What a build was, besides what was asked for.

    Attributes:
        sources: What was built.
        tools: The compilers.
        environment: What was installed beside the backend, by hash.
        against: Name and version of those that the lock has.
        variables: The environment of the build.
        python: Full version of its Python.
        jobs: How many compilers ran at a time.
        jobs_by: Who said so: `MAX_JOBS`, `recipe`, or what limits this machine.
        isolation: `namespaces`, or why there were none.
        epoch: SOURCE_DATE_EPOCH.
        memory_bytes: The most memory that one program of it took.
        disk_bytes: What its folder took at the end.
        started: When it began (UTC).
        finished: When it ended (UTC).
    """

    sources: Fetched
    tools: Tools
    environment: Sequence[PipPackage]
    against: Mapping[str, str]
    variables: Mapping[str, str]
    python: str
    jobs: int
    jobs_by: str
    isolation: str
    epoch: int
    memory_bytes: int
    disk_bytes: int
    started: datetime
    finished: datetime


def parameters(rebuild: Rebuild) -> dict[str, Any]:
    """Return what is asked for, as a statement has it."""
    return {
        "name": rebuild.name,
        "version": rebuild.version,
        "source": str(rebuild.source),
        "compiler": rebuild.toolchain.compiler,
        "cuda": rebuild.toolchain.cuda,
        "cudaArchs": list(rebuild.cuda_archs),
        "cxxAbi": rebuild.abi,
        "flags": list(rebuild.flags),
        "environment": dict(rebuild.environment),
        "portable": rebuild.portable,
    }


def state(rebuild: Rebuild, facts: Facts, *, wheel: str, sha256: str) -> Statement:
    """Return the statement of a wheel."""
    told = {
        "_type": _STATEMENT,
        "subject": [{"name": wheel, "digest": {"sha256": sha256}}],
        "predicateType": _PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD_TYPE,
                "externalParameters": parameters(rebuild),
                "internalParameters": _internal(facts),
                "resolvedDependencies": list(_dependencies(facts)),
            },
            "runDetails": {
                "builder": {"id": "urn:envbuild", "version": {"envbuild": __version__}},
                "metadata": {
                    "startedOn": _instant(facts.started),
                    "finishedOn": _instant(facts.finished),
                },
            },
        },
    }
    return loads(json.dumps(told, indent=1, sort_keys=True).encode())


def loads(data: bytes) -> Statement:
    """Read a statement.

    Raises:
        ValueError: It is none of ours.
    """
    told = json.loads(data)
    if wrong := problems(told):
        raise ValueError(wrong[0])
    definition = told["predicate"]["buildDefinition"]
    (subject,) = told["subject"]
    return Statement(
        text=data.decode().rstrip("\n") + "\n",
        subject=str(subject["name"]),
        sha256=str(subject["digest"]["sha256"]),
        parameters=definition["externalParameters"],
        internal=definition["internalParameters"],
        started=str(told["predicate"]["runDetails"]["metadata"]["startedOn"]),
        finished=str(told["predicate"]["runDetails"]["metadata"]["finishedOn"]),
    )


def problems(told: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return what is wrong with the form of a statement."""
    try:
        definition = told["predicate"]["buildDefinition"]
        (subject,) = told["subject"]
        digests = [row["digest"] for row in definition["resolvedDependencies"]]
        known = (
            told["_type"] == _STATEMENT
            and told["predicateType"] == _PREDICATE
            and definition["buildType"] == _BUILD_TYPE
            and isinstance(subject["digest"]["sha256"], str)
            and isinstance(definition["externalParameters"]["name"], str)
            and isinstance(definition["internalParameters"]["builtAgainst"], dict)
            and isinstance(told["predicate"]["runDetails"]["metadata"]["startedOn"], str)
            and isinstance(told["predicate"]["runDetails"]["metadata"]["finishedOn"], str)
        )
    except (KeyError, TypeError, ValueError):
        return ("its provenance is no statement of a rebuilt wheel",)
    if not known:
        return ("its provenance is no statement of a rebuilt wheel",)
    return () if all(digests) else ("an input of its build has no digest",)


def _internal(facts: Facts) -> dict[str, Any]:
    compiler, cuda, rust = facts.tools.compiler, facts.tools.cuda, facts.tools.rust
    found: dict[str, Any] = {
        "python": facts.python,
        "compiler": {
            "name": compiler.family,
            "version": compiler.version,
            "origin": compiler.origin,
        },
        "toolchainDigest": facts.tools.digest,
        "builtAgainst": dict(sorted(facts.against.items())),
        "variables": {name: _shown(name, facts.variables[name]) for name in facts.variables},
        "maxJobs": facts.jobs,
        "maxJobsBy": facts.jobs_by,
        "isolation": facts.isolation,
        "sourceDateEpoch": facts.epoch,
        "mostMemoryBytes": facts.memory_bytes,
        "diskBytes": facts.disk_bytes,
        "submodules": dict(facts.sources.submodules),
    }
    if cuda is not None:
        found["cuda"] = {"version": cuda.version, "origin": cuda.origin}
    if rust is not None:
        found["rust"] = {"version": rust.version, "origin": rust.origin}
    return found


def _shown(name: str, value: str) -> str:
    return "(hidden)" if any(part in name.upper() for part in _HIDDEN) else value


def _dependencies(facts: Facts) -> Iterator[dict[str, Any]]:
    """Yield every input with its digests: sources, build environment, compilers."""
    yield {
        "name": "sources",
        "uri": facts.sources.uri,
        "digest": {facts.sources.kind: facts.sources.digest},
    }
    for package in facts.environment:
        for digest in package.hashes:
            yield {
                "name": "build environment",
                "uri": f"pkg:pypi/{package.name}@{package.version}",
                "digest": {"sha256": digest},
            }
    for crate in facts.sources.crates.listed if facts.sources.crates is not None else ():
        yield {"name": "crate", "uri": crate.uri, "digest": {crate.kind: crate.digest}}
    for name, digest in facts.tools.digests:
        yield {"name": "toolchain", "uri": f"file:{name}", "digest": {"sha256": digest}}


def _instant(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
