"""Paths that two packages claim: whose content is there, and whether that is a matter of chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from envbuild.findings import Finding, Severity
from envbuild.store.installed import Owner


@dataclass(kw_only=True, slots=True)
class Rivalry:
    """What there is to say of paths that two packages claim.

    Attributes:
        findings: What is wrong, and what is only to be told.
        holders: Path to the number of the owner whose content is there.
        again: Names of wheels to install once more, one after the other in this order, because uv,
            which installs them at once, left the file of another one. Of two wheels the file of
            the first by name is to stay, as conda's half has it.
    """

    findings: list[Finding] = field(default_factory=list)
    holders: dict[str, int] = field(default_factory=dict)
    again: tuple[str, ...] = ()


def judge(
    claims: Mapping[str, Sequence[int]], owners: Sequence[Owner], digests: Mapping[str, str]
) -> Rivalry:
    """Say whose content lies at paths that several owners claim, where they declare another one.

    Codes: `wheel-over-conda` (error), `clobber` (warning), `file-differs` (error: nobody's).

    Args:
        claims: Path to the numbers of its owners, conda's first.
        owners: All owners.
        digests: SHA-256 hex of what is there.
    """
    found = Rivalry()
    wanted: set[str] = set()
    wrong = False
    tables: dict[int, dict[str, str | None]] = {}
    for path, numbers in claims.items():
        for number in numbers:
            if number not in tables:
                owner = owners[number]
                tables[number] = dict(zip(owner.paths, owner.digests, strict=True))
        declared = {number: tables[number][path] for number in numbers}
        if set(declared.values()) == {digests.get(path)}:
            continue
        holder = _holder(declared, digests.get(path))
        if holder is None:
            found.findings.append(differs(path, owners[numbers[-1]]))
            continue
        found.holders[path] = holder
        others = [owners[number] for number in numbers if declared[number] != declared[holder]]
        found.findings += _told(path, owners[holder], others)
        if not any(owners[number].is_conda for number in numbers):
            first = min(numbers, key=lambda number: owners[number].name)
            wanted.add(owners[first].name)
            wrong = wrong or declared[first] != declared[holder]
    if wrong:
        found.again = tuple(sorted(wanted, reverse=True))
    return found


def _holder(declared: Mapping[int, str | None], digest: str | None) -> int | None:
    """Return the owner that declares what is there, else one that declares nothing."""
    for wanted in (digest, None):
        for number, one in declared.items():
            if one == wanted:
                return number
    return None


def _told(path: str, holder: Owner, others: Sequence[Owner]) -> list[Finding]:
    conda = next((other for other in others if other.is_conda), None)
    if conda is None or holder.is_conda:
        return [clobber(path, holder, other) for other in others]
    return [
        Finding(
            code="wheel-over-conda",
            severity=Severity.ERROR,
            where=path,
            what=f"the wheel {holder.name} replaced a file of conda's {conda.name}",
            why="whichever is right, the other package no longer holds what it declares",
            hint="take the package from one half only",
        )
    ]


def clobber(path: str, winner: Owner, loser: Owner) -> Finding:
    """Return that two packages have a path, and whose content is there."""
    return Finding(
        code="clobber",
        severity=Severity.WARNING,
        where=path,
        what=f"{winner.label} and {loser.label} both have it with other contents",
        why=f"the content of {winner.label} is there",
    )


def differs(path: str, owner: Owner) -> Finding:
    """Return that a file is not what its package declares."""
    return Finding(
        code="file-differs",
        severity=Severity.ERROR,
        where=path,
        what=f"its content is not what {owner.label} declares",
        why=contradiction(owner),
    )


def contradiction(owner: Owner) -> str:
    """Return what it means where a file of a package, fetched anew, is not what it declares."""
    if owner.is_conda:
        return "the package contradicts its own info/paths.json"
    return "the wheel contradicts its own RECORD, whatever the hash of the whole of it"
