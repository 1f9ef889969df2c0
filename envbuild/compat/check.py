"""Holding a recipe and its lock against the facts; pure, and all answers at once."""

from collections.abc import Iterator
from difflib import get_close_matches

from envbuild.compat import surroundings
from envbuild.compat.consistency import numbers
from envbuild.compat.model import Facts, FrameworkBuild
from envbuild.compat.subject import Part, Subject
from envbuild.compat.triangle import Wanted, driver_floor, first_with_code, judge, takes, works
from envbuild.compat.words import KnownBad
from envbuild.findings import Finding, Findings, Severity

_RELEASE_PARTS = ("cuda-cudart", "cuda-nvrtc", "cuda-nvtx", "cuda-cupti", "cuda-toolkit")
_RELEASE_WHEELS = ("nvidia-cuda-runtime", "nvidia-cuda-cupti", "nvidia-nvtx")
_CONDA_CUDNN = "cudnn"
_FRAMEWORKS = {"pytorch": "pytorch", "libtorch": "pytorch", "jaxlib": "jax"}


def check(subject: Subject, facts: Facts) -> Findings:
    """Return what speaks against a recipe and its lock.

    Args:
        subject: What is checked.
        facts: The tables.
    """
    builds = builds_of(subject, facts)
    return (
        *_cards(subject, facts),
        *(one for build in builds for one in _code(subject, facts, build)),
        *_unasked(subject),
        *_unread_code(subject, builds),
        *_driver(subject, facts, builds),
        *_cudnn(subject, facts, builds),
        *_cuda_parts(subject),
        *surroundings.check(subject, facts, builds),
        *_known_bad(subject, facts),
    )


def builds_of(subject: Subject, facts: Facts) -> list[FrameworkBuild]:
    """Return the framework builds that are there: wheels of the default index, conda builds."""
    wanted: list[tuple[str, str, str]] = []
    if torch := subject.pypi("torch"):
        wanted.append(("pytorch", torch.version.partition("+")[0], "pypi"))
    if jax := subject.pypi("jax"):
        names = {part.name for part in subject.parts}
        wanted += [
            ("jax", jax.version, f"cuda{major}")
            for major in ("11", "12", "13")
            if {f"jax-cuda{major}-plugin", f"nvidia-cudnn-cu{major}"} & names
            or any(extra.startswith(f"cuda{major}") for extra in jax.extras)
        ]
    conda = [(name, part) for part in subject.parts if (name := _FRAMEWORKS.get(part.name))]
    return [
        build
        for build in facts.builds
        if build.platform == subject.platform
        and (
            (build.framework, build.version, build.origin) in wanted
            or any(name == build.framework and _is_build(part, build) for name, part in conda)
        )
    ]


def _is_build(part: Part, build: FrameworkBuild) -> bool:
    """Say whether a conda package is a build: conda-forge writes `cuda124`, others `cuda12.4`."""
    if part.kind != "conda" or build.build_string is None or part.version != build.version:
        return False
    dotted = f"cuda{build.cuda}"
    same_style = (dotted in part.build) == (dotted in build.build_string)
    return part.cuda == build.cuda and same_style


def _capabilities(subject: Subject, facts: Facts) -> tuple[str, ...]:
    known = {row.id: row.capability for row in facts.gpus}
    return tuple(dict.fromkeys(known[gpu] for gpu in subject.gpus if gpu in known))


def _cards(subject: Subject, facts: Facts) -> Iterator[Finding]:
    known = [row.id for row in facts.gpus]
    for gpu in subject.gpus:
        if gpu not in known:
            near = get_close_matches(gpu, known, n=1)
            yield Finding(
                code="unknown-gpu",
                severity=Severity.WARNING,
                where=subject.where("gpus"),
                what=f"no card {gpu} is known, so nothing is said about it",
                hint=f"did you mean {near[0]}?" if near else "see: envbuild facts list gpu",
            )


def _code(subject: Subject, facts: Facts, build: FrameworkBuild) -> Iterator[Finding]:
    capabilities = _capabilities(subject, facts)
    wanted = Wanted(capabilities=capabilities, framework=build.framework, platform=subject.platform)
    for reason in judge(facts, build, wanted).reasons:
        if reason.part == "gpu":
            first = first_with_code(facts, wanted)
            hint = "see: envbuild triangle list --gpu " + " --gpu ".join(subject.gpus)
            if first is not None:
                hint = f"the first with code for it is {first.build.name}; {hint}"
            yield Finding(
                code="no-gpu-code",
                severity=Severity.ERROR,
                where=f"{subject.name}: {build.name}",
                what=reason.what,
                why="; ".join(reason.sources),
                hint=hint,
            )


def _unasked(subject: Subject) -> Iterator[Finding]:
    """Yield conda builds for CUDA in an environment that asks for no CUDA."""
    for part in subject.parts:
        if part.kind == "conda" and part.name in _FRAMEWORKS and part.cuda:
            if subject.asks_cuda:
                return
            yield Finding(
                code="cuda-not-asked",
                severity=Severity.ERROR,
                where=f"{subject.name}: {part}",
                what=f"it is a build for CUDA {part.cuda}, and the recipe asks for no CUDA",
                why="packages of this channel do not say that they need a GPU, so a solver takes "
                "them",
                hint=f'for CUDA: target.gpus, or triangle.cuda "{part.cuda}"; without: '
                f"conda: {part.name} {part.version} *cpu*",
            )


def _unread_code(subject: Subject, builds: list[FrameworkBuild]) -> Iterator[Finding]:
    known = {build.framework for build in builds if build.build_string and build.codes}
    for name, framework in _FRAMEWORKS.items():
        part = subject.conda(name)
        if part is not None and part.cuda and subject.gpus and framework not in known:
            yield Finding(
                code="gpu-code-unknown",
                severity=Severity.NOTE,
                where=f"{subject.name}: {part}",
                what=f"no table says for which cards this build of {part.name} has code",
                why="it depends on how the channel built it",
                hint=f"once it is created: envbuild inspect {subject.name}",
            )
            return


def _driver(subject: Subject, facts: Facts, builds: list[FrameworkBuild]) -> Iterator[Finding]:
    capabilities = _capabilities(subject, facts)
    if not capabilities:
        return
    cudas = {build.cuda for build in builds if build.cuda}
    cudas |= {part.cuda for part in subject.parts if part.cuda and part.name != _CONDA_CUDNN}
    cudas |= {subject.cuda} if subject.cuda else set()
    floor = driver_floor(facts, sorted(cudas), capabilities)
    if floor is None:
        return
    lowest = _lowest(subject.driver)
    if lowest is None:
        code, severity, seen = "driver-open", Severity.WARNING, "the recipe names no oldest driver"
    elif numbers(lowest) < numbers(floor.version):
        code, severity, seen = "driver-too-old", Severity.ERROR, f"it lets driver {lowest} in"
    else:
        return
    yield Finding(
        code=code,
        severity=severity,
        where=subject.where("driver"),
        what=f"{seen}, and {floor.version} is needed",
        why=f"{floor.why} ({'; '.join(floor.sources)})",
        hint=f'driver: ">={floor.version}"',
    )


def _lowest(text: str | None) -> str | None:
    """Return the oldest version of a range, or None where it is open."""
    from packaging.specifiers import SpecifierSet

    if text is None:
        return None
    bounds = [
        one.version.removesuffix(".*")
        for one in SpecifierSet(text)
        if one.operator in (">=", ">", "==", "~=", "===")
    ]
    return max(bounds, key=numbers, default=None)


def _cudnn(subject: Subject, facts: Facts, builds: list[FrameworkBuild]) -> Iterator[Finding]:
    """Yield a cuDNN that the framework build was not made for.

    A conda build brings its own cuDNN or depends on it, so the recipe's wish alone counts there.
    """
    for build in builds:
        locked = None
        if build.build_string is None:
            locked = subject.pypi("nvidia-cudnn") or subject.conda(_CONDA_CUDNN)
        version = locked.version if locked else subject.cudnn
        if version is None or build.cudnn is None or takes(build.cudnn, version):
            continue
        other = _nearest_with(facts, build, version)
        hint = f"take cuDNN {build.cudnn}" + (f", or {other}" if other else "")
        yield Finding(
            code="cudnn-differs",
            severity=Severity.ERROR,
            where=f"{subject.name}: {build.name}",
            what=f"it takes cuDNN {build.cudnn}, and {locked or f'cuDNN {version}'} is there",
            why="; ".join(build.sources),
            hint=hint,
        )


def _nearest_with(facts: Facts, build: FrameworkBuild, cudnn: str) -> str | None:
    """Return the next release of a framework that takes a cuDNN, or the last one before."""
    wanted = Wanted(framework=build.framework, cudnn=cudnn, platform=build.platform)
    versions = sorted({each.build.version for each in works(facts, wanted)}, key=numbers)
    later = [one for one in versions if numbers(one) > numbers(build.version)]
    found = later[0] if later else versions[-1] if versions else None
    return None if found is None else f"{build.framework} {found}"


def _cuda_parts(subject: Subject) -> Iterator[Finding]:
    """Yield parts of different CUDA releases side by side, all of them in one finding."""
    releases: dict[str, list[Part]] = {}
    for part in subject.parts:
        release = part.cuda
        names = _RELEASE_PARTS if part.kind == "conda" else _RELEASE_WHEELS
        if part.plain_name in names or part.name == "cuda-version":
            release = ".".join(part.version.split(".")[:2])
        if release is not None:
            releases.setdefault(release, []).append(part)
    if len(releases) > 1:
        told = [
            f"CUDA {release}: {', '.join(map(str, parts))}"
            for release, parts in sorted(releases.items())
        ]
        yield Finding(
            code="cuda-releases-differ",
            severity=Severity.WARNING,
            where=f"{subject.name}: {subject.platform}",
            what=f"parts of {len(releases)} CUDA releases are side by side: {'; '.join(told)}",
            why="each was tested with its own release",
            hint="hold them together with cuda-version in the recipe's conda packages",
        )


def _known_bad(subject: Subject, facts: Facts) -> Iterator[Finding]:
    capabilities = _capabilities(subject, facts)
    for row in facts.known_bad:
        cards = [one for one in capabilities if one in row.capabilities]
        if (cards or not row.capabilities) and (parts := _affected(subject, row)):
            yield Finding(
                code="known-bad",
                severity=Severity.WARNING,
                where=f"{subject.name}: {', '.join(map(str, parts))}",
                what=f"known to fail: {row.effect}; when {row.when}",
                why="; ".join(row.sources),
                hint=row.cure,
            )


def _affected(subject: Subject, row: KnownBad) -> list[Part]:
    """Return the packages that a row is about, or none where not all of them are there."""
    from packaging.specifiers import SpecifierSet

    parts: list[Part] = []
    for name, versions in row.packages.items():
        conda = {"torch": "pytorch", "nvidia-cudnn": _CONDA_CUDNN}.get(name, name)
        part = subject.pypi(name) or subject.conda(conda)
        if part is None or not SpecifierSet(versions).contains(part.version, prereleases=True):
            return []
        parts.append(part)
    return parts
