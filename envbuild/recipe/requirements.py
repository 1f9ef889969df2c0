"""PyPI requirements of a recipe: PEP 508 with hashes, and which of them collide."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, cast

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envbuild.recipe.model import Recipe

MARKER_NAMES: Final = (
    "python_version",
    "python_full_version",
    "os_name",
    "sys_platform",
    "platform_release",
    "platform_system",
    "platform_version",
    "platform_machine",
    "platform_python_implementation",
    "implementation_name",
    "implementation_version",
    "extra",
)
_HASH: Final = re.compile(r"\s--hash[= ](\S+)")
_LONGEST: Final = 2_000
_STRINGS: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_WORDS: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class PipNeed:
    """One PyPI requirement of a recipe.

    Attributes:
        requirement: Name, extras, versions and marker.
        hashes: SHA-256 (hex) of the only files that may be taken; none: any.
        text: The requirement without its hashes, as the recipe writes it.
        path: Where it stands in the recipe.
    """

    requirement: Requirement
    hashes: tuple[str, ...] = ()
    text: str
    path: tuple[str | int, ...] = ()

    @property
    def name(self) -> str:
        """The normalised project name."""
        return canonicalize_name(self.requirement.name)


def pip_needs(recipe: Recipe) -> tuple[PipNeed, ...]:
    """Return what a checked recipe wants from PyPI, in its order."""
    return tuple(parse(text, path=("pypi", place)) for place, text in enumerate(recipe.pypi))


def parse(written: str, *, path: tuple[str | int, ...] = ()) -> PipNeed:
    """Take a requirement apart.

    Raises:
        ValueError: It is not one, or points at an address or a path; says what is wrong.
    """
    hashes = tuple(_sha256(found) for found in _HASH.findall(written))
    text = _HASH.sub("", written).replace("\\\n", " ").strip()
    if len(text) > _LONGEST:
        message = f"longer than {_LONGEST:,} characters"
        raise ValueError(message)
    _refuse_other_kinds(text)
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(_reason(text, error)) from error
    if requirement.url is not None:
        message = f"{requirement.name} is asked for at an address, which no index can serve again"
        raise ValueError(message)
    return PipNeed(requirement=requirement, hashes=hashes, text=text, path=path)


def name_of(written: str) -> str | None:
    """Return the normalised project name of a requirement, or None if it is not one."""
    match = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", written)
    return canonicalize_name(match[1].rstrip("._-")) if match else None


def same(one: PipNeed, other: PipNeed) -> bool:
    """Whether two needs say the same, however it is written."""
    return one.requirement == other.requirement and set(one.hashes) == set(other.hashes)


class Collisions:
    """Keeps needs by project, to find those that can count together with another."""

    def __init__(self) -> None:
        """Begin with none."""
        self._needs: dict[str, list[PipNeed]] = {}

    def add(self, need: PipNeed) -> PipNeed | None:
        """Return the earlier need that collides with this one; if none does, keep this one."""
        earlier = self._needs.setdefault(need.name, [])
        found = next((other for other in earlier if collide(other, need)), None)
        if found is None:
            earlier.append(need)
        return found


def collide(one: PipNeed, other: PipNeed) -> bool:
    """Whether two needs are of one project and can both count, for some Python or machine."""
    if one.name != other.name:
        return False
    markers = (one.requirement.marker, other.requirement.marker)
    if markers[0] is None or markers[1] is None:
        return True
    return any(
        _holds(markers[0], environment) and _holds(markers[1], environment)
        for environment in _environments(f"{markers[0]} {markers[1]}")
    )


def _refuse_other_kinds(text: str) -> None:
    """Refuse what pip takes in a file but a lock cannot hold."""
    kinds = (
        (r"-e\b|--editable", "an editable project has no release that could be locked"),
        (r"-", "an option of pip is no requirement"),
        (r"(git|hg|svn|bzr)\+|[a-z]+://", "an address cannot be served again by an index"),
        (r"\.{0,2}/|~", "a path exists only on this machine"),
        (r"\S+\.(whl|tar\.gz|zip)$", "a file exists only on this machine"),
    )
    for pattern, reason in kinds:
        if re.match(pattern, text):
            message = f"{reason}: {text!r}; name the project and its version instead"
            raise ValueError(message)


def _sha256(text: str) -> str:
    algorithm, _, digest = text.partition(":")
    if algorithm != "sha256":
        message = f"expected --hash=sha256:…, found the algorithm {algorithm!r}"
        raise ValueError(message)
    if not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
        message = f"a SHA-256 has 64 hexadecimal digits, found {digest!r}"
        raise ValueError(message)
    return digest.lower()


def _reason(text: str, error: InvalidRequirement) -> str:
    """Say what is wrong with a requirement, in our words where we know them."""
    before, semicolon, marker = text.partition(";")
    if semicolon:
        try:
            Requirement(before)
            Marker(marker)
        except InvalidMarker:
            return _marker_reason(marker.strip())
        except InvalidRequirement:
            pass
    first = str(error).splitlines()[0]
    return f'expected a requirement such as "numpy >=1.26,<2", found {text!r} ({first})'


def _marker_reason(marker: str) -> str:
    known = {
        *MARKER_NAMES,
        "and",
        "or",
        "not",
        "in",
        "extras",
        "dependency_groups",
        "os.name",
        "sys.platform",
        "platform.version",
        "platform.machine",
        "platform.python_implementation",
        "python_implementation",
    }
    for word in _WORDS.findall(_STRINGS.sub(" ", marker)):
        if word not in known:
            near = get_close_matches(word, MARKER_NAMES, n=1, cutoff=0.0)
            return f"the marker {marker!r} has the unknown name {word!r}; did you mean {near[0]}?"
    return f"the marker {marker!r} cannot be read"


def _holds(marker: Marker, environment: Mapping[str, str]) -> bool:
    return marker.evaluate(cast("dict[str, str]", environment))


def _environments(markers: str) -> Iterator[dict[str, str]]:
    """Give the environments in which markers could differ: around each version they name."""
    versions = {f"3.{minor}.{micro}" for minor in range(8, 17) for micro in (0, 5)}
    for major, minor, micro in re.findall(r"[\"'](\d+)\.(\d+)(?:\.(\d+))?", markers):
        patch = int(micro or 0)
        versions |= {f"{major}.{minor}.{near}" for near in (max(patch - 1, 0), patch, patch + 1)}
    for version in sorted(versions):
        for machine in ("x86_64", "aarch64"):
            yield {
                "python_version": ".".join(version.split(".")[:2]),
                "python_full_version": version,
                "implementation_version": version,
                "implementation_name": "cpython",
                "platform_python_implementation": "CPython",
                "os_name": "posix",
                "sys_platform": "linux",
                "platform_system": "Linux",
                "platform_machine": machine,
                "platform_release": "",
                "platform_version": "",
                "extra": "",
            }
