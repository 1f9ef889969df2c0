"""Rows of the tables as plain sentences, each with where it was read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from envbuild.compat.consistency import numbers
from envbuild.compat.model import (
    Architecture,
    Branch,
    Cudnn,
    Facts,
    FrameworkBuild,
    Gpu,
    Nvcc,
    Toolkit,
)
from envbuild.compat.row import Row
from envbuild.compat.triangle import Wanted, driver_floor, first_with_code, judge, takes
from envbuild.compat.words import Claim, KnownBad, Topic, Xid

_PACKAGES = {"pytorch": "torch", "jax": "jax"}
_KINDS = {
    "long-term": "a long-term branch",
    "production": "a production branch",
    "new-feature": "a new-feature branch",
}
_VERDICTS = {"true": "True", "partly": "Partly true", "false": "False"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """A sentence or some, with where they were read.

    Attributes:
        text: What is known.
        sources: Where it was read.
        read: The day on which it was (ISO 8601).
        confidence: How sure it is.
    """

    text: str
    sources: tuple[str, ...]
    read: str
    confidence: str


def of(row: Row, text: str) -> Statement:
    """Return a statement with the sources of a row; a site's row says whose it is."""
    parts = [text, *([f"{_capital(row.note)}."] if row.note else [])]
    return Statement(
        text=" ".join(parts), sources=sources(row), read=row.read, confidence=row.confidence
    )


def sources(row: Row) -> tuple[str, ...]:
    """Return where a row was read, and whose it is where it is a site's."""
    return (*row.sources, *([f"the site's own facts, {row.site}"] if row.site else []))


def topic(row: Topic) -> Statement:
    """Return what is known about a topic."""
    return of(row, f"{row.title}. {row.text}")


def claim(row: Claim) -> Statement:
    """Return whether what people repeat is true."""
    verdict = _VERDICTS.get(row.verdict, "Not verified")
    return of(row, f"People say: {row.claim}. {verdict}: {row.truth}.")


def known_bad(row: KnownBad) -> Statement:
    """Return what fails, when, and what helps."""
    packages = " with ".join(f"{name} {versions}" for name, versions in row.packages.items())
    cards = f" on cards of {', '.join(row.capabilities)}" if row.capabilities else ""
    return of(
        row,
        f"Known to fail: {packages}{cards}: {row.effect}, when {row.when}. What helps: {row.cure}.",
    )


def xid(row: Xid) -> Statement:
    """Return what a number of the kernel's log says, and what to do."""
    return of(row, f"Xid {row.number}, {row.title}: {row.what}. What to do: {row.cure}.")


def build(facts: Facts, row: FrameworkBuild) -> Statement:
    """Return what a build of a framework holds and needs."""
    parts = [f"{_named(row)} {_made(row)}."]
    parts += _code(row)
    if driver := judge(facts, row, Wanted(platform=row.platform)).driver:
        parts.append(f"It needs driver {driver} or newer.")
    pythons = [python for python in row.pythons if not python.endswith("t")]
    if pythons:
        parts.append(f"There are packages for Python {span(pythons)}.")
    if row.compiler:
        glibc = f" and needs glibc {row.glibc} or newer" if row.glibc else ""
        parts.append(f"It was compiled with {row.compiler}{glibc}.")
    return of(row, " ".join(parts))


def _named(row: FrameworkBuild) -> str:
    platform = "" if row.platform == "linux-64" else f" for {row.platform}"
    if row.build_string:
        package = "jaxlib" if row.framework == "jax" else row.framework
        return f"{package} {row.version} {row.build_string} of the channel {row.origin}{platform}"
    if row.framework == "jax":
        return f"jax[{row.origin}] {row.version}{platform}"
    origin = "from PyPI" if row.origin == "pypi" else f"{row.origin} of PyTorch's index"
    return f"torch {row.version} {origin}{platform}"


def place(row: FrameworkBuild) -> str:
    """Return a build with what it is made of and where it can be had."""
    made = [f"CUDA {row.cuda or f'{row.cuda_major}.x'}"]
    made += [f"cuDNN {row.cudnn}"] if row.cudnn else []
    if row.build_string is not None:
        package = "jaxlib" if row.framework == "jax" else row.framework
        made = [f"{package} {row.version} {row.build_string}", *made]
        return ", ".join([*made, f"conda channel {row.origin}"])
    if row.framework == "jax":
        return ", ".join([f"jax[{row.origin}] {row.version}", *made, "PyPI"])
    origin = "PyPI" if row.origin == "pypi" else f"PyTorch's wheel index, {row.origin}"
    return ", ".join([f"torch {row.version}", *made, origin])


def _made(row: FrameworkBuild) -> str:
    if row.cuda is None and row.cuda_major is None:
        return "is for the processor alone"
    does = f"is built with CUDA {row.cuda}" if row.cuda else f"runs with CUDA {row.cuda_major}"
    wants = [
        f"{name} {version}"
        for name, version in (("cuDNN", row.cudnn), ("NCCL", row.nccl), ("Triton", row.triton))
        if version
    ]
    return f"{does} and wants {', '.join(wants)}" if wants else does


def _code(row: FrameworkBuild) -> Iterator[str]:
    codes = row.all_codes or row.codes
    if codes:
        ptx = "" if any(code.startswith("compute") for code in codes) else ", and no PTX"
        yield f"It has code for {' '.join(codes)}{ptx}."
    elif row.cuda or row.cuda_major:
        yield "For which cards it has code was not read."


def builds(facts: Facts, rows: Sequence[FrameworkBuild]) -> Iterator[Statement]:
    """Yield what changed from release to release, a sentence for releases that are alike."""
    ordered = sorted(rows, key=lambda row: numbers(row.version))

    def alike(row: FrameworkBuild) -> tuple[str | None, str | None]:
        return row.cuda or row.cuda_major, row.cudnn

    for (cuda, cudnn), group in groupby(ordered, alike):
        some = list(group)
        package = _PACKAGES[some[0].framework]
        versions = span([row.version for row in some])
        floor = judge(facts, some[-1], Wanted(platform=some[-1].platform)).driver
        parts = [f"CUDA {cuda}" if cuda else "the processor alone"]
        parts += [f"cuDNN {cudnn}"] if cudnn else []
        parts += [f"driver {floor} or newer"] if floor else []
        yield of(some[-1], f"{package} {versions}: {', '.join(parts)}.")


def toolkit(row: Toolkit) -> Statement:
    """Return which drivers a toolkit needs."""
    parts = []
    if row.driver or row.branch:
        oldest = row.driver or f"branch {row.branch}"
        parts.append(f"All of CUDA {row.version} works from driver {oldest} on.")
    if row.minor_driver:
        parts.append(
            f"Programs built with CUDA {row.version} that bring machine code for the card run "
            f"from {row.minor_driver} on."
        )
    return of(row, " ".join(parts) or f"No driver is known for CUDA {row.version}.")


def nvcc(row: Nvcc) -> Statement:
    """Return which compilers an nvcc takes, and what changed in its code."""
    text = (
        f"nvcc of CUDA {row.cuda} takes GCC {row.gcc_min} to {row.gcc_max} and clang "
        f"{row.clang_min} to {row.clang_max}."
    )
    if row.new_codes:
        text += f" New in its code: {' '.join(row.new_codes)}."
    if row.dropped_codes:
        text += f" No longer in it: {' '.join(row.dropped_codes)}."
    return of(row, text)


def cudnn(row: Cudnn) -> Statement:
    """Return for which cards and drivers a cuDNN is."""
    driver = f" under driver {row.driver} or newer" if row.driver else ""
    text = (
        f"cuDNN {row.version} for CUDA {row.cuda} supports cards of {', '.join(row.capabilities)}"
        f"{driver}."
    )
    if row.package:
        text += f" On PyPI: {row.package}."
    return of(row, text)


def branch(facts: Facts, row: Branch) -> Iterator[Statement]:
    """Yield what a branch of the driver runs, and for how long it is kept."""
    kept = f", with updates until {row.end_of_life}" if row.end_of_life else ""
    newest = f" Its newest release that was seen is {row.latest}." if row.latest else ""
    yield of(
        row,
        f"Driver {row.branch} runs CUDA up to {row.cuda}. It is {_KINDS[row.kind]}{kept}.{newest}",
    )
    for card in facts.architectures:
        floor = driver_floor(facts, (), (card.capability,))
        if floor is not None and numbers(floor.version)[0] > row.branch:
            yield of(
                card,
                f"It does not know cards of {card.capability} ({card.title}): they need "
                f"{floor.version} or newer.",
            )
        elif card.last_branch is not None and card.last_branch <= row.branch:
            last = "It is" if card.last_branch == row.branch else f"{card.last_branch} was"
            yield of(card, f"{last} the last branch for cards of {card.capability} ({card.title}).")


def gpu(row: Gpu) -> Statement:
    """Return what a card is."""
    parts = [f"{row.title} has the compute capability {row.capability}"]
    if row.memory_gb:
        memory = f" {row.memory_type}" if row.memory_type else ""
        parts.append(f"{row.memory_gb} GB of{memory or ' memory'}")
    if row.nvlink:
        speed = f" ({row.nvlink_gb_per_s} GB/s)" if row.nvlink_gb_per_s else ""
        parts.append(f"NVLink {row.nvlink}{speed}")
    text = ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
    if row.mig:
        since = f" from driver {row.mig_driver} on" if row.mig_driver else ""
        text += f". It can be cut{since} into {' or '.join(map(str, row.mig))}"
    return of(row, f"{text}.")


def architecture(facts: Facts, row: Architecture) -> Iterator[Statement]:
    """Yield what a compute capability is, and what runs on it."""
    end = f" to {row.last_cuda}" if row.last_cuda else " on"
    formats = [name for name, has in (("FP8", row.fp8), ("FP4", row.fp4)) if has]
    computes = f" It computes in {' and '.join(formats)}." if formats else ""
    yield of(
        row,
        f"{row.capability} is {row.title}. Toolkits make code for it from CUDA {row.first_cuda}"
        f"{end}.{computes}",
    )
    if floor := driver_floor(facts, (), (row.capability,)):
        last = f", branch {row.last_branch} is the last that does" if row.last_branch else ""
        yield of(row, f"Drivers know it from {floor.version} on{last}.")
    for framework in ("pytorch", "jax"):
        wanted = Wanted(capabilities=(row.capability,), framework=framework)
        if first := first_with_code(facts, wanted):
            yield of(
                first.build,
                f"The first known {framework} with code for it is {_named(first.build)}.",
            )


def span(versions: Sequence[str]) -> str:
    """Return versions as their first and last."""
    return versions[0] if versions[0] == versions[-1] else f"{versions[0]} to {versions[-1]}"


def said(facts: Facts, word: str) -> Iterator[Statement]:
    """Yield what people say of a package, where its name is in it."""
    for row in facts.claims:
        if word in f"{row.id} {row.claim}".lower():
            yield claim(row)


def failures(facts: Facts, package: str, versions: Sequence[str] = ()) -> Iterator[Statement]:
    """Yield known failures of a package, of one of these versions where they are told."""
    for row in facts.known_bad:
        affected = row.packages.get(package)
        if affected is None:
            continue
        if not versions or any(takes(affected, version) for version in versions):
            yield known_bad(row)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
