"""How `envbuild wheel plan` shows what it found."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from envbuild.cli import output
from envbuild.native.judge import listed
from envbuild.wheel.model import Archive, Cost, Evidence, GitCommit, Plan, Rebuild, Source
from envbuild.wheel.plan import summary

_PLACES = {
    "generation": "the current generation",
    "cache": "a cache",
    "fetched": "fetched",
    "facts": "facts",
}


def text(plan: Plan) -> str:
    """Return what a person reads."""
    asked = "; ".join(plan.asked) or "nothing of its wheels"
    lines = [f"{plan.name} for {plan.platform} asks for {asked}", ""]
    if rows := list(_rows(plan)):
        lines += [output.table(("PACKAGE", "VERSION", "HALF", "REBUILD", "WHY"), rows), ""]
    for one in plan.rebuilds:
        lines += [*_rebuild(one), ""]
    for other in plan.instead:
        lines.append(f"in place of rebuilding {other.name}: {other.what}")
        lines.append(f"  changes: {other.changes}")
    lines += [""] if plan.instead else []
    for hint in dict.fromkeys(one.hint for one in plan.unknown):
        lines.append(f"{listed(one.name for one in plan.unknown if one.hint == hint)}: {hint}")
    return "\n".join([*lines, summary(plan)])


def _rows(plan: Plan) -> Iterator[tuple[str, ...]]:
    for one in plan.rebuilds:
        yield one.name, one.version, one.half, "yes", "; ".join(each.what for each in one.why)
    for unknown in plan.unknown:
        yield unknown.name, unknown.version or "-", unknown.half, "unknown", unknown.what
    for spared in plan.spared:
        why = f"{spared.looks}: {spared.why}"
        yield spared.name, spared.version, spared.half, "no", why


def _rebuild(one: Rebuild) -> Iterator[str]:
    yield f"{one.name} {one.version}"
    for reason in one.why:
        yield f"  why: {reason.what}"
        yield from (f"    {_evidence(each)}" for each in reason.evidence)
    missing = f"it has no sdist: name git and commit in build.packages.{one.name}"
    yield f"  sources: {one.source or missing}"
    yield f"  with: {', '.join(_tools(one))}"
    if one.toolchain.problem:
        yield f"  cannot work: {one.toolchain.problem}"
    wanted = [f"GPU code for {', '.join(one.cuda_archs)}"] if one.cuda_archs else []
    wanted += [f"string ABI {one.abi}"] if one.abi else []
    wanted += [f"flags {' '.join(one.flags)}"] if one.flags else []
    wanted += ["portable"] if one.portable else []
    if wanted:
        yield f"  for: {', '.join(wanted)}"
    if one.after:
        yield f"  after: {', '.join(one.after)}"
    if one.replaces:
        yield f"  takes the place of conda's {', '.join(one.replaces)}"
        yield f"    conda packages that depend on it: {', '.join(one.dependents) or 'none'}"
    yield f"  takes: {_cost(one.cost)}"


def _evidence(one: Evidence) -> str:
    return f"{one.where}: {one.what} ({_PLACES[one.read]})"


def _tools(one: Rebuild) -> Iterator[str]:
    tools = one.toolchain
    yield f"{tools.compiler} ({tools.package or 'this machine has to have it'})"
    if tools.cuda is not None:
        takes = f", takes {tools.takes}" if tools.takes else ""
        where = tools.cuda_package or "this machine has to have it"
        yield f"nvcc of CUDA {tools.cuda} ({where}{takes})"


def _cost(cost: Cost) -> str:
    if not cost.origin:
        return "unknown: it was not rebuilt here before"
    parts = [] if cost.time_s is None else [output.duration_text(cost.time_s)]
    parts += [] if cost.memory_bytes is None else [f"{output.bytes_text(cost.memory_bytes)} memory"]
    parts += [] if cost.disk_bytes is None else [f"{output.bytes_text(cost.disk_bytes)} disk"]
    return f"{', '.join(parts)} ({cost.origin})"


def as_json(plan: Plan) -> dict[str, object]:
    """Return a plan as JSON has it."""
    return {
        "name": plan.name,
        "platform": plan.platform,
        "asked": list(plan.asked),
        "rebuild": [_rebuild_json(one) for one in plan.rebuilds],
        "spared": _plain(plan.spared),
        "unknown": _plain(plan.unknown),
        "instead": _plain(plan.instead),
    }


def _plain(rows: Iterable[object]) -> list[dict[str, object]]:
    return [asdict(row) for row in rows]  # type: ignore[call-overload]


def _rebuild_json(one: Rebuild) -> dict[str, object]:
    return {
        **asdict(one),
        "source": _source(one.source),
        "environment": dict(one.environment),
    }


def _source(source: Source | None) -> dict[str, object] | None:
    if source is None:
        return None
    kind = "sdist"
    if isinstance(source, GitCommit):
        kind = "git"
    elif isinstance(source, Archive):
        kind = "archive"
    return {"kind": kind, **asdict(source)}
