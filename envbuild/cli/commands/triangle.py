"""`envbuild triangle`: which builds go with a card, a driver, CUDA, cuDNN and a Python, and why."""

import re
import shlex
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.errors import UsageProblem
from envbuild.target import PLATFORMS, Platform

if TYPE_CHECKING:
    from envbuild.compat.model import Facts, FrameworkBuild
    from envbuild.compat.triangle import Judged, Wanted

Framework = Literal["pytorch", "jax"]

_FRAMEWORK = re.compile(r"(?P<name>[a-z]+)\s*(?P<rest>.*)", re.IGNORECASE)
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_ALIASES = {"torch": "pytorch"}
_SHOWN = 3
_PLATFORM: Platform = "linux-64"


def _set_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for decorate in (
        options.json_option,
        click.option(
            "--platform",
            type=click.Choice(PLATFORMS),
            default=_PLATFORM,
            show_default=True,
            help="The hosts' platform.",
        ),
        click.option("--python", metavar="V", help="Python, such as 3.11."),
        click.option(
            "--framework", metavar="SPEC", help="pytorch or jax, with versions: 'pytorch>=2.3'."
        ),
        click.option("--cudnn", metavar="V", help="cuDNN, such as 9 or 9.1."),
        click.option("--cuda", metavar="V", help="CUDA, such as 12 or 12.4."),
        click.option("--driver", metavar="V", help="The hosts' driver, or its branch (550)."),
        click.option(
            "--gpu",
            "gpus",
            metavar="GPU",
            multiple=True,
            help="A card (h100) or a compute capability (9.0); several have to work all.",
        ),
    ):
        function = decorate(function)
    return function


@options.group(
    "triangle",
    examples="""
    envbuild triangle list --gpu h100 --framework 'pytorch>=2.3'
    envbuild triangle why --gpu b200 --framework pytorch==2.4.0
    """,
)
def command() -> None:
    """Say which frameworks, CUDA, drivers and cards go together, and why not."""


@command.command(
    "list",
    examples="""
    envbuild triangle list --gpu h100
    envbuild triangle list --gpu b200 --driver 570.133.20 --framework pytorch --json
    """,
)
@_set_options
@click.pass_obj
def listed(here: Here, /, as_json: bool, **told: Any) -> None:  # noqa: ANN401, FBT001
    """List the builds that work, best first; exit code 1 where there is none."""
    from envbuild.compat.triangle import works

    facts = here.facts
    found = works(facts, _wanted(facts, **told))
    if as_json:
        output.print_json({"sets": [_json(each) for each in found]})
    elif found:
        headings = ("BUILD", "CUDA", "CUDNN", "DRIVER", "PYTHON", "GPU CODE", "FROM")
        output.result(output.table(headings, map(_row, found)))
    else:
        output.say(here, "no build works with all of this")
        output.next_step(here, f"envbuild triangle why {_typed(**told)}")
    if not found:
        click.get_current_context().exit(1)


@command.command(
    "why",
    examples="""
    envbuild triangle why --gpu b200 --framework pytorch==2.4.0
    envbuild triangle why --gpu h100 --driver 550 --framework 'pytorch>=2.11'
    """,
)
@_set_options
@click.pass_obj
def why(here: Here, /, as_json: bool, **told: Any) -> None:  # noqa: ANN401, FBT001
    """Say whether a full or partial set works, or every reason against it; exit code 0 or 1."""
    from envbuild.compat import triangle

    facts = here.facts
    wanted = _wanted(facts, **told)
    found = triangle.works(facts, wanted)
    meant = [each for each in triangle.judged(facts, wanted) if _is_asked(each)]
    near = [] if found else triangle.nearest(facts, wanted)
    first = None if found or not wanted.capabilities else triangle.first_with_code(facts, wanted)
    if as_json:
        data = {
            "works": bool(found),
            "sets": [_json(each) for each in found],
            "against": [] if found else [_json(each) for each in meant],
            "nearest": [_json(each) for each in near],
            "first_with_code": None if first is None else _json(first),
        }
        output.print_json(data)
    elif found:
        output.result("\n".join(["works:", *(f"  {_place(each.build)}" for each in found)]))
    else:
        output.result("\n".join(_against(meant, near, first)))
    if not found:
        click.get_current_context().exit(1)


def _typed(*, gpus: Sequence[str], platform: Platform, **options: str | None) -> str:
    """Return the options of a set as they are typed."""
    words = [word for gpu in gpus for word in ("--gpu", gpu)]
    for name, value in options.items():
        words += [f"--{name}", value] if value is not None else []
    words += ["--platform", platform] if platform != _PLATFORM else []
    return shlex.join(words)


def _is_asked(each: "Judged") -> bool:
    """Say whether a build is one of the versions that were asked for."""
    return all(reason.part != "framework" for reason in each.reasons)


def _against(
    meant: "Sequence[Judged]", near: "Sequence[Judged]", first: "Judged | None"
) -> list[str]:
    lines = ["does not work:"]
    if not meant:
        lines.append("  no build of these versions is known")
    against: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for each in meant:
        for reason in each.reasons:
            against.setdefault((reason.what, reason.sources), []).append(each.build.name)
    for (what, sources), names in against.items():
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        lines.append(f"  {', '.join(names[:_SHOWN])}{more}: {what}")
        lines += [f"    source: {source}" for source in sources]
    if first is not None and all(r.part == "gpu" for e in meant for r in e.reasons):
        lines.append(f"the first with code for it: {_place(first.build)}")
    if near:
        lines.append("nearest that work:")
    for each in near:
        changes = ", ".join(_change(each, reason.part) for reason in each.reasons)
        lines.append(f"  {_place(each.build)} (with {changes})")
    return lines


def _change(each: "Judged", part: str) -> str:
    """Return what would have to be another one."""
    build = each.build
    return {
        "driver": f"driver {each.driver} or newer",
        "cuda": f"CUDA {build.cuda or build.cuda_major}",
        "cudnn": f"cuDNN {build.cudnn}",
        "framework": f"{build.framework} {build.version}",
        "python": f"Python {' or '.join(build.pythons)}",
    }.get(part, part)


def _place(build: "FrameworkBuild") -> str:
    """Return a build with where it can be had."""
    if build.build_string is not None:
        package = "jaxlib" if build.framework == "jax" else build.framework
        cudnn = f", cuDNN {build.cudnn}" if build.cudnn else ""
        spec = f"{package} {build.version} {build.build_string}"
        return f"{spec}, CUDA {build.cuda}{cudnn}, conda channel {build.origin}"
    if build.framework == "jax":
        return f"jax[{build.origin}] {build.version}, PyPI"
    cuda = f"CUDA {build.cuda}, cuDNN {build.cudnn}"
    origin = "PyPI" if build.origin == "pypi" else f"PyTorch's wheel index, {build.origin}"
    return f"torch {build.version}, {cuda}, {origin}"


def _row(each: "Judged") -> tuple[str, ...]:
    build = each.build
    answers = {"native": "native", "jit": "by JIT", "unknown": "unknown"}
    pythons = [python for python in build.pythons if not python.endswith("t")]
    return (
        f"{build.framework} {build.version}",
        build.cuda or f"{build.cuda_major}.x",
        build.cudnn or "-",
        f">={each.driver}" if each.driver else "unknown",
        f"{pythons[0]} to {pythons[-1]}" if pythons else "-",
        answers[each.answer],
        f"conda {build.origin}, {build.build_string}" if build.build_string else build.origin,
    )


def _json(each: "Judged") -> dict[str, object]:
    build = each.build
    return {
        "framework": build.framework,
        "version": build.version,
        "origin": build.origin,
        "conda_build": build.build_string,
        "platform": build.platform,
        "cuda": build.cuda,
        "cuda_major": build.cuda_major,
        "cudnn": build.cudnn,
        "driver": each.driver,
        "pythons": list(build.pythons),
        "gpu_code": each.answer,
        "confidence": build.confidence,
        "sources": list(build.sources),
        "reasons": [
            {"part": reason.part, "what": reason.what, "sources": list(reason.sources)}
            for reason in each.reasons
        ],
    }


def _wanted(
    facts: "Facts",
    *,
    gpus: Sequence[str],
    framework: str | None,
    platform: Platform,
    **versions: str | None,
) -> "Wanted":
    """Return what is wanted.

    Raises:
        UsageProblem: A card, framework or version is none.
    """
    from envbuild.compat.triangle import Wanted

    for option, text in versions.items():
        if text is not None and not _VERSION.fullmatch(text):
            message = f"--{option}: {text!r} is not a version"
            raise UsageProblem(message, hint="numbers and dots, such as 12.4")
    name, specifiers = _framework(framework) if framework else (None, "")
    return Wanted(
        capabilities=tuple(dict.fromkeys(_capability(facts, gpu) for gpu in gpus)),
        framework=name,
        versions=specifiers,
        platform=platform,
        **versions,
    )


def _capability(facts: "Facts", gpu: str) -> str:
    names = {row.id: row.capability for row in facts.gpus}
    known = {**names, **{row.capability: row.capability for row in facts.architectures}}
    if gpu.lower() in known:
        return known[gpu.lower()]
    near = get_close_matches(gpu.lower(), known, n=1)
    hint = f"did you mean {near[0]}?" if near else "see: envbuild facts list gpu"
    message = f"--gpu: no card or compute capability {gpu!r} is known"
    raise UsageProblem(message, hint=hint)


def _framework(text: str) -> tuple[Framework, str]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    match = _FRAMEWORK.fullmatch(text.strip())
    name = _ALIASES.get(match["name"].lower(), match["name"].lower()) if match else text
    known: dict[str, Framework] = {each: each for each in get_args(Framework)}
    if name not in known:
        near = get_close_matches(name, [*known, *_ALIASES], n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {' and '.join(known)}"
        message = f"--framework: {text!r} is none that is known"
        raise UsageProblem(message, hint=hint)
    rest = match["rest"] if match else ""
    specifiers = f"=={rest}" if _VERSION.fullmatch(rest) else rest
    try:
        SpecifierSet(specifiers)
    except InvalidSpecifier as error:
        message = f"--framework: {rest!r} is no version specifier"
        raise UsageProblem(message, hint="such as 'pytorch>=2.3,<2.8'") from error
    return known[name], specifiers
