"""From uv's answer to the PyPI half: usable wheels, the recipe's hashes, who asks for what."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from envbuild.errors import NoSolution
from envbuild.findings import Finding, Findings, Severity
from envbuild.packages import PipPackage
from envbuild.recipe.requirements import PipNeed
from envbuild.solve import metadata, requires
from envbuild.solve.ask import Answered
from envbuild.solve.markers import environment, full
from envbuild.solve.names import Provided
from envbuild.solve.wheels import Wheel
from envbuild.target import Platform
from envbuild.tools.uv_question import Source


@dataclass(frozen=True, kw_only=True, slots=True)
class PipHalf:
    """The PyPI half of a solve.

    Attributes:
        packages: Distributions, sorted by name, then version.
        findings: What the solve had to say.
        uncut_indexes: Names of indexes without upload times, which no cutoff was applied to.
        download_bytes: Bytes of the wheels, of the smallest where several can be taken; None where
            an index does not say.
    """

    packages: tuple[PipPackage, ...]
    findings: Findings = ()
    uncut_indexes: tuple[str, ...] = ()
    download_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line of the half to be.

    Attributes:
        name: Normalized name.
        version: Version text.
        marker: Where it counts, None for everywhere.
        pairs: The Pythons and platforms where it counts.
        wheels: The wheels that one of these can use.
        source: The index it comes from.
    """

    name: NormalizedName
    version: str
    marker: str | None
    pairs: tuple[tuple[Version, Platform], ...]
    wheels: tuple[Wheel, ...]
    source: Source


@dataclass(frozen=True, kw_only=True, slots=True)
class Around:
    """What a half is judged by.

    Attributes:
        needs: The recipe's requirements.
        pairs: Every Python and platform that the half is for.
        provided: The distributions that the conda half installs.
        prefer: The old PyPI half.
        answered: uv's answer.
        sources: The indexes.
    """

    needs: Sequence[PipNeed]
    pairs: Sequence[tuple[Version, Platform]]
    provided: Mapping[NormalizedName, Provided]
    prefer: Sequence[PipPackage] = ()
    answered: Answered
    sources: Sequence[Source]


def finish(lines: Sequence[Line], around: Around, *, read: metadata.Reader, cache: Path) -> PipHalf:
    """Return the half with hashes, `via` and findings.

    Args:
        lines: What uv chose, with usable wheels.
        around: What it is judged by.
        read: Fetches the METADATA of a wheel.
        cache: Folder of METADATA read before.

    Raises:
        NoSolution: An index gives no hashes, or none of the wheels has a hash that the recipe asks
            for.
        FetchError: METADATA cannot be fetched.
    """
    lines = _with_asked_hashes(lines, around.needs)
    _check_hashes(lines)
    known = metadata.gather(
        (wheel for line in lines for wheel in line.wheels), cache=cache, read=read
    )
    walked = _walk(lines, known, around)
    kept = [
        line for line in lines if line.name not in around.answered.rooted or line.name in walked.via
    ]
    findings = (*walked.findings.values(), *_findings(kept, around))
    return PipHalf(
        packages=tuple(_package(line, walked.via.get(line.name, ())) for line in _sorted(kept)),
        findings=tuple(sorted(findings, key=lambda one: (one.severity, one.code, one.what))),
        uncut_indexes=tuple(
            sorted(one.name for one in around.sources if one.cutoff == "none" and one.name)
        ),
        download_bytes=_bytes(kept),
    )


def _bytes(lines: Iterable[Line]) -> int | None:
    """Return the bytes of the smallest wheel of each line, None where an index does not say."""
    least = [min((wheel.size or 0 for wheel in line.wheels), default=0) for line in lines]
    return sum(least) if all(least) else None


def _sorted(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: (line.name, Version(line.version)))


def _package(line: Line, via: Iterable[str]) -> PipPackage:
    return PipPackage(
        name=line.name,
        version=line.version,
        hashes=tuple(sorted({wheel.sha256 for wheel in line.wheels if wheel.sha256})),
        index=line.source.name,
        marker=line.marker,
        via=tuple(sorted(via)),
    )


def _with_asked_hashes(lines: Sequence[Line], needs: Sequence[PipNeed]) -> list[Line]:
    """Return the lines with only those wheels that the recipe's own hashes allow."""
    asked: dict[str, set[str]] = {}
    for need in needs:
        if need.hashes:
            asked.setdefault(need.name, set()).update(need.hashes)
    left: list[Line] = []
    for line in lines:
        hashes = asked.get(line.name)
        if hashes is None:
            left.append(line)
            continue
        wheels = tuple(wheel for wheel in line.wheels if wheel.sha256 in hashes)
        if not wheels:
            files = "\n".join(f"{wheel.sha256}  {wheel.filename}" for wheel in line.wheels)
            message = (
                f"no wheel of {line.name} {line.version} that the target can use has a hash "
                "that the recipe asks for"
            )
            hint = "name the version that the hashes belong to (==), or drop the hashes"
            raise NoSolution(message, hint=hint, details=files)
        left.append(
            Line(
                name=line.name,
                version=line.version,
                marker=line.marker,
                pairs=line.pairs,
                wheels=wheels,
                source=line.source,
            )
        )
    return left


def _check_hashes(lines: Iterable[Line]) -> None:
    """Refuse wheels without SHA-256: uv would hash the one file it takes, and no other."""
    bare = [(line, wheel) for line in lines for wheel in line.wheels if wheel.sha256 is None]
    if bare:
        labels = " and ".join(sorted({line.source.label for line, _ in bare}))
        message = f"{labels} gives no SHA-256 of its files, so they cannot be locked"
        raise NoSolution(
            message,
            hint="use an index that gives hashes",
            details="\n".join(sorted(wheel.filename for _, wheel in bare)),
        )


def _walk(
    lines: Sequence[Line], known: Mapping[str, metadata.Metadata], around: Around
) -> requires.Walked:
    """Follow the requirements on every Python and platform."""
    walked = requires.Walked()
    roots: list[Requirement] = [need.requirement for need in around.needs]
    facts = {
        id(line): tuple(dict.fromkeys(known[wheel.sha256] for wheel in line.wheels if wheel.sha256))
        for line in lines
    }
    for pair in around.pairs:
        locked = {
            line.name: requires.Locked(
                name=line.name, version=Version(line.version), metadata=facts[id(line)]
            )
            for line in lines
            if pair in line.pairs
        }
        markers = environment(full(pair[0]), pair[1])
        requires.walk(roots, locked, around.provided, markers, walked)
    return walked


def _findings(lines: Sequence[Line], around: Around) -> Iterable[Finding]:
    versions = {(line.name, line.version) for line in lines}
    for name, version, reason in around.answered.yanked:
        if (canonicalize_name(name), version) in versions:
            yield Finding(
                code="yanked",
                severity=Severity.WARNING,
                where=f"{name} {version}",
                what=f"{name} {version} was withdrawn by who published it",
                why=reason,
                hint="take another version",
            )
    if around.answered.undated:
        yield Finding(
            code="index-without-dates",
            severity=Severity.WARNING,
            where=", ".join(around.answered.undated),
            what=f"{len(around.answered.undated)} files without an upload time were left out",
            why="no cutoff can be applied to them; an index with the times may answer otherwise",
            hint="use a mirror that gives upload times, or give the index `cutoff: none`",
        )
    for line in lines:
        yield from _fewer_files(line, around.prefer)
    yield from _inexact(around.provided.values())
    for source in around.sources:
        if source.cutoff == "none":
            yield Finding(
                code="cutoff-not-applied",
                severity=Severity.NOTE,
                where=source.label,
                what=f"no cutoff was applied to {source.label}, as the recipe says",
                why="an index without upload times may answer otherwise tomorrow",
            )


def _fewer_files(line: Line, prefer: Iterable[PipPackage]) -> Iterable[Finding]:
    """Tell of wheels that the old lock has of the same release and the index no longer gives."""
    given = {wheel.sha256 for wheel in line.wheels}
    for old in prefer:
        if (old.name, old.version) == (line.name, line.version):
            gone = [digest for digest in old.hashes if digest not in given]
            if gone:
                yield Finding(
                    code="missing-file",
                    severity=Severity.WARNING,
                    where=f"{line.name} {line.version}",
                    what=f"{line.source.label} lacks {len(gone)} of the {len(old.hashes)} wheels "
                    f"of {line.name} {line.version} that the old lock has",
                    why="a mirror that lacks files makes another lock than the index it mirrors",
                    hint="bring the mirror up to date, then lock again",
                )


def _inexact(provided: Iterable[Provided]) -> Iterable[Finding]:
    for one in provided:
        if not one.exact:
            yield Finding(
                code="conda-version",
                severity=Severity.WARNING,
                where=f"{one.package.name} {one.package.version}",
                what=f"conda's version {one.package.version} of {one.package.name} is none that "
                f"PyPI knows; {one.version} stands for it",
            )
