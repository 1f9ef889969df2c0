"""Whether both halves meet every `Requires-Dist`: looked up by us, not believed of a solver."""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from envbuild.findings import Finding, Severity
from envbuild.solve.metadata import Metadata
from envbuild.solve.names import Provided

RECIPE = "recipe"

_ONLY_WITH_EXTRA = re.compile(r"^[^;]*;(?!.*\bor\b).*\bextra\s*==")


@dataclass(frozen=True, kw_only=True, slots=True)
class Locked:
    """A distribution of the PyPI half, as far as requirements go.

    Attributes:
        name: Normalized name.
        version: Its version.
        metadata: What its wheels say, each different one once.
    """

    name: NormalizedName
    version: Version
    metadata: tuple[Metadata, ...]


@dataclass(kw_only=True, slots=True)
class Walked:
    """What a walk over the requirements found.

    Attributes:
        via: Who asks for a distribution of the PyPI half: names, or `recipe`.
        findings: What is not met, by what it is about, so that each is told once.
    """

    via: dict[str, set[str]] = field(default_factory=dict)
    findings: dict[tuple[str, str, str], Finding] = field(default_factory=dict)

    def add(self, code: str, severity: Severity, where: str, what: str, why: str = "") -> None:
        """Keep a finding."""
        self.findings[code, where, what] = Finding(
            code=code, severity=severity, where=where, what=what, why=why, hint=_HINTS[code]
        )


_HINTS = {
    "requirement-unmet": "name a version that goes with it in the recipe, then lock again",
    "conda-extra": "name what the extra needs under `conda` or `pypi`",
    "python-unmet": "take another version of it, or of Python",
    "unreadable-requirement": "tell whoever publishes it",
}


def walk(
    roots: Sequence[Requirement],
    locked: Mapping[NormalizedName, Locked],
    provided: Mapping[NormalizedName, Provided],
    environment: Mapping[str, str],
    walked: Walked,
) -> None:
    """Follow every requirement from the recipe's own, in one marker environment.

    What nothing asks for is looked at too, and gets no entry in `walked.via`.

    Args:
        roots: The recipe's requirements.
        locked: The PyPI half as it counts in this environment.
        provided: The conda half's distributions.
        environment: Markers of the environment.
        walked: Receives who asks for what, and what is not met.
    """
    walk = _Walk(locked, provided, environment, walked)
    for root in roots:
        if root.marker is None or root.marker.evaluate(dict(environment)):
            walk.ask(root, RECIPE)
    walk.follow()
    for name in sorted(locked):
        walk.visit(name, frozenset())
        walk.follow()
    for one in locked.values():
        _judge_python(one, environment["python_full_version"], walked)


@dataclass(slots=True)
class _Walk:
    """A walk under way in one environment."""

    locked: Mapping[NormalizedName, Locked]
    provided: Mapping[NormalizedName, Provided]
    environment: Mapping[str, str]
    walked: Walked
    asked: dict[NormalizedName, set[str]] = field(default_factory=dict)
    queue: deque[NormalizedName] = field(default_factory=deque)

    def ask(self, requirement: Requirement, by: str) -> None:
        """Judge one requirement, and go to what it names."""
        name = canonicalize_name(requirement.name)
        _judge(requirement, by, self.locked.get(name), self.provided.get(name), self.walked)
        if name in self.locked:
            self.walked.via.setdefault(name, set()).add(by)
            self.visit(name, requirement.extras)

    def visit(self, name: NormalizedName, extras: Iterable[str]) -> None:
        """Look at a distribution once, and again for each extra that is new."""
        if name not in self.asked or not self.asked[name].issuperset(extras):
            self.asked.setdefault(name, set()).update(extras)
            self.queue.append(name)

    def follow(self) -> None:
        """Ask for everything that the distributions met so far require."""
        while self.queue:
            name = self.queue.popleft()
            extras = self.asked[name]
            for requirement in _active(self.locked[name], extras, self.environment, self.walked):
                self.ask(requirement, name)


def _active(
    one: Locked, extras: Iterable[str], environment: Mapping[str, str], walked: Walked
) -> Iterable[Requirement]:
    """Yield the requirements of a distribution that count in an environment, with its extras."""
    wanted = sorted(extras)
    for line in sorted({line for metadata in one.metadata for line in metadata.requires}):
        if not wanted and _ONLY_WITH_EXTRA.match(line):
            continue
        requirement = _parse(line)
        if requirement is None:
            what = f"{line!r} is no requirement that can be read"
            walked.add(
                "unreadable-requirement", Severity.WARNING, f"{one.name} {one.version}", what
            )
        elif requirement.marker is None or any(
            requirement.marker.evaluate({**environment, "extra": extra}) for extra in ("", *wanted)
        ):
            yield requirement


def _judge(
    requirement: Requirement,
    by: str,
    locked: Locked | None,
    provided: Provided | None,
    walked: Walked,
) -> None:
    """Tell whether either half meets one requirement."""
    wants = _bare(requirement)
    if locked is None and provided is None:
        walked.add(
            "requirement-unmet", Severity.ERROR, by, f"{by} needs {wants}, which no half has"
        )
        return
    version, half = (
        (locked.version, "PyPI")
        if locked is not None
        else (provided.version if provided is not None else Version("0"), "conda")
    )
    if not _contains(requirement.specifier, version):
        what = f"{by} needs {wants}, the {half} half has {version}"
        walked.add("requirement-unmet", Severity.ERROR, by, what)
    if locked is None and requirement.extras:
        walked.add(
            "conda-extra",
            Severity.WARNING,
            by,
            f"{by} needs {wants}, and conda's {requirement.name} has no extras",
            "what the extra asks for is in neither half unless something else brings it",
        )


def _bare(requirement: Requirement) -> str:
    """Return a requirement without its marker."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def _contains(specifier: SpecifierSet, version: Version) -> bool:
    """Return whether a version is allowed; `===` compares versions, since conda's text differs."""
    return all(
        version == _version(one.version)
        if one.operator == "==="
        else one.contains(version, prereleases=True)
        for one in specifier
    )


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _judge_python(one: Locked, python: str, walked: Walked) -> None:
    for text in sorted({metadata.requires_python or "" for metadata in one.metadata} - {""}):
        try:
            fits = SpecifierSet(text).contains(python, prereleases=True)
        except InvalidSpecifier:
            continue
        if not fits:
            what = f"{one.name} {one.version} needs Python {text}, this is {python}"
            walked.add("python-unmet", Severity.ERROR, f"{one.name} {one.version}", what)


@cache
def _parse(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None
