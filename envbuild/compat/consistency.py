"""Holding the tables of facts against themselves: what contradicts itself is not believed."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import cache
from itertools import pairwise
from typing import NoReturn, TypeVar

from envbuild.compat.model import Facts, Gpu
from envbuild.compat.row import Row
from envbuild.native.code import capability_of, code_of

T = TypeVar("T")
Numbers = tuple[int, ...]
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_PYTHON = re.compile(r"[0-9]+\.[0-9]+t?")


class Contradiction(ValueError):
    """A row contradicts others, or itself.

    Attributes:
        row: The row.
    """

    def __init__(self, row: Row, why: str) -> None:
        """Keep the row beside what is wrong with it."""
        super().__init__(why)
        self.row = row


def numbers(version: str) -> Numbers:
    """Return a version of numbers and dots, for comparing.

    Raises:
        ValueError: It is none.
    """
    if not _VERSION.fullmatch(version):
        message = f"{version!r} is not a version of numbers and dots"
        raise ValueError(message)
    return tuple(map(int, version.split(".")))


def check(facts: Facts) -> None:
    """Raise where tables contradict themselves.

    Minimum drivers do not fall as CUDA rises, nor what a driver branch runs, nor the newest
    compiler that nvcc takes; what a row names in another table is there.

    Raises:
        Contradiction: They do.
    """
    for row in facts.rows():
        _each(row, _day, row.read)
    _check_values(facts)
    toolkits = sorted(facts.toolkits, key=lambda row: _each(row, numbers, row.version))
    _never_falls([(row, row.driver) for row in toolkits], "minimum driver")
    _never_falls([(row, row.minor_driver) for row in toolkits], "floor within its major version")
    for row in toolkits:
        if row.driver and row.minor_driver and numbers(row.driver) < numbers(row.minor_driver):
            _refuse(row, "its minimum driver is older than the floor of its major version")
    branches = sorted(facts.branches, key=lambda row: row.branch)
    _never_falls([(row, row.cuda) for row in branches], "newest CUDA")
    nvccs = sorted(facts.nvccs, key=lambda row: _each(row, numbers, row.cuda))
    _never_falls([(row, str(row.gcc_max)) for row in nvccs], "newest GCC")
    for bad in facts.bad_drivers:
        if _each(bad, numbers, bad.fixed) <= _each(bad, numbers, bad.first):
            _refuse(bad, "the release that mends it is not later than the first that has it")
    _check_names(facts)


def _check_values(facts: Facts) -> None:
    """Look at each value that is text with a form of its own."""
    for card in facts.architectures:
        _each(card, capability_of, card.capability)
        _every(card, numbers, card.first_cuda, card.last_cuda)
    for gpu in facts.gpus:
        _every(gpu, numbers, gpu.mig_driver)
    for row in facts.cudnns:
        _every(row, numbers, row.version, row.cuda, row.driver)
        _every(row, capability_of, *row.capabilities)
        _every(row, code_of, *row.codes)
    for build in facts.builds:
        _every(build, numbers, build.version, build.cuda, build.cuda_major, build.driver)
        _every(build, numbers, build.glibc)
        _every(build, _range, build.cudnn, build.nccl, build.triton, build.nvcc)
        _every(build, _range, build.requires_python)
        _every(build, _python, *build.pythons)
        _every(build, code_of, *build.codes, *build.all_codes)
    for bad in facts.known_bad:
        _every(bad, _range, *bad.packages.values())
        _every(bad, capability_of, *bad.capabilities)


def _every(row: Row, read: Callable[[str], object], *texts: str | None) -> None:
    for text in texts:
        if text is not None:
            _each(row, read, text)


@cache
def _range(text: str) -> None:
    """Raise where a text is neither a version nor a range of them.

    Raises:
        ValueError: It is neither.
    """
    if _VERSION.fullmatch(text):
        return
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        message = f"{text!r} is neither a version nor a range such as >=9.0,<10"
        raise ValueError(message) from error


def _python(text: str) -> None:
    """Raise where a text is no Python.

    Raises:
        ValueError: It is none.
    """
    if not _PYTHON.fullmatch(text):
        message = f"{text!r} is no Python such as 3.12 or 3.13t"
        raise ValueError(message)


def _check_names(facts: Facts) -> None:
    capabilities = {row.capability for row in facts.architectures}
    for gpu in facts.gpus:
        if gpu.capability not in capabilities:
            _refuse(gpu, f"no architecture has the compute capability {gpu.capability}")
        _check_mig(gpu, facts)
    releases = {row.version.rpartition(".")[0] for row in facts.toolkits}
    for build in facts.builds:
        if build.cuda and ".".join(build.cuda.split(".")[:2]) not in releases:
            _refuse(build, f"there is no toolkit of CUDA {build.cuda}")


def _check_mig(gpu: Gpu, facts: Facts) -> None:
    """Hold a card's profiles against how cards of its slices are divided."""
    whole = max((one.compute for one in gpu.mig), default=0)
    known = [row for row in facts.layouts if row.compute == whole]
    for one in gpu.mig if known else ():
        if "+" in one.profile:  # with media extensions, of which a card has one
            continue
        places = known[0].placements
        if not any((one.compute, one.count) == (row.compute, len(row.starts)) for row in places):
            _refuse(gpu, f"its {one} lies nowhere in the {known[0].name}")


def _never_falls(values: Iterable[tuple[Row, str | None]], what: str) -> None:
    known: Sequence[tuple[Row, Numbers]] = [
        (row, _each(row, numbers, value)) for row, value in values if value is not None
    ]
    for (earlier, low), (later, high) in pairwise(known):
        if high >= low:
            continue
        if earlier.site and not later.site:
            _refuse(earlier, f"its {what} is newer than that of {later.name}")
        _refuse(later, f"its {what} is older than that of {earlier.name}")


def _each(row: Row, read: Callable[[str], T], text: str) -> T:
    try:
        return read(text)
    except ValueError as error:
        _refuse(row, str(error))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        message = f"read: {text!r} is no day such as 2026-12-01"
        raise ValueError(message) from error


def _refuse(row: Row, why: str) -> NoReturn:
    raise Contradiction(row, why)
