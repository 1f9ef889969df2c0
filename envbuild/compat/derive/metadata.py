"""METADATA of a wheel: what a build requires of CUDA's parts, and for which Pythons it is."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envbuild.target import MACHINES, Platform

_SUFFIX = re.compile(r"-cu1[0-9]$")
_PYTHON = re.compile(r"Programming Language :: Python :: (?P<version>3\.[0-9]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Metadata:
    """What a wheel says of itself.

    Attributes:
        requires: Its requirements.
        requires_python: Its Requires-Python, or None.
        pythons: The Pythons that its classifiers name.
        extras: Its extras, as it spells them.
    """

    requires: tuple[Requirement, ...]
    requires_python: str | None
    pythons: tuple[str, ...]
    extras: tuple[str, ...]


def parse(text: str) -> Metadata:
    """Return what METADATA says; a requirement that cannot be read is left out."""
    headers = HeaderParser().parsestr(text)

    def lines(name: str) -> list[str]:
        return [" ".join(str(line).split()) for line in headers.get_all(name, [])]

    named = (_PYTHON.fullmatch(line) for line in lines("Classifier"))
    return Metadata(
        requires=tuple(_requirements(lines("Requires-Dist"))),
        requires_python=next(iter(lines("Requires-Python")), None),
        pythons=tuple(match["version"] for match in named if match),
        extras=tuple(lines("Provides-Extra")),
    )


def _requirements(lines: Iterable[str]) -> Iterator[Requirement]:
    for line in lines:
        try:
            yield Requirement(line)
        except InvalidRequirement:
            continue


def active(
    requires: Iterable[Requirement], platform: Platform, python: str, extra: str = ""
) -> dict[str, Requirement]:
    """Return the requirements that count, by normalized name without the suffix of a CUDA version.

    Args:
        requires: All of them.
        platform: What they are installed on.
        python: Major and minor version.
        extra: An extra that is asked for; then only what it adds is returned.
    """
    environment = {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": MACHINES[platform],
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "linux",
    }

    def counts(requirement: Requirement, extra: str) -> bool:
        marker = requirement.marker
        return marker is None or marker.evaluate({**environment, "extra": extra})

    return {
        _SUFFIX.sub("", canonicalize_name(one.name)): one
        for one in requires
        if counts(one, extra) and not (extra and counts(one, ""))
    }


def pin(requirements: Mapping[str, Requirement], *names: str) -> str | None:
    """Return what is required of the first of some packages: a version, a range, or None."""
    for name in names:
        if name in requirements:
            specifiers = requirements[name].specifier
            exact = [one.version for one in specifiers if one.operator == "=="]
            return exact[0] if exact and len(specifiers) == 1 else str(specifiers) or None
    return None
