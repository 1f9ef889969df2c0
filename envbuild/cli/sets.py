"""Sets of card, driver, CUDA, cuDNN, framework and Python, as they are typed."""

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from envbuild.cli.context import Here
from envbuild.errors import UsageProblem
from envbuild.target import PLATFORMS, Platform

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from envbuild.compat.grid import Column
    from envbuild.compat.model import Facts
    from envbuild.compat.triangle import Wanted

Framework = Literal["pytorch", "jax"]

_FRAMEWORK = re.compile(r"(?P<name>[a-z]+)\s*(?P<rest>.*)", re.IGNORECASE)
VERSION = re.compile(r"\d+(?:\.\d+)*")
_PYTHON = re.compile(r"(\d+\.\d+)(?:\.\d+)*(t?)")
_ALIASES = {"torch": "pytorch"}
_PLATFORM: Platform = "linux-64"
_BRANCHES = range(100, 1000)
TABLES = ("cuda", "cudnn", "gpus", "pytorch", "jax", "conda")  # of facts, that sets are judged by
_TITLES = {"cuda": "CUDA", "cudnn": "cuDNN", "python": "Python"}


def _offered(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Offer what the facts have for an option."""
    from click.shell_completion import CompletionItem

    facts = ctx.ensure_object(Here).facts_of(*TABLES)
    found: dict[str, Iterable[str]] = {
        "gpus": [*(row.id for row in facts.gpus), *(row.capability for row in facts.architectures)],
        "driver": (f"{row.branch}" for row in facts.branches),
        "cuda": _two_parts(row.version for row in facts.toolkits),
        "cudnn": _two_parts(row.version for row in facts.cudnns),
        "framework": get_args(Framework),
        "python": _pythons(facts),
    }
    names = dict.fromkeys(found[parameter.name or ""])
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def set_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say a set; `wanted` takes what they say."""
    for decorate in (
        click.option(
            "--platform",
            type=click.Choice(PLATFORMS),
            default=_PLATFORM,
            show_default=True,
            help="The hosts' platform.",
        ),
        _option("--python", help="Python, such as 3.11."),
        _option(
            "--framework", metavar="SPEC", help="pytorch or jax, with versions: 'pytorch>=2.3'."
        ),
        _option("--cudnn", help="cuDNN, such as 9 or 9.1."),
        _option("--cuda", help="CUDA, such as 12 or 12.4."),
        _option("--driver", help="The hosts' driver, or its branch (550)."),
    ):
        function = decorate(function)
    return function


def gpu_option(more: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds `--gpu` as `gpus`.

    Args:
        more: What several of them mean.
    """
    text = f"A card (h100) or a compute capability (9.0); {more}"
    return _option("--gpu", "gpus", metavar="GPU", multiple=True, help=text)


def _option(*names: str, metavar: str = "V", **more: Any) -> Callable[..., Callable[..., Any]]:  # noqa: ANN401
    return click.option(*names, metavar=metavar, shell_complete=_offered, **more)


def typed(*, gpus: Sequence[str], platform: Platform, **options: str | None) -> str:
    """Return the options of a set as they are typed."""
    words = [word for gpu in gpus for word in ("--gpu", gpu)]
    for name, value in options.items():
        words += [f"--{name}", value] if value is not None else []
    words += ["--platform", platform] if platform != _PLATFORM else []
    return shlex.join(words)


def wanted(
    facts: "Facts",
    *,
    gpus: Sequence[str],
    framework: str | None,
    platform: Platform,
    driver: str | None,
    python: str | None,
    **versions: str | None,
) -> "Wanted":
    """Return what is wanted.

    Raises:
        UsageProblem: A card, framework or version is none, or none that is known.
    """
    from envbuild.compat.triangle import Wanted

    for option, text in {"driver": driver, **versions}.items():
        if text is not None and not VERSION.fullmatch(text):
            message = f"--{option}: {text!r} is not a version"
            example = "550.54.15, or a branch such as 550" if option == "driver" else "12.4"
            raise UsageProblem(message, hint=f"numbers and dots, such as {example}")
    if driver is not None:
        _check_driver(facts, driver)
    if (cuda := versions.get("cuda")) is not None:
        _check_known("cuda", cuda, _two_parts(row.version for row in facts.toolkits))
    if (cudnn := versions.get("cudnn")) is not None:
        _check_cudnn(facts, cudnn)
    name, specifiers = _framework(facts, framework) if framework is not None else (None, "")
    return Wanted(
        capabilities=tuple(dict.fromkeys(capability(facts, gpu) for gpu in gpus)),
        framework=name,
        versions=specifiers,
        platform=platform,
        driver=driver,
        python=None if python is None else _python(facts, python),
        **versions,
    )


def capability(facts: "Facts", gpu: str) -> str:
    """Return the compute capability of a card, or the one that is named.

    Raises:
        UsageProblem: None of this name is known.
    """
    names = {row.id: row.capability for row in facts.gpus}
    known = {**names, **{row.capability: row.capability for row in facts.architectures}}
    if gpu.lower() in known:
        return known[gpu.lower()]
    near = get_close_matches(gpu.lower(), known, n=1)
    hint = f"did you mean {near[0]}?" if near else "see: envbuild facts list gpu"
    message = f"--gpu: no card or compute capability {gpu!r} is known"
    raise UsageProblem(message, hint=hint)


def column(facts: "Facts", gpu: str) -> "Column":
    """Return a card as a column of a grid.

    Raises:
        UsageProblem: None of this name is known.
    """
    from envbuild.compat.grid import Column

    return Column(title=gpu.lower(), capability=capability(facts, gpu))


def nearest(text: str, known: Iterable[str]) -> str:
    """Return the known version whose numbers are nearest, the first ones first.

    Args:
        text: A version of numbers and dots.
        known: Some of them, at least one.
    """

    def parts(version: str) -> list[int]:
        return [int(part) for part in version.split(".")]

    def distance(each: str) -> list[int]:
        both = zip_longest(parts(each), parts(text), fillvalue=0)
        return [abs(left - right) for left, right in both]

    some = list(known)
    newest = max(some, key=parts)
    return newest if parts(text) > parts(newest) else min(some, key=distance)


def _check_driver(facts: "Facts", driver: str) -> None:
    """Raise where no driver of NVIDIA can have this version; a branch may be newer than all known.

    Raises:
        UsageProblem: None can.
    """
    branch = int(driver.partition(".")[0])
    if branch not in _BRANCHES:
        known = sorted(row.branch for row in facts.branches)
        near = min(known, key=lambda each: abs(each - branch), default=None)
        hint = "branches have three digits" + (f"; the nearest known is {near}" if near else "")
        message = f"--driver: NVIDIA has no driver {driver}"
        raise UsageProblem(message, hint=hint)


def _check_cudnn(facts: "Facts", cudnn: str) -> None:
    """Raise where no cuDNN of this major version is known: a build may take any later minor one.

    Raises:
        UsageProblem: None is.
    """
    rows = [*(row.version for row in facts.cudnns), *(row.cudnn for row in facts.builds)]
    exact = (row for row in rows if row is not None and VERSION.fullmatch(row))
    _check_known("cudnn", cudnn.partition(".")[0], _two_parts(exact))


def _check_known(option: str, text: str, known: Sequence[str]) -> None:
    """Raise where no known version of two numbers begins as the wanted one.

    Raises:
        UsageProblem: None does.
    """
    parts = text.split(".")[:2]
    if any(each.split(".")[: len(parts)] == parts for each in known):
        return
    message = f"--{option}: no {_TITLES[option]} {text} is known"
    raise UsageProblem(message, hint=f"did you mean {nearest(text, known)}?")


def _two_parts(versions: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(".".join(version.split(".")[:2]) for version in versions))


def _pythons(facts: "Facts") -> list[str]:
    return list(dict.fromkeys(python for row in facts.builds for python in row.pythons))


def _python(facts: "Facts", text: str) -> str:
    """Return major and minor version of a Python.

    Raises:
        UsageProblem: It is none that any build has a package for.
    """
    match = _PYTHON.fullmatch(text)
    if match is None:
        message = f"--python: {text!r} is not a version"
        raise UsageProblem(message, hint="such as 3.11, or 3.13t for a free-threaded one")
    python, known = f"{match[1]}{match[2]}", _pythons(facts)
    if python not in known:
        usual = [each for each in known if not each.endswith("t")]
        _check_known("python", match[1], usual)
        message = f"--python: no free-threaded Python {match[1]} is known"
        raise UsageProblem(message, hint=f"did you mean {match[1]}?")
    return python


def _framework(facts: "Facts", text: str) -> tuple[Framework, str]:
    """Return a framework and the versions of it.

    Raises:
        UsageProblem: It is none, or no known release is one of these versions.
    """
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
    specifiers = f"=={rest}" if VERSION.fullmatch(rest) else rest
    try:
        allowed = SpecifierSet(specifiers)
    except InvalidSpecifier as error:
        message = f"--framework: {rest!r} is no version specifier"
        raise UsageProblem(message, hint="such as 'pytorch>=2.3,<2.8'") from error
    versions = {row.version for row in facts.builds if row.framework == name}
    if not any(allowed.contains(version, prereleases=True) for version in versions):
        exact = next((one.version for one in allowed if VERSION.fullmatch(one.version)), "0")
        message = f"--framework: no release of {name} is known that is {specifiers}"
        raise UsageProblem(message, hint=f"the nearest is {nearest(exact, versions)}")
    return known[name], specifiers
