"""`plan`: what of a lock needs a rebuild, from what was read of its binaries; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.utils import canonicalize_name

from envbuild.compat.model import Facts
from envbuild.native.judge import listed
from envbuild.packages import WHEELHOUSE, CondaPackage
from envbuild.recipe.build import PackageBuild
from envbuild.recipe.words import size_bytes
from envbuild.wheel import compilers, evidence, instead, links
from envbuild.wheel.evidence import Answered
from envbuild.wheel.model import (
    Abi,
    Archive,
    Cost,
    GitCommit,
    Instead,
    Plan,
    Reason,
    Rebuild,
    Sdist,
    Source,
    Spared,
    Unknown,
)
from envbuild.wheel.readings import Question, Reading

FRAMEWORKS = ("torch",)
"""What may be rebuilt where a recipe names nothing."""
# Their files on PyPI are wheels only, as of 2026-12-01 (pip download --no-binary :all:).
_WITHOUT_SDIST = frozenset({"jaxlib", "tensorflow", "torch", "torchaudio", "torchvision", "triton"})


@dataclass(slots=True)
class _Work:
    """What was decided so far."""

    question: Question
    readings: Sequence[Reading]
    tables: Facts
    rebuilds: dict[str, Rebuild] = field(default_factory=dict)
    spared: list[Spared] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)

    def of(self, unit: str) -> list[Reading]:
        return [one for one in self.readings if one.unit == unit]


def plan(question: Question, readings: Sequence[Reading], tables: Facts) -> Plan:
    """Return what of a lock needs a rebuild, why, and what that takes.

    Args:
        question: What is asked.
        readings: Every package of the lock, with what is known of its binaries.
        tables: What is known of compilers, CUDA and other builds.
    """
    work = _Work(question=question, readings=readings, tables=tables)
    units = _candidates(work)
    for unit in units:
        _decide(work, unit)
    _follow(work)
    _agree(work)
    _others(work, units)
    return Plan(
        name=question.name,
        platform=question.platform,
        asked=tuple(_asked(question)),
        rebuilds=tuple(_ordered(work)),
        spared=tuple(work.spared),
        unknown=tuple(work.unknown),
        instead=tuple(_instead(work)),
    )


def _instead(work: _Work) -> Iterator[Instead]:
    for name in FRAMEWORKS:
        if (rebuild := work.rebuilds.get(name)) is not None:
            cuda = any(map(_has_gpu_code, work.of(name)))
            yield from instead.builds(rebuild, work.question, work.tables, cuda=cuda)


def _asked(question: Question) -> Iterator[str]:
    build = question.build
    if (wish := build.wish) is not None:
        more = "exactly" if wish.exact else "or newer"
        yield f"compiler: {wish.own} {more}"
    if build.cxx_abi is not None:
        yield f"string ABI: {build.cxx_abi}"
    if question.archs:
        origin = "" if build.cuda_archs else " (of the recipe's cards)"
        yield f"GPU code for {', '.join(question.archs)}{origin}"
    if build.when != "auto":
        yield f"when: {build.when}"


def _candidates(work: _Work) -> list[str]:
    """Return the units that may be rebuilt, and note those that the lock does not have."""
    there = {one.unit for one in work.readings if one.unit is not None}
    named = work.question.build.sources
    for name in named.keys() - there:
        work.unknown.append(
            Unknown(
                name=name,
                version="",
                half="pypi",
                what="build.packages names it, and the lock does not have it",
                hint=f"add it to the recipe's pypi packages, then: envbuild lock "
                f"{work.question.name}",
            )
        )
    absent = {one.unit for one in work.readings if one.absent and one.unit is not None}
    return sorted(there & (named.keys() or set(FRAMEWORKS)) | absent)


def _decide(work: _Work, unit: str) -> None:
    """Decide whether a unit needs a rebuild by itself."""
    parts = work.of(unit)
    answers = [(part, evidence.answer(part, work.question)) for part in parts]
    reasons = tuple(dict.fromkeys(one for _, told in answers for one in told.reasons))
    when = work.question.build.when
    if when == "always" and any(_may_have_code(part) for part in parts):
        reasons = (*reasons, Reason(cause="always", what="the recipe says when: always"))
    if reasons and when == "never":
        for part, told in answers:
            work.spared += [_never(part, reason) for reason in told.reasons]
        reasons = ()
    if any(part.absent for part in parts):
        what = "the lock has it rebuilt, and the wheelhouse of this host does not have that wheel"
        reasons = (Reason(cause="absent", what=what), *reasons)
    if reasons:
        work.rebuilds[unit] = _rebuild(work, unit, parts, reasons)
        return
    for part, told in answers:
        _note(work, part, told)


def _may_have_code(part: Reading) -> bool:
    """Say whether there is something to rebuild: binaries, and not rebuilt ones already."""
    package = part.package
    if not isinstance(package, CondaPackage) and package.index == WHEELHOUSE:
        return False
    return part.facts is None or bool(part.facts.files)


def _never(part: Reading, reason: Reason) -> Spared:
    return Spared(
        name=part.package.name,
        version=part.package.version,
        half=part.half,
        looks=reason.what,
        why="the recipe says when: never",
        evidence=reason.evidence,
    )


def _note(work: _Work, part: Reading, told: Answered) -> None:
    """Note what looks like a reason and is none, and what cannot be known."""
    package = part.package
    for look in told.looks:
        work.spared.append(
            Spared(
                name=package.name,
                version=package.version,
                half=part.half,
                looks=look.looks,
                why=look.why,
                evidence=look.evidence,
            )
        )
    if told.open:
        read = part.facts is not None
        hint = f"envbuild wheel plan {work.question.name} --fetch"
        work.unknown.append(
            Unknown(
                name=package.name,
                version=package.version,
                half=part.half,
                what="; ".join(told.open),
                hint="to rebuild it in any case: when: always" if read else hint,
            )
        )


def _follow(work: _Work) -> None:
    """Add what links a library of a package that is rebuilt, and what links those."""
    if work.question.build.when == "never":
        return
    todo = list(work.rebuilds)
    while todo:
        unit = todo.pop(0)
        for other, reason in links.users(unit, work.of(unit), work.readings):
            known = work.rebuilds.get(other)
            if known is not None:
                after = tuple(dict.fromkeys((*known.after, unit)))
                why = known.why if reason in known.why else (*known.why, reason)
                work.rebuilds[other] = replace(known, why=why, after=after)
                continue
            parts = work.of(other)
            own = [evidence.answer(part, work.question).reasons for part in parts]
            reasons = dict.fromkeys((reason, *(each for told in own for each in told)))
            made = _rebuild(work, other, parts, tuple(reasons))
            abi = made.abi or work.rebuilds[unit].abi
            work.rebuilds[other] = replace(made, after=(unit,), abi=abi)
            todo.append(other)


def _agree(work: _Work) -> None:
    """Let what links a framework that stays as it is have the framework's string ABI."""
    for unit in FRAMEWORKS:
        abi = _abi_of(work.of(unit))
        if unit in work.rebuilds or abi is None:
            continue
        for other, _ in links.users(unit, work.of(unit), work.readings):
            known = work.rebuilds.get(other)
            if known is None:
                continue
            problem = known.toolchain.problem
            if known.abi not in (None, abi):
                problem = f"{unit}, which it links, has the {abi} string ABI and is not rebuilt"
            tools = replace(known.toolchain, problem=problem)
            work.rebuilds[other] = replace(known, abi=known.abi or abi, toolchain=tools)


def _others(work: _Work, units: Sequence[str]) -> None:
    """Note what else looks as if it had to be rebuilt, and what could not be looked at."""
    hint = f"envbuild wheel plan {work.question.name} --fetch"
    for part in work.readings:
        if part.unit is not None and (part.unit in units or part.unit in work.rebuilds):
            continue
        users = [unit for unit in work.rebuilds if _requires(work, part, unit)]
        if part.facts is None and users:
            work.unknown.append(
                Unknown(
                    name=part.package.name,
                    version=part.package.version,
                    half=part.half,
                    what=f"it requires {', '.join(users)}, and whether it links it was not read",
                    hint=hint,
                )
            )
        elif part.facts is not None and _may_be_built(part):
            work.spared += _elsewhere(work, part)


def _may_be_built(part: Reading) -> bool:
    """Say whether anybody but its maker can build it: NVIDIA publishes libraries, not sources."""
    return part.half == "pypi" and not part.package.name.startswith("nvidia-")


def _requires(work: _Work, part: Reading, unit: str) -> bool:
    return any(
        part.needs(one.package.name, one.half, work.readings)
        for one in work.of(unit)
        if part.half == one.half
    )


def _elsewhere(work: _Work, part: Reading) -> Iterator[Spared]:
    """Yield that a package is not one of those that may be rebuilt, where it looks as if."""
    told = evidence.answer(part, work.question)
    reasons = [one for one in told.reasons if one.cause != "gpu-code"]
    if not reasons:
        return
    named = bool(work.question.build.packages)
    yield Spared(
        name=part.package.name,
        version=part.package.version,
        half="pypi",
        looks="; ".join(dict.fromkeys(one.what for one in reasons)),
        why="build.packages does not name it"
        if named
        else "its C++ stays within it; to have it rebuilt, name it in build.packages",
        evidence=tuple(each for one in reasons for each in one.evidence),
    )


def _rebuild(
    work: _Work, unit: str, parts: Sequence[Reading], reasons: tuple[Reason, ...]
) -> Rebuild:
    question, build = work.question, work.question.build
    own = build.sources.get(unit, PackageBuild())
    first = next((one for one in parts if one.package.name in ("pytorch", unit)), parts[0])
    conda = [one for one in parts if one.half == "conda"]
    has_code = any(_has_gpu_code(one) for one in parts)
    memory = own.memory_per_job or build.memory_per_job
    before = {
        one.unit: None
        for one in work.readings
        if first.absent and one.absent and one.unit and _requires(work, first, one.unit)
    }
    kept = _abi_of(parts) if unit in FRAMEWORKS or before else None
    return Rebuild(
        name=unit,
        version=first.package.version,
        half=first.half,
        why=reasons,
        source=_source(unit, first, own, question),
        toolchain=compilers.needed(question, work.readings, work.tables, cuda=has_code),
        cuda_archs=question.archs if has_code else (),
        abi=build.cxx_abi or kept,
        flags=(*build.flags, *own.flags),
        environment=tuple(sorted(own.environment.items())),
        jobs=own.jobs or build.jobs,
        memory_per_job_bytes=None if memory is None else size_bytes(memory),
        portable=build.portable if own.portable is None else own.portable,
        after=tuple(before),
        replaces=tuple(one.label for one in conda),
        dependents=tuple(
            one.label
            for one in work.readings
            if one.half == "conda" and one.unit != unit and _requires(work, one, unit)
        ),
        cost=(question.earlier or {}).get(unit, Cost()),
    )


def _has_gpu_code(part: Reading) -> bool:
    if part.absent:
        return any(one.startswith("sm") for one in _local(part))
    if part.facts is not None:
        return any(file.codes for file in part.facts.files)
    return part.row is not None and bool(part.row.cuda or part.row.cuda_major)


def _local(part: Reading) -> list[str]:
    """Return the parts of a local version, which say what a rebuilt wheel was built for."""
    return part.package.version.partition("+")[2].split(".")


def _abi_of(parts: Sequence[Reading]) -> Abi | None:
    """Return the string ABI that a package has now, so that others go on linking it."""
    for part in parts:
        if part.absent:
            return "old" if "oldabi" in _local(part) else "new"
        if part.facts is not None and part.facts.string_abi in ("new", "old"):
            return "new" if part.facts.string_abi == "new" else "old"
        if part.facts is None and part.row is not None and part.row.cxx11_abi is not None:
            return "new" if part.row.cxx11_abi else "old"
    return None


def _source(unit: str, first: Reading, own: PackageBuild, question: Question) -> Source | None:
    if own.git is not None and own.commit is not None:
        return GitCommit(url=own.git, commit=own.commit, tag=own.tag, submodules=own.submodules)
    if own.archive is not None:
        path = own.archive if own.archive.startswith("/") else f"{question.folder}/{own.archive}"
        return Archive(path=path, sha256=own.sha256)
    if unit in _WITHOUT_SDIST:
        return None
    package = first.package
    index = None if isinstance(package, CondaPackage) else package.index
    public = package.version.partition("+")[0]  # a rebuilt one has its own label behind it
    return Sdist(name=canonicalize_name(unit), version=public, index=index)


def _ordered(work: _Work) -> Iterator[Rebuild]:
    """Yield what is rebuilt, each after what it is built against."""
    asked = {name: _before(work, name) for name in work.rebuilds}
    done: set[str] = set()
    while len(done) < len(asked):
        ready = [name for name, before in asked.items() if name not in done and before <= done]
        for name in ready or [next(one for one in asked if one not in done)]:
            done.add(name)
            one = work.rebuilds[name]
            after = tuple(dict.fromkeys((*one.after, *sorted(asked[name]))))
            yield replace(one, after=after)


def _before(work: _Work, name: str) -> set[str]:
    required = {
        other
        for other in work.rebuilds
        if other != name and any(_requires(work, part, other) for part in work.of(name))
    }
    return required | set(work.rebuilds[name].after)


def summary(found: Plan) -> str:
    """Return a plan's answer in one line."""
    if not found.rebuilds:
        known = " as far as it is known" if found.unknown else ""
        return f"{found.name}: nothing needs a rebuild{known}"
    names: Mapping[str, str] = {one.name: one.version for one in found.rebuilds}
    told = listed(f"{name} {version}" for name, version in names.items())
    return f"{found.name}: {len(names)} to rebuild: {told}"
