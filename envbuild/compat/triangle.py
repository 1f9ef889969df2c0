"""Which framework builds work with which card, driver, CUDA, cuDNN and Python, and why not.

Everything is judged by one function, so that a set is listed exactly where asking why says yes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from envbuild.compat.consistency import Numbers, numbers
from envbuild.compat.model import Architecture, Cudnn, Facts, FrameworkBuild, Toolkit
from envbuild.native.code import Capability, GpuCode, capability_of, code_of, verdict
from envbuild.target import Platform

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

Part = Literal["gpu", "driver", "cuda", "cudnn", "framework", "python"]
Answer = Literal["native", "jit", "unknown"]

_LATER = 10**6


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A full or partial set; None and empty leave a part open.

    Attributes:
        capabilities: Compute capability of each card, all of which have to work.
        driver: Version of the driver, or a branch (`550`), which stands for its newest release.
        cuda: CUDA, as exact as it is written (`12`, `12.4`).
        cudnn: cuDNN, likewise.
        framework: `pytorch` or `jax`.
        versions: Version specifiers of the framework (PEP 440).
        python: Major and minor version (`3.11`).
        platform: conda subdir.
    """

    capabilities: tuple[str, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    framework: Literal["pytorch", "jax"] | None = None
    versions: str = ""
    python: str | None = None
    platform: Platform = "linux-64"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """Why a build does not do.

    Attributes:
        part: The part of the set that would have to be another one.
        what: What is wrong, one sentence without a full stop.
        sources: Where the facts behind it were read.
    """

    part: Part
    what: str
    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Floor:
    """The oldest driver that does.

    Attributes:
        version: The driver's version.
        why: What needs it.
        sources: Where that was read.
    """

    version: str
    why: str
    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A build, held against what is wanted.

    Attributes:
        build: The build.
        answer: How its code runs on the cards: as it is, compiled by the driver first, or unknown.
        floor: The oldest driver that does, or None where unknown.
        last: The last driver branch that runs the cards, or None where none was the last yet.
        reasons: Why it does not do; empty where it works.
    """

    build: FrameworkBuild
    answer: Answer
    floor: Floor | None
    last: int | None
    reasons: tuple[Reason, ...]

    @property
    def driver(self) -> str | None:
        """The oldest driver that does, or None where unknown."""
        return None if self.floor is None else self.floor.version

    @property
    def parts(self) -> frozenset[Part]:
        """The parts of the set that would have to be others."""
        return frozenset(reason.part for reason in self.reasons)

    @property
    def drivers(self) -> str:
        """The drivers that do: `>=525.60.13`, `525.60.13 to 580`, or `unknown`."""
        if self.last is None:
            return f">={self.driver}" if self.driver else "unknown"
        return f"{self.driver} to {self.last}" if self.driver else f"up to {self.last}"


def works(facts: Facts, wanted: Wanted) -> list[Judged]:
    """Return the builds that work, best first.

    First the newest, of these the newest CUDA, of these PyPI's, other wheels, conda's.
    """
    return [each for each in judged(facts, wanted) if not each.reasons]


def judged(facts: Facts, wanted: Wanted) -> list[Judged]:
    """Return every build of what is wanted, best first, each with its reasons against."""
    found = [judge(facts, build, wanted) for build in facts.builds if _is_meant(build, wanted)]
    return sorted(found, key=lambda each: _rank(each.build), reverse=True)


def first_with_code(facts: Facts, wanted: Wanted) -> Judged | None:
    """Return the oldest release of the framework that has code for the cards, or None."""
    able = [
        each
        for each in judged(facts, wanted)
        if each.answer != "unknown" and "gpu" not in each.parts
    ]
    return able[-1] if able else None


def _is_meant(build: FrameworkBuild, wanted: Wanted) -> bool:
    """Say whether a build is one of what is wanted at all; a CPU build never is."""
    return (
        wanted.framework in (None, build.framework)
        and build.platform == wanted.platform
        and bool(build.cuda or build.cuda_major)
    )


def _rank(build: FrameworkBuild) -> tuple[bool, Numbers, Numbers, bool, bool]:
    cuda = numbers(build.cuda or build.cuda_major or "0")[:2]
    wheel = build.build_string is None
    is_first = build.framework == "pytorch"
    return is_first, numbers(build.version), cuda, build.origin == "pypi", wheel


def judge(facts: Facts, build: FrameworkBuild, wanted: Wanted) -> Judged:
    """Hold one build against what is wanted."""
    reasons = [*_versions(build, wanted)]
    answer: Answer = "native"
    floors: list[tuple[Numbers, str, tuple[str, ...]]] = []
    for text in wanted.capabilities:
        capability = capability_of(text)
        one = _code(build, capability)
        if one == "none":
            reasons.append(_no_code(build, text))
        elif one == "unknown" or answer == "unknown":
            answer = "unknown"
        elif one == "jit":
            answer = "jit"
        reasons += _cudnn_code(facts, build, text)
        floors += _card_floor(facts, text)
        reasons += _too_new(facts, text, wanted)
    floors += _build_floor(facts, build, compiled=answer == "jit")
    rows = [_architecture(facts, text) for text in wanted.capabilities]
    last = min((row.last_branch for row in rows if row and row.last_branch), default=None)
    floor = None
    if floors:
        version, why, sources = max(floors)
        floor = Floor(version=_spelled(version), why=why, sources=sources)
        if wanted.driver is not None and driver_numbers(wanted.driver) < version:
            what = f"it needs driver {floor.version} or newer: {why}"
            reasons.append(Reason(part="driver", what=what, sources=sources))
    return Judged(build=build, answer=answer, floor=floor, last=last, reasons=tuple(reasons))


def _versions(build: FrameworkBuild, wanted: Wanted) -> Iterator[Reason]:
    """Yield what differs from what is wanted by its version alone."""

    def reason(part: Part, what: str) -> Reason:
        return Reason(part=part, what=what, sources=build.sources)

    if not _range(wanted.versions).contains(build.version, prereleases=True):
        yield reason("framework", f"{build.version} is not {wanted.versions}")
    cuda = build.cuda or build.cuda_major or ""
    if wanted.cuda is not None and not _agrees(wanted.cuda, cuda):
        yield reason("cuda", f"it is built for CUDA {cuda}")
    if wanted.cudnn is not None and not takes(build.cudnn, wanted.cudnn):
        yield reason("cudnn", f"it takes cuDNN {build.cudnn or 'of an unknown version'}")
    if wanted.python is not None and build.pythons and wanted.python not in build.pythons:
        yield reason("python", f"it has no package for Python {wanted.python}")


def _agrees(wanted: str, there: str) -> bool:
    """Say whether a version is what is wanted, as far as both are told."""
    pairs = zip(numbers(wanted), numbers(there), strict=False)
    return all(left == right for left, right in pairs)


def takes(there: str | None, wanted: str) -> bool:
    """Say whether a pin or a range takes some version that begins as the wanted one."""
    if there is None:
        return False
    if there[0].isdigit():
        return _agrees(wanted, there)
    return any(_range(there).contains(f"{wanted}{more}") for more in ("", f".{_LATER}"))


@cache
def _range(text: str) -> "SpecifierSet":
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(text)


def _code(
    build: FrameworkBuild, capability: Capability
) -> Literal["native", "jit", "unknown", "none"]:
    codes = build.all_codes or build.codes
    return verdict(_all(codes), capability) if codes else "unknown"


@cache
def _all(codes: tuple[str, ...]) -> frozenset[GpuCode]:
    return frozenset(map(code_of, codes))


def _no_code(build: FrameworkBuild, capability: str) -> Reason:
    codes = build.all_codes or build.codes
    ptx = "" if any(code.startswith("compute") for code in codes) else ", no PTX"
    what = f"it has no code for {capability}: it holds {' '.join(codes)}{ptx}"
    return Reason(part="gpu", what=what, sources=build.sources)


def _cudnn_code(facts: Facts, build: FrameworkBuild, capability: str) -> Iterator[Reason]:
    """Yield that the cuDNN a build pins has no code for a card, where its wheel was read."""
    row = _pinned_cudnn(facts, build)
    if row is None or not row.codes:
        return
    if verdict(_all(row.codes), capability_of(capability)) == "none":
        what = f"its cuDNN {row.version} has no code for {capability}"
        yield Reason(part="gpu", what=what, sources=row.sources)


def _pinned_cudnn(facts: Facts, build: FrameworkBuild) -> Cudnn | None:
    if build.cudnn is None or not build.cudnn[0].isdigit():
        return None
    major = (build.cuda or build.cuda_major or "").partition(".")[0]
    for row in facts.cudnns:
        if row.package and row.cuda == major and row.package.endswith(f"=={build.cudnn}"):
            return row
    return None


def driver_floor(facts: Facts, cudas: Sequence[str], capabilities: Sequence[str]) -> Floor | None:
    """Return the oldest driver that runs programs of CUDA releases on cards, or None if unknown.

    Args:
        facts: The tables.
        cudas: Versions of CUDA.
        capabilities: Compute capabilities of the cards.
    """
    floors = [one for capability in capabilities for one in _card_floor(facts, capability)]
    floors += [one for cuda in cudas for one in _cuda_floor(facts, cuda, compiled=False)]
    if not floors:
        return None
    version, why, sources = max(floors)
    return Floor(version=_spelled(version), why=why, sources=sources)


def _card_floor(facts: Facts, capability: str) -> Iterator[tuple[Numbers, str, tuple[str, ...]]]:
    """Yield the oldest driver that knows a card: the one of the first toolkit with code for it."""
    row = _architecture(facts, capability)
    if row is None:
        return
    toolkit = _toolkit(facts, row.first_cuda)
    if toolkit is not None and (floor := _full(toolkit)):
        yield floor, f"{capability} is known from CUDA {row.first_cuda} on", row.sources


def _too_new(facts: Facts, capability: str, wanted: Wanted) -> Iterator[Reason]:
    row = _architecture(facts, capability)
    if row is None or row.last_branch is None or wanted.driver is None:
        return
    if driver_numbers(wanted.driver)[0] > row.last_branch:
        what = f"{row.last_branch} is the last driver branch that runs {capability}"
        yield Reason(part="driver", what=what, sources=row.sources)


def _build_floor(
    facts: Facts, build: FrameworkBuild, *, compiled: bool
) -> Iterator[tuple[Numbers, str, tuple[str, ...]]]:
    """Yield the oldest drivers that run a build's CUDA; PTX needs the toolkit's own."""
    if build.driver is not None:
        yield numbers(build.driver), f"{build.framework} asks for it", build.sources
    if build.cuda is not None:
        yield from _cuda_floor(facts, build.cuda, compiled=compiled)


def _cuda_floor(
    facts: Facts, cuda: str, *, compiled: bool
) -> Iterator[tuple[Numbers, str, tuple[str, ...]]]:
    toolkit = _toolkit(facts, cuda)
    if toolkit is None:
        return
    if compiled and (floor := _full(toolkit)):
        yield floor, f"PTX of CUDA {cuda} is compiled by its own driver", toolkit.sources
    elif toolkit.minor_driver is not None:
        yield numbers(toolkit.minor_driver), f"CUDA {cuda} runs from there on", toolkit.sources


def full_driver(facts: Facts, cuda: str) -> Numbers | None:
    """Return the oldest driver with which all of a CUDA works, its PTX too; None if unknown."""
    toolkit = _toolkit(facts, cuda)
    return None if toolkit is None else _full(toolkit)


def _full(toolkit: Toolkit) -> Numbers | None:
    """Return the oldest driver with which all of a toolkit works."""
    if toolkit.driver is not None:
        return numbers(toolkit.driver)
    return None if toolkit.branch is None else (toolkit.branch,)


def _toolkit(facts: Facts, version: str) -> Toolkit | None:
    """Return the toolkit of a version, the first of its minor version where it says no update."""
    wanted = version.split(".")
    fitting = [row for row in facts.toolkits if row.version.split(".")[: len(wanted)] == wanted]
    return min(fitting, key=lambda row: numbers(row.version), default=None)


def _architecture(facts: Facts, capability: str) -> Architecture | None:
    return next((row for row in facts.architectures if row.capability == capability), None)


def driver_numbers(text: str) -> Numbers:
    """Return a driver's version; a branch alone is its newest release."""
    version = numbers(text)
    return (*version, _LATER) if len(version) == 1 else version


def _spelled(version: Numbers) -> str:
    """Return a driver's version as NVIDIA writes it: each part but the first has two digits."""
    return ".".join([str(version[0]), *(f"{part:02}" for part in version[1:])])
