"""What could be had in place of a rebuild: other builds that are known to meet the recipe."""

from collections.abc import Iterator

from packaging.version import Version

from envbuild.compat.binaries import codes_text
from envbuild.compat.consistency import numbers
from envbuild.compat.model import Facts, FrameworkBuild
from envbuild.compat.triangle import Wanted, judge
from envbuild.native.code import code_of
from envbuild.packages import PipPackage
from envbuild.wheel import evidence
from envbuild.wheel.model import Instead, Rebuild
from envbuild.wheel.readings import Question, Reading


def builds(rebuild: Rebuild, question: Question, tables: Facts, *, cuda: bool) -> Iterator[Instead]:
    """Yield builds of PyTorch that meet what is asked: of its version, then of the next that does.

    Only what the tables say of compiler, string ABI and GPU code counts: a build of which they do
    not say it is not offered.

    Args:
        rebuild: How torch would be rebuilt.
        question: What is asked.
        tables: The known builds.
        cuda: Whether the locked build has GPU code.
    """
    found = [
        row
        for row in tables.builds
        if row.framework == "pytorch"
        and row.platform == question.platform
        and bool(row.cuda or row.cuda_major) == cuda
        and _has_python(row, question)
        and _meets(row, question)
    ]
    locked = _public(rebuild)
    same = [row for row in found if row.version == locked]
    later = [row for row in found if numbers(row.version) > numbers(locked)]
    first = min((numbers(row.version) for row in later), default=None)
    for row in (*same, *(row for row in later if numbers(row.version) == first)):
        yield Instead(
            name=rebuild.name,
            what=_told(row),
            changes=_changes(row, rebuild, question, tables),
            sources=row.sources,
        )


def _public(rebuild: Rebuild) -> str:
    """Return a version as the tables have it: without what an index or a rebuild added to it."""
    return Version(rebuild.version).base_version


def _has_python(row: FrameworkBuild, question: Question) -> bool:
    return question.python is None or not row.pythons or question.python in row.pythons


def _meets(row: FrameworkBuild, question: Question) -> bool:
    """Say whether a build is known to have all that is asked for."""
    package = PipPackage(name=row.framework, version=row.version, hashes=())
    told = evidence.answer(Reading(package=package, distribution=None, row=row), question)
    return not told.reasons and not told.open


def _told(row: FrameworkBuild) -> str:
    codes = codes_text(frozenset(map(code_of, row.all_codes or row.codes)))
    parts = [row.compiler, f"CUDA {row.cuda}" if row.cuda else None, codes]
    abi = None if row.cxx11_abi is None else f"{'new' if row.cxx11_abi else 'old'} string ABI"
    return f"{row.name}: {', '.join(part for part in (*parts[:1], abi, *parts[1:]) if part)}"


def _changes(row: FrameworkBuild, rebuild: Rebuild, question: Question, tables: Facts) -> str:
    """Return what would be another one than now, in words."""
    changes = [] if row.version == _public(rebuild) else [f"version {row.version}"]
    if row.cuda and question.cuda and row.cuda != question.cuda:
        changes.append(f"CUDA {row.cuda}")
    driver = judge(tables, row, Wanted(framework=row.framework, platform=row.platform)).driver
    if driver is not None:
        changes.append(f"driver {driver} or newer")
    return ", ".join(changes) or "nothing but the index"
