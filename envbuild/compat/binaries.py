"""Binaries against what they are to run on: cards, a driver, a glibc, a libstdc++."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from envbuild.compat.consistency import Numbers, numbers
from envbuild.compat.model import Facts
from envbuild.compat.triangle import driver_floor, driver_numbers, full_driver
from envbuild.findings import Finding, Findings, Severity
from envbuild.native.code import Capability, GpuCode, verdict
from envbuild.native.judge import grouped, listed
from envbuild.native.model import ElfFacts, Family, NativeFacts, Version, version_text

_ZSTD_CUDA = "12.4"
# PTX ISA, "Release History": the toolkit that each version of the instruction set came with.
_CUDA_OF_ISA = {
    (6, 0): "9.0", (6, 1): "9.1", (6, 2): "9.2", (6, 3): "10.0", (6, 4): "10.1", (6, 5): "10.2",
    (7, 0): "11.0", (7, 1): "11.1", (7, 2): "11.2", (7, 3): "11.3", (7, 4): "11.4",
    (7, 5): "11.5", (7, 6): "11.6", (7, 7): "11.7", (7, 8): "11.8", (8, 0): "12.0",
    (8, 1): "12.1", (8, 2): "12.2", (8, 3): "12.3", (8, 4): "12.4", (8, 5): "12.5",
    (8, 6): "12.7", (8, 7): "12.8", (8, 8): "12.9", (9, 0): "13.0", (9, 1): "13.1",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """What binaries are to run on; None and empty leave a part open.

    Attributes:
        gpus: What each card was called, with its compute capability.
        driver: Version of the driver, or its branch.
        glibc: Version of glibc.
        glibcxx: The newest `GLIBCXX` that its libstdc++ has.
    """

    gpus: tuple[tuple[str, Capability], ...] = ()
    driver: str | None = None
    glibc: Version | None = None
    glibcxx: Version | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeDriver:
    """A driver that GPU code needs for the form that it is in, whatever the card.

    Attributes:
        form: `zstd` for compressed code, `ptx` where the driver has to compile PTX.
        cuda: CUDA whose drivers are the first that can.
        version: The first driver of that CUDA.
    """

    form: str
    cuda: str
    version: str


def code_drivers(files: Iterable[ElfFacts], tables: Facts) -> tuple[CodeDriver, ...]:
    """Return the newest drivers that the GPU code of files needs for its form.

    Args:
        files: What was read.
        tables: What is known of drivers.
    """
    every = list(files)
    isa = max((one.ptx_isa for one in every if one.ptx_isa), default=(0, 0))
    forms = {
        "zstd": _ZSTD_CUDA if any(one.zstd_code for one in every) else None,
        "ptx": _CUDA_OF_ISA.get(isa),
    }
    return tuple(
        CodeDriver(form=form, cuda=cuda, version=_spelled(driver))
        for form, cuda in forms.items()
        if cuda is not None and (driver := full_driver(tables, cuda)) is not None
    )


def against(facts: NativeFacts, host: Host, tables: Facts) -> Findings:
    """Return what keeps binaries from running on a host.

    Args:
        facts: What was read of them.
        host: What they are to run on.
        tables: What is known of drivers and cards.
    """
    return grouped(_all(facts, host, tables))


def _all(facts: NativeFacts, host: Host, tables: Facts) -> Iterator[Finding]:
    yield from _libraries(facts, "GLIBC", host.glibc)
    yield from _libraries(facts, "GLIBCXX", host.glibcxx)
    musl = [file.path for file in facts.files if file.libc == "musl"]
    if musl and host.glibc is not None:
        yield Finding(
            code="other-libc",
            severity=Severity.ERROR,
            where=facts.name,
            what=f"{listed(musl)} {_is(musl)} linked to musl, and the host has glibc",
            why="they do not load there",
            hint="take the wheel tagged manylinux",
        )
    for gpu, capability in host.gpus:
        yield from _card(facts, gpu, capability, host, tables)
    if host.driver is not None:
        yield from _zstd(facts, host.driver, tables)


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _libraries(facts: NativeFacts, family: Family, there: Version | None) -> Iterator[Finding]:
    floor = facts.floor(family)
    if there is None or floor is None or floor <= there:
        return
    over = [one for one in facts.files if (one.outer_floor(family) or ()) > there]
    files = [one.path for one in over if (one.floor(family) or ()) > there]
    open_names = {
        name
        for one in over
        for name, (other, version) in one.unversioned
        if other == family and version > there
    }
    named = max((v for one in over if (v := _named(one, family))), default=())
    hidden = named <= there
    library = "glibc" if family == "GLIBC" else "libstdc++"
    why = f"{listed(files)} {'needs' if len(files) == 1 else 'need'} it"
    if hidden:
        why += f", by symbols that name no version: {listed(sorted(open_names))}"
    what = f"it needs {library} {family}_{version_text(floor)}, and the host has "
    what += f"{family}_{version_text(there)}"
    hint = "take an older build of it, or a newer host"
    if family == "GLIBC":
        yield Finding(
            code="glibc-too-old",
            severity=Severity.ERROR,
            where=facts.name,
            what=what,
            why=why,
            hint=hint,
        )
    else:
        yield Finding(
            code="libstdcxx-too-old",
            severity=Severity.ERROR,
            where=facts.name,
            what=what,
            why=why,
            hint="put a newer libstdc++ into the environment",
        )


def _named(file: ElfFacts, family: Family) -> Version | None:
    return file.glibc if family == "GLIBC" else file.glibcxx


def _card(
    facts: NativeFacts, gpu: str, capability: Capability, host: Host, tables: Facts
) -> Iterator[Finding]:
    with_code = _different([file for file in facts.files if file.kernels])
    answers = [(file, verdict(file.kernels, capability)) for file in with_code]
    spelled = ".".join(map(str, capability))
    card = gpu if gpu == spelled else f"{gpu} ({spelled})"
    without = [file for file, answer in answers if answer == "none"]
    for file in without:
        rest = len(answers) - len(without)
        partly = f"partly: {rest} of {len(answers)} libraries have code for it; " if rest else ""
        yield Finding(
            code="no-gpu-code",
            severity=Severity.ERROR,
            where=file.path,
            what=f"{partly}it has none for {card}: it holds {codes_text(file.codes)}",
            why="its first kernel fails with 'no kernel image is available for execution'",
            hint="see which builds have code for it: envbuild triangle list --gpu " + gpu,
        )
    for file, answer in answers:
        if answer == "jit":
            yield _jit(file, card, host, tables)
    floor = driver_floor(tables, (), (spelled,))
    if floor is not None and host.driver and driver_numbers(host.driver) < numbers(floor.version):
        yield Finding(
            code="driver-too-old",
            severity=Severity.ERROR,
            where=facts.name,
            what=f"driver {host.driver} does not know {card}: {floor.version} is needed",
            why=floor.why,
        )


def _different(files: list[ElfFacts]) -> list[ElfFacts]:
    """Return each library once, whatever number of equal copies there is."""
    return list({file.sha256 or file.path: file for file in reversed(files)}.values())[::-1]


def _jit(file: ElfFacts, card: str, host: Host, tables: Facts) -> Finding:
    cuda = _CUDA_OF_ISA.get(file.ptx_isa or (0, 0))
    needed = full_driver(tables, cuda) if cuda else None
    isa = version_text(file.ptx_isa)
    what = f"it has no machine code for {card}: the driver compiles its PTX first"
    why = f"PTX {isa} is compiled by drivers of CUDA {cuda or 'its toolkit'} and newer"
    if needed is not None and host.driver and driver_numbers(host.driver) < needed:
        return Finding(
            code="driver-too-old",
            severity=Severity.ERROR,
            where=file.path,
            what=f"{what}, and driver {host.driver} cannot: {_spelled(needed)} is needed",
            why=why,
        )
    return Finding(
        code="gpu-code-compiled",
        severity=Severity.WARNING,
        where=file.path,
        what=what,
        why=f"the first start takes long; {why}",
    )


def _zstd(facts: NativeFacts, driver: str, tables: Facts) -> Iterator[Finding]:
    needed = full_driver(tables, _ZSTD_CUDA)
    files = [file.path for file in facts.files if file.zstd_code]
    if files and needed is not None and driver_numbers(driver) < needed:
        yield Finding(
            code="driver-too-old",
            severity=Severity.ERROR,
            where=files[0] if len(files) == 1 else f"{facts.name}: {listed(files)}",
            what=f"zstd-compressed GPU code needs a driver of CUDA {_ZSTD_CUDA} or newer "
            f"({needed[0]}), and {driver} is there",
            why="it fails with 'device kernel image is invalid'",
            hint="take a newer driver, or a build made with --compress-mode=speed or none",
        )


def _spelled(version: Numbers) -> str:
    first, *rest = version
    return ".".join([f"{first}", *(f"{part:02d}" for part in rest)])


def codes_text(codes: frozenset[GpuCode]) -> str:
    """Return targets of GPU code in order, machine code first (`sm_80 sm_90a compute_90`)."""
    ordered = sorted(codes, key=lambda code: (code.kind == "ptx", code.number, code.suffix))
    return " ".join(map(str, ordered))
