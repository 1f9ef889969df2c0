"""Is a freshly linked prefix what its packages declare? Hashes only what the ledger cannot know."""

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from envbuild.findings import Finding, Findings, Severity
from envbuild.store import arrivals, rivals
from envbuild.store.installed import Owner, Seen, is_link
from envbuild.store.ledger import Tree
from envbuild.store.modes import PLAIN, PROGRAM, final_mode
from envbuild.tools.hashing import hash_files

_SOURCE = "source:"

_Known = tuple[int, int, int, str]

Row = list[Any]
"""Path, kind, digest, mode, size, owner: as `store.manifest.dumps_files` takes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """What a check of a prefix found.

    Attributes:
        owners: Labels that rows refer to.
        rows: Every file, sorted by path.
        findings: What is wrong.
        spoiled: Owners whose files in the cache are not what their packages declare.
        again: Names of wheels to install once more, in this order: see `rivals.Rivalry`.
        learned: What the ledger should remember.
    """

    owners: tuple[str, ...]
    rows: list[Row]
    findings: Findings
    spoiled: tuple[Owner, ...] = ()
    again: tuple[str, ...] = ()
    learned: Mapping[str, Tree] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(row[4] for row in self.rows if isinstance(row[4], int))


@dataclass(kw_only=True, slots=True)
class _Work:
    """What one check gathers.

    Attributes:
        prefix: The prefix.
        seen: What lies in it.
        rewritten: Files that link scripts changed or removed.
        claims: Path to the number of the owner that claimed it first.
        rivals: Path to the numbers of its owners, where several claim it.
        declared: What owners declare of files that the ledger does not know.
        links: Symbolic links.
        rows: Rows of files that the ledger knows.
        digests: Contents, as far as they are known.
        findings: What is wrong.
        spoiled: Owners whose files in the cache are wrong.
        learned: Owners of which something new is known.
    """

    prefix: str
    seen: Mapping[str, os.stat_result]
    rewritten: frozenset[str] = frozenset()
    claims: dict[str, int] = field(default_factory=dict)
    rivals: dict[str, list[int]] = field(default_factory=dict)
    declared: dict[str, str | None] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    spoiled: set[int] = field(default_factory=set)
    learned: set[int] = field(default_factory=set)


def check(
    prefix: Path,
    seen: Seen,
    owners: Sequence[Owner],
    known: Mapping[str, Tree],
    *,
    contents: Mapping[arrivals.Known, str] | None = None,
    rewritten: frozenset[str] = frozenset(),
    done: Callable[[int], None] | None = None,
) -> Checked:
    """Compare what lies in a prefix with what its packages declare.

    Codes: `file-missing`, `file-differs`, `file-unreadable` (errors), and those of `rivals`.

    Args:
        prefix: The prefix.
        seen: What lies in it.
        owners: Its packages, conda's first.
        known: What the ledger knows of conda's packages, by `Owner.package`; of wheels it stands
            in `Owner.known`.
        contents: Files that were hashed on their way here.
        rewritten: Files that link scripts changed or removed: what is declared no longer counts.
        done: Told about the bytes hashed, from several threads.

    Raises:
        OSError: A link cannot be read.
    """
    work = _Work(prefix=os.fspath(prefix), seen=seen.files, rewritten=rewritten)
    unknown: list[tuple[str, int]] = []
    for number, owner in enumerate(owners):
        _claim(work, number, owner, owner.known or known.get(owner.package), unknown)
    for path in seen.files.keys() - work.claims.keys():
        status = seen.files[path]
        if is_link(status):
            work.links.append(path)
        else:
            unknown.append((path, status.st_size))
    sources = _unknown_sources(owners, known)
    _hash(work, owners, _unhashed(work, unknown, contents or {}), sources, done)
    again = _judge(work, owners)
    return Checked(
        owners=tuple(owner.label for owner in owners),
        rows=_rows(work, unknown),
        findings=tuple(sorted(work.findings, key=lambda finding: (finding.where, finding.code))),
        spoiled=tuple(owners[number] for number in sorted(work.spoiled)),
        again=again,
        learned={
            owners[number].package: _tree(work, owners[number])
            for number in sorted(work.learned - work.spoiled)
        },
    )


def _claim(
    work: _Work, number: int, owner: Owner, tree: Tree | None, unknown: list[tuple[str, int]]
) -> None:
    """Take what the ledger knows of an owner's files; list the others."""
    seen, claims, declared, digests = work.seen, work.claims, work.declared, work.digests
    rows, known = work.rows, _known_rows(owner, tree)
    for (path, digest), row in zip(
        zip(owner.paths, owner.digests, strict=True), known, strict=True
    ):
        if path in claims:
            if claims[path] != number:
                work.rivals.setdefault(path, [claims[path]]).append(number)
            continue
        claims[path] = number
        status = seen.get(path)
        if status is None:
            if not path.endswith(".pyc") and path not in work.rewritten:
                work.findings.append(_missing(path, owner))
        elif (
            row is not None
            and row[0] == status.st_ino
            and row[1] == status.st_size
            and row[2] == status.st_mtime_ns
            and (digest is None or digest == row[3])
        ):
            digests[path] = row[3]
            mode = PROGRAM if status.st_mode & 0o111 else PLAIN
            rows.append([path, "file", row[3], mode, status.st_size, number])
        elif stat.S_ISLNK(status.st_mode):
            work.links.append(path)
        else:
            declared[path] = None if path in work.rewritten else digest
            unknown.append((path, status.st_size))


def _known_rows(owner: Owner, tree: Tree | None) -> "Iterable[_Known | None]":
    """Return what the ledger knows of each of an owner's files, in their order."""
    if tree is None:
        return [None] * len(owner.paths)
    rows = zip(tree.inodes, tree.sizes, tree.mtimes_ns, tree.digests, strict=True)
    if owner.known is None:
        by_path = dict(zip(tree.paths, rows, strict=True))
        return [by_path.get(path) for path in owner.paths]
    first = list(islice(rows, tree.listed))
    by_path = dict(zip(tree.paths[tree.listed :], rows, strict=True))
    return [*first, *(by_path.get(path) for path in owner.paths[owner.listed :])]


def _unknown_sources(
    owners: Sequence[Owner], known: Mapping[str, Tree]
) -> list[tuple[str, int, int]]:
    """Return files of the cache that were copied and are not known: path, bytes, owner."""
    unknown: list[tuple[str, int, int]] = []
    for number, owner in enumerate(owners):
        if not owner.sources:
            continue
        tree = known.get(owner.package)
        paths = [_SOURCE + path for path, _ in owner.sources]
        rows = _known_rows(replace(owner, paths=paths), tree)
        for (path, digest), row in zip(owner.sources, rows, strict=True):
            status = _status(path)
            if status is None or row != _look(status, digest):
                unknown.append((path, status.st_size if status else 0, number))
    return unknown


def _look(status: os.stat_result, digest: str) -> _Known:
    return status.st_ino, status.st_size, status.st_mtime_ns, digest


def _unhashed(
    work: _Work, unknown: Iterable[tuple[str, int]], contents: Mapping[arrivals.Known, str]
) -> list[tuple[str, int]]:
    """Take what was hashed already, and return the rest."""
    rest: list[tuple[str, int]] = []
    for path, size in unknown:
        status = work.seen[path]
        digest = contents.get((status.st_ino, status.st_size, status.st_mtime_ns))
        if digest is None:
            rest.append((path, size))
        else:
            _note(work, path, digest)
    return rest


def _note(work: _Work, path: str, digest: str) -> None:
    """Keep a content, and that the ledger may learn it where a cache shares the file."""
    work.digests[path] = digest
    if path in work.claims and work.seen[path].st_nlink > 1:
        work.learned.add(work.claims[path])


def _hash(
    work: _Work,
    owners: Sequence[Owner],
    unknown: Iterable[tuple[str, int]],
    sources: Iterable[tuple[str, int, int]],
    done: Callable[[int], None] | None,
) -> None:
    """Hash what is not known, and note whose cache entries have something to remember."""
    names = {f"{work.prefix}/{path}": (path, size) for path, size in unknown}
    copied = {path: (size, number) for path, size, number in sources}
    jobs = [(full, size) for full, (_, size) in names.items()]
    jobs += [(path, size) for path, (size, _) in copied.items()]
    for full, answer in hash_files(jobs, done=done).items() if jobs else ():
        if full in copied:
            number = copied[full][1]
            work.learned.add(number)
            if answer != dict(owners[number].sources)[full]:
                work.spoiled.add(number)
                work.findings.append(rivals.differs(full, owners[number]))
            continue
        path = names[full][0]
        if isinstance(answer, OSError):
            work.findings.append(_unreadable(path, answer))
            continue
        _note(work, path, answer)


def _judge(work: _Work, owners: Sequence[Owner]) -> tuple[str, ...]:
    """Compare digests with what is declared; return the wheels to install once more."""
    declared, digests = work.declared, work.digests
    for path, wanted in declared.items():
        found = digests.get(path)
        if wanted is None or found is None or wanted == found or path in work.rivals:
            continue
        number = work.claims[path]
        work.findings.append(rivals.differs(path, owners[number]))
        if work.seen[path].st_nlink > 1:
            work.spoiled.add(number)
    rivalry = rivals.judge(work.rivals, owners, digests)
    work.findings += rivalry.findings
    work.claims |= rivalry.holders
    for owner in owners:
        for lost, path in owner.moved.items():
            winner = work.claims.get(path)
            if winner is not None and _content(work, path) != _content(work, lost):
                work.findings.append(rivals.clobber(path, owners[winner], owner))
    return rivalry.again


def _content(work: _Work, path: str) -> str | None:
    """Return the digest of a file, or where a link leads."""
    status = work.seen.get(path)
    if status is not None and is_link(status):
        return f"-> {os.readlink(f'{work.prefix}/{path}')}"  # noqa: PTH115
    return work.digests.get(path)


def _tree(work: _Work, owner: Owner) -> Tree:
    """Return what the ledger should remember of an owner; of files that no cache shares, nothing.

    They keep their place in the listing, with an inode that no file has.
    """
    rows: list[tuple[str, _Known]] = []
    for path, declared in zip(owner.paths, owner.digests, strict=True):
        status = work.seen.get(path)
        digest = work.digests.get(path, "")
        proven = bool(digest) and declared in {None, digest}
        if status is None or status.st_nlink == 1 or not proven:
            rows.append((path, (0, 0, 0, declared or "")))
        else:
            rows.append((path, _look(status, digest)))
    for path, digest in owner.sources:
        if (status := _status(path)) is not None:
            rows.append((_SOURCE + path, _look(status, digest)))
    return Tree(
        listing=owner.listing,
        listed=owner.listed,
        paths=[path for path, _ in rows],
        inodes=[row[0] for _, row in rows],
        sizes=[row[1] for _, row in rows],
        mtimes_ns=[row[2] for _, row in rows],
        digests=[row[3] for _, row in rows],
    )


def _rows(work: _Work, unknown: Sequence[tuple[str, int]]) -> list[Row]:
    """Return the rows of all files, with those of links and of what was hashed now."""
    rows = work.rows
    for path in work.links:
        to = os.readlink(f"{work.prefix}/{path}")  # noqa: PTH115
        rows.append([path, "link", to, 0, 0, work.claims.get(path)])
    for path, size in unknown:
        if (digest := work.digests.get(path)) is not None:
            mode = final_mode(work.seen[path].st_mode)
            rows.append([path, "file", digest, mode, size, work.claims.get(path)])
    rows.sort(key=itemgetter(0))
    return rows


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _missing(path: str, owner: Owner) -> Finding:
    return Finding(
        code="file-missing",
        severity=Severity.ERROR,
        where=path,
        what=f"{owner.label} declares it and it is not there",
        why=rivals.contradiction(owner),
    )


def _unreadable(path: str, error: OSError) -> Finding:
    return Finding(
        code="file-unreadable",
        severity=Severity.ERROR,
        where=path,
        what=f"it cannot be read: {error.strerror}",
    )
