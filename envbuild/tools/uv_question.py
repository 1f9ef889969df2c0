"""What uv is asked, as the files and options that it reads."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit, urlunsplit

from envbuild.access import Access
from envbuild.packages import PipPackage
from envbuild.target import MACHINES, Target
from envbuild.tools.addresses import without_login

DEFAULT_INDEX = "the default index"

_GLIBC_MINORS = (17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)

_FOR_EVER = "max-age=365000000, immutable"
"""What uv assumes of PyPI's files, without which it asks a mirror for each of them again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """An index as uv is told of it.

    Attributes:
        name: The recipe's name for it, None for the default index.
        url: Its address, which may hold a login; None for uv's own default.
        packages: Normalized names that come from it alone; empty for the default index.
        cutoff: Instant (UTC) before which its files count, `none` for no cutoff at all, None for
            the cutoff of the whole solve.
    """

    name: str | None
    url: str | None
    packages: frozenset[str] = frozenset()
    cutoff: datetime | Literal["none"] | None = None

    @property
    def label(self) -> str:
        """What messages call it; never its address."""
        return DEFAULT_INDEX if self.name is None else f"index {self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What uv is asked to solve.

    Attributes:
        requirements: Lines in PEP 508 form.
        python: Version of the Python it is for; with `universal` the lowest.
        platform: uv's name of the platform, None with `universal`.
        universal: Whether one answer has to do for every Python and platform.
        forks: With `universal`, whether the fewest versions or, per Python, the newest are taken.
        cutoff: Instant (UTC): files count if uploaded strictly before it.
        sources: The indexes, the default one first.
        rooted: Marker by normalized name of a package that is asked for only so that uv takes it
            from its own index; empty for none.
        constraints: A constraints file's text.
        find_links: Folder with stand-in wheels, or None.
        not_emitted: Names left out of the answer.
        pins: Old packages, whose versions are to stay where they can.
    """

    requirements: Sequence[str]
    python: str
    platform: str | None
    universal: bool = False
    forks: Literal["fewest", "requires-python"] = "fewest"
    cutoff: datetime
    sources: Sequence[Source]
    rooted: Mapping[str, str] = field(default_factory=dict)
    constraints: str = ""
    find_links: Path | None = None
    not_emitted: Sequence[str] = ()
    pins: Sequence[PipPackage] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Normalized names of what is asked for."""
        from packaging.requirements import Requirement
        from packaging.utils import canonicalize_name

        return tuple(canonicalize_name(Requirement(line).name) for line in self.requirements)


def index_address(name: str, url: str, access: Access) -> str:
    """Return an index's address, with the login that uv's variables give for its name.

    Args:
        name: The recipe's name for it.
        url: Its address in the recipe.
        access: Has another address for that name, or `UV_INDEX_NAME_USERNAME` and `_PASSWORD`.
    """
    if name in access.index_logins:
        return access.index_logins[name]
    variable = f"UV_INDEX_{re.sub('[^A-Z0-9]', '_', name.upper())}"
    user = access.environment.get(f"{variable}_USERNAME")
    if not user:
        return url
    password = access.environment.get(f"{variable}_PASSWORD", "")
    parts = urlsplit(url)
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc}"))


def platform_name(target: Target) -> str:
    """Return uv's name of a platform, its glibc rounded down to one that uv knows."""
    major, _, minor = target.glibc.partition(".")
    asked = int(minor.partition(".")[0] or 0) if major == "2" else 0
    known = max((one for one in _GLIBC_MINORS if one <= asked), default=_GLIBC_MINORS[0])
    return f"{MACHINES[target.platform]}-manylinux_2_{known}"


def instant(moment: datetime) -> str:
    """Return an instant as uv reads it without regard to the machine's time zone."""
    text = moment.astimezone(UTC).isoformat(timespec="microseconds")
    return text.replace(".000000", "").replace("+00:00", "Z")


def options(question: Question, folder: Path) -> list[str]:
    """Write what uv reads beside its options, and return the options."""
    words = ["--universal", "--fork-strategy", question.forks] if question.universal else []
    if question.platform is not None:
        words += ["--python-platform", question.platform]
    if question.constraints:
        (folder / "constraints.txt").write_text(question.constraints, encoding="utf-8")
        words += ["--constraints", "constraints.txt"]
    if question.find_links is not None:
        words += ["--find-links", f"{question.find_links}"]
    for name in question.not_emitted:
        words += ["--no-emit-package", name]
    (folder / "recipe").mkdir()
    project = folder / "recipe" / "pyproject.toml"
    project.write_text(_project(question), encoding="utf-8")
    return [*words, f"{project.relative_to(folder)}"]


def pins(question: Question, folder: Path) -> list[str]:
    """Write a `pylock.toml` from which uv takes the versions to keep, and return the option."""
    if not question.pins:
        return []
    addresses = {source.name: source.url for source in question.sources}
    text = 'lock-version = "1.0"\ncreated-by = "envbuild"\n'
    for package in question.pins:
        index = None if package.index is None else addresses.get(package.index)
        rows = {
            "name": package.name,
            "version": package.version,
            "marker": package.marker,
            "index": None if index is None else without_login(index),
        }
        text += "[[packages]]\n"
        text += "".join(f"{key} = {_quoted(value)}\n" for key, value in rows.items() if value)
    (folder / "pylock.toml").write_text(text, encoding="utf-8")
    return ["--output-file", "pylock.toml"]


def _project(question: Question) -> str:
    """Return the requirements as a project: only there uv binds a package to an index."""
    lines = [*question.requirements]
    lines += [
        f"{name}{f' ; {marker}' if marker else ''}" for name, marker in question.rooted.items()
    ]
    text = '[project]\nname = "recipe"\nversion = "0"\n'
    text += f'requires-python = ">={question.python}"\n'
    text += f"dependencies = [{', '.join(_quoted(line) for line in lines)}]\n"
    named = [source for source in question.sources if source.name is not None]
    if named:
        text += "[tool.uv.sources]\n"
        for source in named:
            for package in sorted(source.packages):
                text += f"{_quoted(package)} = {{ index = {_quoted(source.name or '')} }}\n"
        text += index_tables(named, key="tool.uv.index")
    return text


def index_tables(sources: Sequence[Source], *, key: str = "index") -> str:
    """Return the indexes as TOML tables, for a `uv.toml` or (another key) a `pyproject.toml`.

    The default index is last: of two with one address, uv takes the first one's cutoff.
    """
    text = ""
    for source in sorted(sources, key=lambda source: source.name is None):
        if source.url is None:
            continue
        text += f"[[{key}]]\nurl = {_quoted(source.url)}\n"
        text += f"cache-control = {{ files = {_quoted(_FOR_EVER)} }}\n"
        text += "default = true\n" if source.name is None else "explicit = true\n"
        if source.name is not None:
            text += f"name = {_quoted(source.name)}\n"
        if source.cutoff == "none":
            text += "exclude-newer = false\n"
        elif source.cutoff is not None:
            text += f"exclude-newer = {_quoted(instant(source.cutoff))}\n"
    return text


def requirements_text(packages: Iterable[PipPackage]) -> str:
    """Return a requirements file with hashes."""
    lines = []
    for package in packages:
        marker = f" ; {package.marker}" if package.marker else ""
        hashes = "".join(f" --hash=sha256:{digest}" for digest in package.hashes)
        lines.append(f"{package.name}=={package.version}{marker}{hashes}\n")
    return "".join(lines)


def _quoted(text: str) -> str:
    """Return a TOML basic string (JSON's escapes are a part of TOML's)."""
    return json.dumps(text, ensure_ascii=True)
