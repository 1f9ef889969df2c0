"""Rows of the tables, held against what is read anew."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any, Literal

from envbuild.compat.derive import libraries
from envbuild.compat.derive.builds import Derived, derive
from envbuild.compat.derive.index import Index
from envbuild.compat.model import FrameworkBuild
from envbuild.compat.row import Row

Verdict = Literal["same", "differs", "not derivable"]

_WORKERS = 6
_COMMON = ("sources", "read", "confidence", "note", "site")
_IN_THE_NAME = ("framework", "version", "origin", "platform")


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A column in which a row is not as it was read.

    Attributes:
        column: Its name, `release` where the index lacks the whole build.
        table: What the table says, None for nothing.
        found: What was read, None for nothing.
    """

    column: str
    table: Any
    found: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    """What came of a row.

    Attributes:
        row: The row.
        verdict: Whether it is as it was read; what has no files on PyPI is not derivable.
        differences: Where it differs.
        checked: Columns that were read.
        unread: Columns that reading the libraries would tell.
        documented: Columns that come from the documents among the row's sources.
    """

    row: Row
    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    checked: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    documented: tuple[str, ...] = ()


def is_derivable(row: Row) -> bool:
    """Say whether a row is one of a build whose files PyPI has.

    Variants such as `cu124` are on PyTorch's own index only, conda's builds in their channels;
    other tables come from documents.
    """
    return (
        isinstance(row, FrameworkBuild)
        and row.build_string is None
        and (row.framework == "jax" or row.origin == "pypi")
    )


def verify(
    rows: Sequence[Row],
    index: Callable[[], Index],
    *,
    read_libraries: bool,
    told: Callable[[str], None],
) -> list[Verified]:
    """Read rows anew and return what came of each, in order.

    Args:
        rows: What is looked at.
        index: Makes what the builds are read from; not called where nothing can be derived.
        read_libraries: Whether libraries are read, not only METADATA.
        told: Is told each release that has been read.

    Raises:
        FetchError: Something cannot be had.
    """
    builds = [row for row in rows if isinstance(row, FrameworkBuild) and is_derivable(row)]
    found: dict[tuple[str, str, str, str], Derived] = {}
    if builds:
        for derived in _read(builds, index(), read_libraries=read_libraries, told=told):
            found[derived.key] = derived
    return [_held(row, found) for row in rows]


def _read(
    builds: Sequence[FrameworkBuild],
    index: Index,
    *,
    read_libraries: bool,
    told: Callable[[str], None],
) -> Iterator[Derived]:
    """Yield what the index has of the releases of some rows, several at once."""
    releases: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for row in builds:
        named = releases.setdefault((row.framework, row.version), {})
        if row.wheel is not None:
            named[row.origin, row.platform] = row.wheel

    def read(release: tuple[str, str]) -> tuple[Derived, ...]:
        named = releases[release]
        return derive(index, *release, read_libraries=read_libraries, wheels=named)

    with ThreadPoolExecutor(_WORKERS) as pool:
        try:
            for release, derived in zip(releases, pool.map(read, releases), strict=True):
                told(f"read {' '.join(release)}")
                yield from derived
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _held(row: Row, found: Mapping[tuple[str, str, str, str], Derived]) -> Verified:
    """Hold one row against what was read."""
    if not isinstance(row, FrameworkBuild) or not is_derivable(row):
        return Verified(row=row, verdict="not derivable", documented=tuple(_columns(row)))
    derived = found.get((row.framework, row.version, row.origin, row.platform))
    if derived is None:
        lacks = Difference(column="release", table=row.wheel, found=None)
        return Verified(row=row, verdict="differs", differences=(lacks,))
    differences = tuple(_differences(row, derived.values))
    others = [one for one in _columns(row) if one not in derived.values]
    unread = () if derived.fetched_bytes or row.wheel is None else libraries.COLUMNS[row.framework]
    return Verified(
        row=row,
        verdict="differs" if differences else "same",
        differences=differences,
        checked=tuple(derived.values),
        unread=tuple(one for one in others if one in unread),
        documented=tuple(one for one in others if one not in unread),
    )


def _differences(row: FrameworkBuild, values: Mapping[str, Any]) -> Iterable[Difference]:
    for column, value in values.items():
        table = getattr(row, column)
        if (table or None) != (value or None) or isinstance(table, bool) != isinstance(value, bool):
            yield Difference(column=column, table=table, found=value)


def _columns(row: Row) -> Iterator[str]:
    """Yield the columns in which a row says something."""
    for each in fields(row):
        skipped = each.name in _COMMON or each.name in _IN_THE_NAME
        if not skipped and getattr(row, each.name) not in (None, (), {}, ""):
            yield each.name
