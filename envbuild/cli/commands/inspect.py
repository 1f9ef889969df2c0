"""`envbuild inspect`: what the binaries of a file, a package or an environment say."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from envbuild.cli import complete, options, output
from envbuild.cli.context import Here
from envbuild.errors import InputError, UsageProblem
from envbuild.native.code import Capability, capability_of, verdict
from envbuild.target import PLATFORMS, Platform

if TYPE_CHECKING:
    from envbuild.compat.binaries import Host
    from envbuild.findings import Findings
    from envbuild.native.model import NativeFacts

_FILES = (".whl", ".conda", ".so", ".bz2", ".zip")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^]]*\]\s*)?[=<>!~].*")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_KEYS = ("gpu", "driver", "glibc", "glibcxx")
_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class _Meant:
    """Whose wheels are meant: the platform, and major and minor of CPython, None for the usual."""

    platform: Platform
    python: tuple[int, int] | None


def _capability(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> list[Capability]:
    try:
        return [capability_of(value) for value in values]
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@options.command(
    "inspect",
    examples="""
    envbuild inspect torch-2.4.0-cp311-cp311-manylinux1_x86_64.whl --gpu 9.0
    envbuild inspect 'torch==2.4.0' --against gpu=b200,glibc=2.28,driver=550.54
    envbuild inspect h100-pt24 --json
    envbuild inspect --diff old.whl new.whl
    """,
)
@click.argument(
    "targets",
    metavar="FILE|FOLDER|NAME|REQUIREMENT…",
    nargs=-1,
    required=True,
    shell_complete=complete.both,
)
@click.option(
    "--gpu",
    "gpus",
    metavar="CAPABILITY",
    multiple=True,
    callback=_capability,
    help="Say whether a card of this compute capability (9.0) runs the GPU code; exit code 1 if a "
    "library has none for it.",
)
@click.option(
    "--against",
    metavar="KEY=VALUE,…",
    help="Say what keeps it from running on a host: gpu (a card or capability, several times), "
    "driver, glibc, glibcxx (of its libstdc++); exit code 1 if something does.",
)
@click.option("--diff", is_flag=True, help="Say what differs between two; exit code 1 if anything.")
@click.option(
    "--python",
    metavar="V",
    help="Of a requirement's wheel, by default 3.11; of a lock for the machine's own Python, by "
    "default that.",
)
@click.option(
    "--platform",
    type=click.Choice(PLATFORMS),
    help="Of a requirement's wheel or a lock's packages; by default this machine's.",
)
@options.json_option
@click.pass_obj
def command(
    here: Here,
    targets: tuple[str, ...],
    gpus: list[Capability],
    against: str | None,
    python: str | None,
    platform: Platform | None,
    *,
    diff: bool,
    as_json: bool,
) -> int:
    """Show what binaries hold: compilers, GPU code, needed libraries, glibc.

    It is read from a wheel, a `.conda` or `.tar.bz2` package, a folder, an ELF file, an
    environment, the packages of a lock (fetched by hash where there is no environment), or the
    wheel of a requirement such as `torch==2.4.0` (fetched with its hash); nothing of it is run.
    """
    from envbuild.cli import inspected

    host = _host(here, against)
    meant = _Meant(platform=platform or here.platform, python=_python(python))
    if diff:
        return _diff(here, targets, meant, as_json=as_json)
    code = 0
    rows: list[dict[str, object]] = []
    for target in targets:
        for facts in _facts(here, target, meant):
            verdicts = {gpu: _verdicts(facts, gpu) for gpu in gpus}
            found = _findings(here, facts, host)
            if as_json:
                rows.append(
                    {
                        **inspected.as_json(facts, verdicts, here.facts),
                        "findings": output.findings_json(found),
                    }
                )
            else:
                output.result(inspected.text(facts, verdicts, here.facts))
                output.print_findings(here, found)
            refused = any("none" in answers.values() for answers in verdicts.values())
            code |= refused or bool(gpus and not facts.codes)
            code |= against is not None and any(one.severity == "error" for one in found)
    if as_json:
        output.print_json(rows[0] if len(rows) == 1 else {"packages": rows})
    return int(code)


def _findings(here: Here, facts: "NativeFacts", host: "Host | None") -> "Findings":
    from envbuild.native import judge

    found = judge.findings(facts)
    if host is None:
        return found
    from envbuild.compat.binaries import against

    return (*found, *against(facts, host, here.facts))


def _diff(here: Here, targets: tuple[str, ...], meant: _Meant, *, as_json: bool) -> int:
    from envbuild.cli import inspected
    from envbuild.native.differences import differences

    if len(targets) != 2:  # noqa: PLR2004
        message = f"--diff compares two, and {len(targets)} are named"
        raise UsageProblem(message, hint="envbuild inspect --diff old.whl new.whl")
    one, two = (_joined(_facts(here, target, meant), target) for target in targets)
    found = differences(one, two)
    if as_json:
        output.print_json({"differences": inspected.differences_json(found)})
    else:
        output.result(inspected.differences_text(found))
    return 1 if found else 0


def _joined(parts: Iterable["NativeFacts"], target: str) -> "NativeFacts":
    """Return a lock's packages as one."""
    from envbuild.native.model import NativeFacts

    every = list(parts)
    if len(every) == 1:
        return every[0]
    files = tuple(file for facts in every for file in facts.files)
    return NativeFacts(name=target, files=files, other_files=sum(f.other_files for f in every))


def _python(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    major, _, minor = text.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        message = f"--python: {text!r} is not a version such as 3.11"
        raise UsageProblem(message)
    return int(major), int(minor)


def _minor(version: str) -> tuple[int, int]:
    major, minor, *_ = *version.split("."), "0"
    return int(major), int(minor)


def _facts(here: Here, target: str, meant: _Meant) -> Iterable["NativeFacts"]:
    """Return what is meant: a file or folder, an environment, a lock's packages, a requirement."""
    from envbuild.cli import progress
    from envbuild.pipeline import inspecting
    from envbuild.store import present, use

    path = Path(target)
    if path.exists() or ("/" in target and not _REQUIREMENT.fullmatch(target)):
        return [inspecting.read(path)]
    if path.suffix in _FILES:
        return [inspecting.read(path)]
    if _REQUIREMENT.fullmatch(target):
        with progress.shown(here) as shown:
            wheel_for = inspecting.For(platform=meant.platform, python=meant.python or _PYTHON)
            return [inspecting.requirement(target, wheel_for, access=here.access, progress=shown)]
    try:
        generation = use.chosen(present.found(here.stores, target), None)
    except InputError:
        if (packages := _locked(here, target, meant)) is None:
            raise
        return packages
    return [replace(inspecting.read(generation.prefix), name=target)]


def _locked(here: Here, name: str, meant: _Meant) -> Iterable["NativeFacts"] | None:
    """Return what the packages of a recipe's lock say, None where there is no lock."""
    from envbuild.cli import planning, progress
    from envbuild.errors import LockError
    from envbuild.lock import files
    from envbuild.lock.digest import applying
    from envbuild.pipeline import inspecting
    from envbuild.rebuild import house
    from envbuild.recipe import load
    from envbuild.solve.ask import sources

    folder = here.lock_folder(name)
    if folder is None:
        return None
    lock = files.read(folder)
    half = lock.for_platform(meant.platform)
    if half is None:
        message = f"the lock of {name} has nothing for {meant.platform}"
        raise LockError(message, source=f"{folder}", hint="name another --platform")
    loaded = load.load(name, here.recipe_folders)
    if any(one.name == "python" for one in half.conda) or meant.python is None:
        python = planning.python_of(here, lock, meant.platform)
    else:
        python = ".".join(map(str, meant.python))
    access = here.access
    with progress.shown(here) as shown:
        return list(
            inspecting.locked(
                replace(half, pip=applying(half.pip, meant.platform, python=python)),
                inspecting.For(platform=meant.platform, python=_minor(python)),
                (
                    *sources(loaded, cutoff=lock.cutoff, access=access),
                    house.source(here.store.wheelhouse, access),
                ),
                cache=here.store.package_cache,
                access=access,
                progress=shown,
            )
        )


def _host(here: Here, text: str | None) -> "Host | None":
    """Return what `--against` says.

    Raises:
        UsageProblem: It says something else.
    """
    if text is None:
        return None
    from envbuild.compat.binaries import Host

    told: dict[str, list[str]] = {}
    for part in text.split(","):
        key, equals, value = (each.strip() for each in part.partition("="))
        if key not in _KEYS or not equals or not value:
            message = f"--against: {part.strip()!r} is not one of {', '.join(_KEYS)} with a value"
            raise UsageProblem(message, hint="--against gpu=b200,glibc=2.28,driver=550.54")
        if key != "gpu" and not _VERSION.fullmatch(value):
            message = f"--against: {key}={value} is not a version"
            raise UsageProblem(message, hint="numbers and dots, such as 2.28")
        told.setdefault(key, []).append(value)
    known = {row.id: row.capability for row in here.facts.gpus}
    return Host(
        gpus=tuple((gpu, _card(gpu, known)) for gpu in told.get("gpu", ())),
        driver=told.get("driver", [None])[-1],
        glibc=_numbers(told.get("glibc")),
        glibcxx=_numbers(told.get("glibcxx")),
    )


def _card(gpu: str, known: Mapping[str, str]) -> Capability:
    try:
        return capability_of(known.get(gpu.lower(), gpu))
    except ValueError as error:
        message = f"--against: no card or compute capability {gpu!r} is known"
        raise UsageProblem(message, hint="see: envbuild facts list gpu") from error


def _numbers(values: list[str] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(map(int, values[-1].split(".")))


def _verdicts(facts: "NativeFacts", gpu: Capability) -> dict[str, str]:
    return {file.path: verdict(file.kernels, gpu) for file in facts.files if file.kernels}
