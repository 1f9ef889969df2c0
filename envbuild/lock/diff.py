"""What differs between two locks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from envbuild.lock.model import Lock
from envbuild.packages import CondaPackage, PipPackage
from envbuild.target import Platform

Kind = Literal["added", "removed", "changed"]
Half = Literal["conda", "pypi"]

_SIGNS: dict[Kind, str] = {"added": "+", "removed": "-", "changed": "~"}
_FIELDS = ("cutoff", "host_python", "channels", "compiler", "link_scripts", "uncut_indexes")


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One package that differs.

    Attributes:
        platform: conda subdir.
        half: conda or pypi.
        kind: Whether it came, went, or is another one.
        name: The package.
        old: What it was (`1.26.4`, with the build or the digest where only that differs).
        new: What it is.
    """

    platform: Platform
    half: Half
    kind: Kind
    name: str
    old: str | None
    new: str | None

    def text(self) -> str:
        """Return the change as a line (`~ numpy 1.26.4 -> 2.0.0`)."""
        sign = _SIGNS[self.kind]
        if self.kind == "changed":
            return f"{sign} {self.name} {self.old} -> {self.new}"
        return f"{sign} {self.name} {self.old if self.new is None else self.new}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LockDiff:
    """What differs between two locks; false if nothing does.

    Attributes:
        changes: Packages, by platform, half and name.
        fields: Other things: name, what it was, what it is.
    """

    changes: tuple[Change, ...] = ()
    fields: tuple[tuple[str, str, str], ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(self.changes or self.fields)

    def text(self) -> str:
        """Return the difference as lines, platforms with equal changes together."""
        groups: dict[tuple[Half, tuple[str, ...]], list[Platform]] = {}
        for platform in dict.fromkeys(change.platform for change in self.changes):
            for half in dict.fromkeys(change.half for change in self.changes):
                lines = tuple(
                    change.text()
                    for change in self.changes
                    if (change.platform, change.half) == (platform, half)
                )
                if lines:
                    groups.setdefault((half, lines), []).append(platform)
        parts = [
            "\n".join([f"{half}, {' and '.join(platforms)}:", *(f"  {line}" for line in lines)])
            for (half, lines), platforms in groups.items()
        ]
        parts += [f"{name}: {old or 'none'} -> {new or 'none'}" for name, old, new in self.fields]
        return "\n".join(parts)

    def as_json(self) -> dict[str, object]:
        """Return the difference as JSON has it."""
        return {
            "packages": [
                {
                    "platform": change.platform,
                    "half": change.half,
                    "change": change.kind,
                    "name": change.name,
                    "old": change.old,
                    "new": change.new,
                }
                for change in self.changes
            ],
            "fields": [{"name": name, "old": old, "new": new} for name, old, new in self.fields],
        }


def diff(old: Lock | None, new: Lock) -> LockDiff:
    """Return what differs between two locks; without an old one everything is added."""
    platforms = sorted({half.platform for lock in (old, new) if lock for half in lock.platforms})
    changes: list[Change] = []
    for platform in platforms:
        before = old.for_platform(platform) if old else None
        after = new.for_platform(platform)
        conda = _rows(before.conda if before else (), after.conda if after else ())
        changes += _changes(platform, "conda", conda)
        pip = _rows(before.pip if before else (), after.pip if after else ())
        changes += _changes(platform, "pypi", pip)
    return LockDiff(changes=tuple(changes), fields=tuple(_fields(old, new)) if old else ())


Package = CondaPackage | PipPackage
Row = tuple[Package | None, Package | None]


def _rows(old: Iterable[Package], new: Iterable[Package]) -> Iterator[Row]:
    before = {_key(package): package for package in old}
    after = {_key(package): package for package in new}
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            yield before.get(key), after.get(key)


def _key(package: Package) -> tuple[str, str]:
    return package.name, (package.marker or "" if isinstance(package, PipPackage) else "")


def _changes(platform: Platform, half: Half, rows: Iterable[Row]) -> Iterator[Change]:
    for old, new in rows:
        kind: Kind = "added" if old is None else "removed" if new is None else "changed"
        one = new or old
        if one is None:
            continue
        yield Change(
            platform=platform,
            half=half,
            kind=kind,
            name=one.name,
            old=None if old is None else _told(old, new),
            new=None if new is None else _told(new, old),
        )


def _told(one: Package, other: Package | None) -> str:
    """Return what a package is, as far as is needed to tell it from the other."""
    marker = f" ; {one.marker}" if isinstance(one, PipPackage) and one.marker else ""
    if other is None or one.version != other.version:
        return one.version + marker
    if isinstance(one, CondaPackage) and isinstance(other, CondaPackage):
        return f"{one.version} {_conda_told(one, other)}"
    if isinstance(one, PipPackage) and isinstance(other, PipPackage):
        return f"{one.version} {_pip_told(one, other)}"
    return one.version


def _conda_told(one: CondaPackage, other: CondaPackage) -> str:
    if one.build != other.build:
        return one.build
    if one.url != other.url:
        return one.url
    if (one.sha256, one.md5) != (other.sha256, other.md5):
        return _digest(one)
    return f"needing {', '.join(one.depends) or 'nothing'}"


def _pip_told(one: PipPackage, other: PipPackage) -> str:
    if one.index != other.index:
        return f"from {one.index or 'the default index'}"
    if one.hashes != other.hashes:
        own = [digest[:12] for digest in one.hashes if digest not in other.hashes]
        return f"({len(one.hashes)} wheels{_some(own)})"
    return f"via {', '.join(one.via) or 'nothing'}"


def _digest(package: CondaPackage) -> str:
    kind, digest = ("sha256", package.sha256) if package.sha256 else ("md5", package.md5 or "")
    return f"{kind}:{digest[:12]}"


def _some(own: list[str]) -> str:
    return f", {' '.join(own[:3])}{' …' if len(own) > 3 else ''}" if own else ""  # noqa: PLR2004


def _fields(old: Lock, new: Lock) -> Iterator[tuple[str, str, str]]:
    for field in _FIELDS:
        before, after = _shown(getattr(old, field)), _shown(getattr(new, field))
        if before != after:
            yield field, before, after
    asked, was = dict(new.asked), dict(old.asked)
    for section in sorted(asked.keys() | was.keys()):
        if asked.get(section) != was.get(section):
            yield f"recipe's {section}", was.get(section, ""), asked.get(section, "")
    if old.solve_digest != new.solve_digest and asked == was:
        yield "solve_digest", old.solve_digest, new.solve_digest


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return "" if value is None else str(value)
