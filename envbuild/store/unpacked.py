"""Wheels as uv unpacked them, held against their own RECORD before anything of them is linked.

uv compares the hash of a whole wheel, and no row of its RECORD. When it unpacks (seen with 0.9) it
leaves out rows of files that are not there, of which nothing is known afterwards, and adds rows
without a hash for files that are not listed.
"""

import os
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envbuild.findings import Finding, Findings, Severity
from envbuild.native.judge import listed
from envbuild.native.package import RecordDifference
from envbuild.native.record import NO_HASH, Content, wheel_differences
from envbuild.packages import wheel_label
from envbuild.store import arrivals, rivals
from envbuild.store.installed import Owner
from envbuild.tools.hashing import hash_files

_INFO = ".dist-info"
_LIBRARY = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")
_DATA = re.compile(r"[^/]+\.data/data/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Contradictions:
    """Where wheels contradict their own RECORD.

    Attributes:
        findings: What is wrong, all of it errors.
        spoiled: Wheels with a file of other content: in a cache it may have been changed.
    """

    findings: Findings = ()
    spoiled: tuple[Owner, ...] = ()


def contradictions(
    linked: Path,
    cache: Path,
    *,
    contents: MutableMapping[arrivals.Known, str],
    python_version: str,
) -> Contradictions:
    """Hold wheels against their own RECORD.

    Codes: `record-contradicted` (a hash weaker than SHA-256; another size), `file-differs`.

    Args:
        linked: A folder into which uv linked them from its cache.
        cache: Folder of the cache in which each lies unpacked.
        contents: Files that were hashed already; the others are added.
        python_version: Full version of the Python that they are for.

    Raises:
        OSError: A file cannot be looked at.
    """
    folders = list(_folders(linked, cache))
    looks = {folder: arrivals.looks(folder) for folder, _ in folders}
    _hash(contents, looks)
    site = f"lib/python{'.'.join(python_version.split('.')[:2])}/site-packages/"
    findings: list[Finding] = []
    spoiled: list[Owner] = []
    for folder, info in folders:
        owner = _owner(info)
        content = {
            path[len(folder) + 1 :]: (digest, look.st_size)
            for path, look in looks[folder].items()
            if (digest := contents.get(arrivals.known(look))) is not None
        }
        found = list(_findings(Path(folder) / info / "RECORD", content, owner, site))
        findings += found
        if any(one.code == "file-differs" for one in found):
            spoiled.append(owner)
    return Contradictions(findings=tuple(findings), spoiled=tuple(spoiled))


def unlisted(owners: Sequence[Owner]) -> Findings:
    """Return which wheels brought files that their RECORD does not list, or without a hash.

    Code: `record-unlisted`, one for each wheel.

    Args:
        owners: The packages of a prefix.
    """
    return tuple(
        Finding(
            code="record-unlisted",
            severity=Severity.WARNING,
            where=owner.label,
            what=f"its RECORD has no hash of {listed(owner.unhashed)}, or does not list it",
            why="whether the file is what its maker put in cannot be told; what was installed is"
            " covered by `envbuild verify`",
        )
        for owner in owners
        if owner.unhashed
    )


def _folders(linked: Path, cache: Path) -> Iterator[tuple[str, str]]:
    """Yield the cache's folder of each wheel and the name of its dist-info, by one hard link."""
    wanted = {_link(path) for path in linked.glob(f"*{_INFO}/METADATA")}
    for path in sorted(cache.glob(f"*/*{_INFO}/METADATA")):
        if _link(path) in wanted:
            wanted.remove(_link(path))
            yield f"{path.parents[1]}", path.parent.name


def _link(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return path.parent.name, status.st_dev, status.st_ino


def _hash(
    contents: MutableMapping[arrivals.Known, str],
    looks: Mapping[str, Mapping[str, os.stat_result]],
) -> None:
    new = {
        path: look
        for files in looks.values()
        for path, look in files.items()
        if arrivals.known(look) not in contents
    }
    answers = hash_files((path, look.st_size) for path, look in new.items())
    for path, answer in answers.items():
        if isinstance(answer, str):
            contents[arrivals.known(new[path])] = answer


def _owner(info: str) -> Owner:
    label = wheel_label(info.partition("-")[0])
    return Owner(label=label, package=f"pypi:{info}", paths=(), digests=())


def _findings(record: Path, content: Content, owner: Owner, site: str) -> Iterator[Finding]:
    try:
        rows: Sequence[RecordDifference] = wheel_differences(record.read_bytes(), content)
    except (OSError, ValueError) as error:
        yield _contradicted(owner, "RECORD", f"it cannot be read: {error}")
        return
    differing = {row.path for row in rows if row.kind == "hash"}
    for row in rows:
        if row.kind == "hash":
            yield rivals.differs(_installed(row.path, site) or f"{owner.label}: {row.path}", owner)
        elif row.kind == "weak" and row.listed != NO_HASH:
            told = f"RECORD has {row.listed} for it, weaker than sha256"
            yield _contradicted(owner, row.path, told)
        elif row.kind == "size" and row.path not in differing:
            told = f"RECORD says {row.listed} bytes, and it has {row.found}"
            yield _contradicted(owner, row.path, told)


def _contradicted(owner: Owner, path: str, what: str) -> Finding:
    return Finding(
        code="record-contradicted",
        severity=Severity.ERROR,
        where=f"{owner.label}: {path}",
        what=what,
        why="the wheel contradicts its own RECORD, whatever the hash of the whole of it",
        hint="take another version or build of it, or tell who publishes it; where it has to be"
        " this one, put it into the recipe's `allow`",
    )


def _installed(path: str, site: str) -> str | None:
    """Return where a file of a wheel lies in a prefix; None where it is written anew."""
    if match := _LIBRARY.match(path):
        return f"{site}{path[match.end() :]}"
    if match := _DATA.match(path):
        return path[match.end() :]
    return None if path.partition("/")[0].endswith(".data") else f"{site}{path}"
