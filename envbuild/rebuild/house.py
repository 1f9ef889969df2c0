"""The wheelhouse: rebuilt wheels, each with its provenance, as a package index of files (PEP 503).

::

    WHEELHOUSE/index.html
    WHEELHOUSE/NAME/index.html                    every wheel of NAME with its hash
    WHEELHOUSE/NAME/FILE.whl                      whole or not at all, never changed
    WHEELHOUSE/NAME/FILE.whl.provenance.json      how it was built
    WHEELHOUSE/NAME/FILE.whl.log                  what its build printed
    WHEELHOUSE/lock                               held while something is put in or taken out

uv and pip read it as an index at its `file:` address.
"""

import html
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from envbuild.access import Access
from envbuild.errors import FetchError, InputError, StoreError
from envbuild.packages import WHEELHOUSE, PipPackage
from envbuild.rebuild import provenance
from envbuild.tools import locks
from envbuild.tools.files import make_folder, sha256_file, sync_folder, write_atomic
from envbuild.tools.uv_question import Source

_PATIENCE_S = 60.0
_PROVENANCE = ".provenance.json"
_LOG = ".log"


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A wheel in a wheelhouse.

    Attributes:
        path: Its file.
        name: Its normalized name.
        version: Its version, with the local one.
        sha256: Its digest, as its provenance has it.
        statement: Its provenance.
    """

    path: Path
    name: str
    version: Version
    sha256: str
    statement: provenance.Statement


class House:
    """A wheelhouse in a folder, which need not be there yet."""

    def __init__(self, root: Path) -> None:
        """Keep the folder."""
        self.root = root

    @property
    def address(self) -> str:
        """What uv and pip are told."""
        return self.root.absolute().as_uri()

    def wheels(self, name: str | None = None) -> Iterator[Kept]:
        """Yield the wheels, of all projects or of one, sorted by name, version and build.

        A wheel without provenance that can be read is none of ours, and left out.
        """
        pattern = canonicalize_name(name) if name is not None else "*"
        found: list[tuple[Any, Kept]] = []
        for path in self.root.glob(f"{pattern}/*.whl"):
            try:
                statement = provenance.loads(self.statement_file(path).read_bytes())
                project, version, build, _ = parse_wheel_filename(path.name)
            except (OSError, ValueError):
                continue
            kept = Kept(
                path=path,
                name=project,
                version=version,
                sha256=statement.sha256,
                statement=statement,
            )
            found.append(((project, version, build or (0, "")), kept))
        found.sort(key=lambda row: (row[0], row[1].path.name))
        yield from (kept for _, kept in found)

    def find(self, text: str) -> Kept:
        """Return the wheel that a file's name, a project, or the begin of a SHA-256 means.

        Raises:
            InputError: There is none, or several with that digest.
        """
        every = list(self.wheels())
        exact = [one for one in every if one.path.name == text]
        named = [one for one in every if one.name == canonicalize_name(text)]
        digest = [one for one in every if len(text) >= 6 and one.sha256.startswith(text.lower())]  # noqa: PLR2004
        for found in (exact, named, digest):
            if found:
                return found[-1]
        message = f"the wheelhouse has no wheel {text}"
        raise InputError(message, source=f"{self.root}", hint="envbuild wheel list")

    def statement_file(self, wheel: Path) -> Path:
        """Return the file of a wheel's provenance."""
        return wheel.with_name(f"{wheel.name}{_PROVENANCE}")

    def log(self, wheel: Path) -> Path:
        """Return the file of what a wheel's build printed."""
        return wheel.with_name(f"{wheel.name}{_LOG}")

    def put(self, wheel: Path, statement: provenance.Statement, log: Path) -> Kept:
        """Put a wheel in; readers see the index without it or with all of it.

        Raises:
            StoreError: The folder cannot be written, or a wheel of that name with other content
                is there.
        """
        name, version, _, _ = parse_wheel_filename(wheel.name)
        folder = self.root / name
        final = folder / wheel.name
        try:
            make_folder(folder)
            with locks.exclusive(
                self.root / "lock", timeout_s=_PATIENCE_S, purpose="wheel rebuild"
            ):
                if final.exists() and sha256_file(final) != statement.sha256:
                    message = f"{final}: another wheel of that name is there"
                    raise StoreError(message, hint="envbuild wheel list")
                shutil.copyfile(log, self.log(final))
                write_atomic(self.statement_file(final), statement.text)
                temporary = folder / f".{wheel.name}.{os.getpid():08x}"
                try:
                    shutil.copyfile(wheel, temporary)
                    temporary.chmod(0o644)
                    temporary.replace(final)
                finally:
                    temporary.unlink(missing_ok=True)
                self._write_index(name)
        except OSError as error:
            message = f"{folder}: the wheel cannot be put there: {error.strerror or error}"
            raise StoreError(message, hint="see whether the store can be written") from error
        return Kept(
            path=final, name=name, version=version, sha256=statement.sha256, statement=statement
        )

    def next_build(self, filename: str) -> int:
        """Return the build tag that a new wheel gets which differs from those of its name."""
        parts = filename.split("-")
        stem, tags = "-".join(parts[:2]), "-".join(parts[-3:])
        builds = [
            parse_wheel_filename(path.name)[2] or (0, "")
            for path in self.root.glob(f"*/{stem}-*.whl")
            if path.name.endswith(tags)
        ]
        return max((build[0] for build in builds), default=0) + 1

    def remove(self, kept: Kept) -> None:
        """Take a wheel out: first from the index, then its files.

        Raises:
            StoreError: The folder cannot be written.
        """
        try:
            with locks.exclusive(self.root / "lock", timeout_s=_PATIENCE_S, purpose="wheel gc"):
                self._write_index(kept.name, without=kept.path)
                for path in (kept.path, self.statement_file(kept.path), self.log(kept.path)):
                    path.unlink(missing_ok=True)
        except OSError as error:
            message = f"{kept.path}: it cannot be removed: {error.strerror or error}"
            raise StoreError(message) from error

    def _write_index(self, name: str, without: Path | None = None) -> None:
        rows = [
            f'<a href="{quote(one.path.name)}#sha256={one.sha256}">{html.escape(one.path.name)}</a>'
            for one in self.wheels(name)
            if one.path != without
        ]
        write_atomic(self.root / name / "index.html", _page(name, rows))
        projects = sorted(path.parent.name for path in self.root.glob("*/index.html"))
        links = [f'<a href="{project}/">{project}</a>' for project in projects]
        write_atomic(self.root / "index.html", _page("wheelhouse", links))
        sync_folder(self.root)


def _page(title: str, links: list[str]) -> str:
    body = "".join(f"{link}<br>\n" for link in links)
    return (
        '<!DOCTYPE html>\n<html><head><meta name="pypi:repository-version" content="1.0">'
        f"<title>{title}</title></head><body>\n{body}</body></html>\n"
    )


def source(root: Path, access: Access) -> Source:
    """Return a wheelhouse as uv is told of it: a folder, or what the user set in its place."""
    house = House(root)
    return Source(
        name=WHEELHOUSE,
        url=access.index_logins.get(WHEELHOUSE) or house.address,
        packages=frozenset(kept.name for kept in house.wheels()),
        cutoff="none",
    )


def check_has(root: Path, packages: Iterable[PipPackage], *, name: str) -> None:
    """Refuse rebuilt wheels of a lock that a wheelhouse does not have.

    Args:
        root: The wheelhouse's folder.
        packages: The rebuilt packages of the lock.
        name: The lock's.

    Raises:
        FetchError: One is missing; says where it comes from.
    """
    there = {kept.sha256 for kept in House(root).wheels()}
    missing = [one for one in packages if not there.intersection(one.hashes)]
    if missing:
        files = ", ".join(f"{one.name} {one.version}" for one in missing)
        message = f"{files}: rebuilt from sources, and not in the wheelhouse {root}"
        hint = (
            f"envbuild wheel rebuild {name} makes it here; or copy the wheelhouse of the host that "
            f"locked {name}, or serve it and set ENVBUILD_INDEXES={WHEELHOUSE}=https://…"
        )
        details = "\n".join(
            f"{one.name} sha256:{digest}" for one in missing for digest in one.hashes
        )
        raise FetchError(message, hint=hint, details=details)


def check(kept: Kept) -> tuple[str, ...]:
    """Return what is wrong with a wheel and its provenance, nothing where they agree."""
    wrong = []
    try:
        if sha256_file(kept.path) != kept.statement.sha256:
            wrong.append("the wheel is not the one that its provenance is of: other sha256")
        if kept.statement.subject != kept.path.name:
            wrong.append(f"its provenance is of {kept.statement.subject}")
    except OSError as error:
        wrong.append(f"cannot be read: {error.strerror}")
    wrong += provenance.problems(json.loads(kept.statement.text))
    return tuple(wrong)
