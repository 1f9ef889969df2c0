"""Python, glibc and compilers around the framework builds of a recipe, held against the facts."""

import re
from collections.abc import Iterator, Sequence

from envbuild.compat.consistency import numbers
from envbuild.compat.model import Facts, FrameworkBuild
from envbuild.compat.subject import Part, Subject
from envbuild.findings import Finding, Findings, Severity

_COMPILER = re.compile(
    r"(?:(?P<gcc>gcc|gxx)|(?P<clang>clang|clangxx))(?:_(?:impl_)?linux-(?:64|aarch64))?"
)
_NVCC_WHEEL = "nvidia-cuda-nvcc"
_TRITONS = ("triton", "torchtriton")
_DECLARED = (3, 3)
_NVCC = re.compile(r"cuda-nvcc(?:[_-].*)?")


def check(subject: Subject, facts: Facts, builds: Sequence[FrameworkBuild]) -> Findings:
    """Return what speaks against the Python, the glibc and the compilers.

    Args:
        subject: What is checked.
        facts: The tables.
        builds: The framework builds that are there.
    """
    return (
        *_python(subject, builds),
        *_glibc(subject, builds),
        *_nvcc(subject, facts),
        *_at_run_time(subject, facts, builds),
        *_undeclared(subject),
    )


def _python(subject: Subject, builds: Sequence[FrameworkBuild]) -> Iterator[Finding]:
    """Yield a Python that a build has no package for."""
    for build in builds:
        if subject.python is None or not build.pythons or subject.python in build.pythons:
            continue
        plain = [python for python in build.pythons if not python.endswith("t")]
        yield Finding(
            code="no-python-build",
            severity=Severity.ERROR,
            where=subject.where("python"),
            what=f"{build.name} has packages for Python {plain[0]} to {plain[-1]}, not for "
            f"{subject.python}",
            why="; ".join(build.sources),
            hint=f"see: envbuild triangle list --framework {build.framework} "
            f"--python {subject.python}",
        )


def _glibc(subject: Subject, builds: Sequence[FrameworkBuild]) -> Iterator[Finding]:
    """Yield a glibc of the target that a build's libraries do not run on."""
    for build in builds:
        if subject.glibc is None or build.glibc is None:
            continue
        if numbers(subject.glibc) < numbers(build.glibc):
            yield Finding(
                code="glibc-floor",
                severity=Severity.ERROR,
                where=subject.where("glibc"),
                what=f"{build.name} needs glibc {build.glibc}, and the target may have "
                f"{subject.glibc}",
                why="; ".join(build.sources),
                hint=f'glibc: "{build.glibc}"',
            )


def _nvcc(subject: Subject, facts: Facts) -> Iterator[Finding]:
    """Yield host compilers that the nvcc beside them does not take."""
    cudas = dict.fromkeys(_release(part) for part in subject.parts if _is_nvcc(part))
    cuda = next(iter(cudas), subject.cuda)
    row = next((one for one in facts.nvccs if one.cuda == cuda), None)
    if row is None:
        return
    for name, version, where in _compilers(subject, locked=bool(cudas)):
        newest = row.gcc_max if name == "gcc" else row.clang_max
        if numbers(version)[0] > newest:
            yield Finding(
                code="compiler-too-new",
                severity=Severity.ERROR,
                where=where,
                what=f"nvcc of CUDA {row.cuda} takes {name} up to {newest}, not {version}",
                why="; ".join(row.sources),
                hint=f"compiler: {name} {newest}",
            )


def _compilers(subject: Subject, *, locked: bool) -> Iterator[tuple[str, str, str]]:
    """Yield name, version and place of host compilers: the recipe's, else those of the lock."""
    if subject.compiler is not None:
        name, _, version = subject.compiler.partition(" ")
        yield name, version, subject.where("compiler")
    elif locked:
        seen: set[str] = set()
        for part in subject.parts:
            match = _COMPILER.fullmatch(part.name) if part.kind == "conda" else None
            name = "" if match is None else "gcc" if match["gcc"] else "clang"
            if name and name not in seen:
                seen.add(name)
                yield name, part.version, f"{subject.name}: {part}"


def _is_nvcc(part: Part) -> bool:
    if part.kind == "pypi":
        return part.plain_name == _NVCC_WHEEL
    return _NVCC.fullmatch(part.name) is not None and part.version[:1].isdigit()


def _release(part: Part) -> str:
    return ".".join(part.version.split(".")[:2])


def _at_run_time(
    subject: Subject, facts: Facts, builds: Sequence[FrameworkBuild]
) -> Iterator[Finding]:
    """Yield that torch.compile finds no C compiler in the environment."""
    torch = next((one for one in builds if one.framework == "pytorch" and one.cuda), None)
    topic = next((one for one in facts.topics if one.id == "torch-compile"), None)
    if torch is None or topic is None or not subject.locked or not subject.gpus:
        return
    there = any(part.kind == "conda" and _COMPILER.fullmatch(part.name) for part in subject.parts)
    if not there:
        yield Finding(
            code="no-c-compiler",
            severity=Severity.NOTE,
            where=f"{subject.name}: {torch.name}",
            what="torch.compile and Triton need a C compiler when they run, and none is locked",
            why="; ".join(topic.sources),
            hint="conda: gxx_linux-64; or see to it that every host has one",
        )


def _undeclared(subject: Subject) -> Iterator[Finding]:
    """Yield a Triton that imports setuptools without declaring it, where none is locked."""
    found = (one for one in subject.parts if one.name in _TRITONS)
    triton = next((one for one in found if numbers(one.version) < _DECLARED), None)
    if triton is None or not subject.locked:
        return
    if not any(part.name == "setuptools" for part in subject.parts):
        yield Finding(
            code="no-setuptools",
            severity=Severity.WARNING,
            where=f"{subject.name}: {triton}",
            what=f"Triton {triton.version} imports setuptools and does not declare it, and none is"
            " locked: torch.compile and Triton's kernels end with ModuleNotFoundError",
            why="triton/runtime/build.py of the wheels of 3.0.0 to 3.2.0, triton/common/build.py"
            " before; METADATA declares it from 3.3.0 on",
            hint="put setuptools beside it: into conda, or pypi",
        )
