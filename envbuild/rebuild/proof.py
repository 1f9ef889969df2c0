"""A rebuilt wheel, read again: what was asked for is there, or it is an error."""

from collections.abc import Iterator
from pathlib import Path

from envbuild.errors import ToolFailed
from envbuild.findings import Finding, Severity
from envbuild.native import judge
from envbuild.native.code import GpuCode, code_of
from envbuild.native.inspect import inspect
from envbuild.native.model import NativeFacts, version_text
from envbuild.rebuild.toolchain import Compiler
from envbuild.wheel.model import Rebuild

_NAMES = {"gcc": "GCC", "clang": "clang"}


def prove(wheel: Path, rebuild: Rebuild, compiler: Compiler, *, glibc: str) -> NativeFacts:
    """Read a wheel and return what it says.

    Args:
        wheel: The file.
        rebuild: What was asked for.
        compiler: What compiled it.
        glibc: The oldest glibc that the recipe is for.

    Raises:
        ToolFailed: It is not what was asked for; `details` says all that is wrong.
    """
    facts = inspect(wheel)
    wrong = [*problems(facts, rebuild, compiler)]
    if facts.glibc is not None and facts.glibc > tuple(map(int, glibc.split("."))):
        wrong.append(
            f"it needs glibc {version_text(facts.glibc)}, and the recipe is for {glibc} and newer: "
            f"build on an older system, with conda's gxx, or raise target.glibc"
        )
    wrong += [
        f"{found.where}: {found.what} [{found.code}]"
        for found in judge.findings(facts)
        if found.severity is Severity.ERROR
    ]
    if wrong:
        message = f"{wheel.name}: what was built is not what was asked for"
        hint = "see which compiler and flags its build takes, and set them under build.packages"
        raise ToolFailed(message, hint=hint, details="\n".join(wrong))
    return facts


def problems(facts: NativeFacts, rebuild: Rebuild, compiler: Compiler) -> Iterator[str]:
    """Yield what of compiler, string ABI and GPU code is not as it was asked for."""
    own = [file for file in facts.files if file.kind in {"library", "program"}]
    if not own:
        yield "no binary is in it: there is nothing that a compiler made"
        return
    name, major = _NAMES[compiler.family], compiler.version.partition(".")[0]
    for file in own:
        named = [one for one in file.compilers if one.startswith(f"{name} ")]
        versions = {one.split()[1].partition(".")[0] for one in named}
        if file.compilers and major not in versions:
            yield f"{file.path}: built by {', '.join(file.compilers)}, not by {name} {major}"
        elif any(int(one) > int(major) for one in versions if one.isdigit()):
            yield f"{file.path}: parts of it were built by {', '.join(named)}"
    if not any(file.compilers for file in own):
        yield "no file names its compiler, so it cannot be proven (was it stripped?)"
    if rebuild.abi is not None and facts.string_abi not in {rebuild.abi, "none"}:
        yield f"its string ABI is {facts.string_abi}, not {rebuild.abi}"
    yield from _codes(facts, rebuild)


def _codes(facts: NativeFacts, rebuild: Rebuild) -> Iterator[str]:
    """Compare GPU code: exactly the SASS that was asked for, and the PTX that was."""
    asked = {code for arch in rebuild.cuda_archs for code in wanted(arch)}
    if not asked or rebuild.toolchain.cuda is None:
        return
    there = {str(code) for code in facts.codes}
    missing = sorted({str(code) for code in asked} - there)
    if missing:
        yield f"it has no {', '.join(missing)}; it has {', '.join(sorted(there)) or 'no GPU code'}"
    more = sorted(there - {str(code) for code in asked})
    if extra := [code for code in more if code.startswith("sm_")]:
        yield f"it has {', '.join(extra)}, which nobody asked for"


def wanted(arch: str) -> tuple[GpuCode, ...]:
    """Return the code that a compute capability of a recipe means (`9.0+PTX`: SASS and PTX)."""
    bare, _, ptx = arch.partition("+")
    number = bare.replace(".", "")
    codes = [code_of(f"sm_{number}")]
    return (*codes, code_of(f"compute_{number}")) if ptx else tuple(codes)


def no_driver(name: str, why: str) -> Finding:
    """Return what is said where a wheel could not be imported for want of a driver."""
    return Finding(
        code="import-not-tried",
        severity=Severity.NOTE,
        where=name,
        what=f"{name} was not imported: this host has no NVIDIA driver",
        why=why,
        hint=f"import it on a host that has one: envbuild create, then envbuild run … python -c "
        f"'import {name}'",
    )
