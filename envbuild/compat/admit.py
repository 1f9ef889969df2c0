"""May an environment run on a host: what it needs against what the host says of itself."""

from collections.abc import Iterator

from envbuild.compat.consistency import numbers
from envbuild.compat.host_words import capability, card_name, cards, driver_of
from envbuild.compat.model import Facts
from envbuild.findings import Finding, Findings, Severity
from envbuild.host.machine import Host
from envbuild.host.readings import known
from envbuild.native.code import capability_of, code_of, verdict
from envbuild.target import MACHINES, NONE, Needs

_LEVEL = "x86_64_v"
_NO_KERNEL = (
    "the first kernel fails with `no kernel image is available for execution on the device`"
)
_GIB = 1 << 30


def admit(needs: Needs, host: Host, facts: Facts, *, name: str, is_here: bool) -> Findings:
    """Return what speaks against running an environment on a host; an error refuses it.

    What is not known, of the environment or of the host, is a warning: never fine.

    Args:
        needs: What it needs.
        host: The host.
        facts: The tables.
        name: The environment's name.
        is_here: Whether its files are on this host's disk already.
    """
    return (
        *_processor(needs, host, name),
        *_glibc(needs, host, name),
        *_memory(needs, host, name),
        *(() if is_here else _disk(needs, host, name)),
        *(() if needs_no_card(needs) else _cards(needs, host, facts, name)),
        *_unknown(needs, name),
    )


def needs_no_card(needs: Needs) -> bool:
    """Say whether an environment is for CPUs only."""
    return needs.gpus.value == NONE


def _contains(wanted: str, version: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(wanted).contains(version)


def _unread(where: str, what: str) -> Finding:
    return Finding(
        code="host-unread",
        severity=Severity.WARNING,
        where=where,
        what=f"{what} of this host is not known, so it was not compared",
        why="what is not known is not taken for fine",
        hint="envbuild doctor --json says why each reading is missing",
    )


def _processor(needs: Needs, host: Host, name: str) -> Iterator[Finding]:
    machine = known(host.machine.cpu.architecture)
    wanted = _machine(needs.platform.value)
    if machine is None:
        yield _unread(f"{name}: platform", "the processor")
        return
    if wanted is not None and machine != wanted:
        yield Finding(
            code="platform-differs",
            severity=Severity.ERROR,
            where=f"{name}: platform",
            what=f"it is for {needs.platform.value}, and this host is {machine}",
            why="its programs cannot be started",
            hint="add the host's platform to target.platforms of the recipe and lock it anew",
        )
        return
    cpu = needs.cpu.value or ""
    level = known(host.machine.cpu.level)
    if not cpu.startswith(_LEVEL) or not cpu.removeprefix(_LEVEL).isdigit():
        if cpu not in {"", *MACHINES.values()}:
            yield Finding(
                code="cpu-not-judged",
                severity=Severity.WARNING,
                where=f"{name}: CPU",
                what=f"it is for {cpu} and later; whether this host is one, no table says",
                why="a program may end with an illegal instruction",
                hint=f"this host has {known(host.machine.cpu.model) or 'a CPU that says no name'}",
            )
    elif level is None:
        yield _unread(f"{name}: CPU", "the level of the processor")
    elif level < int(cpu.removeprefix(_LEVEL)):
        yield Finding(
            code="cpu-too-old",
            severity=Severity.ERROR,
            where=f"{name}: CPU",
            what=f"it is for {cpu}, and this host is x86_64_v{level}",
            why="a program may end with an illegal instruction (x86-64 psABI, Micro-Architecture"
            " Levels)",
            hint=f"lock it with target.archspec: x86_64_v{level}, or take another host",
        )


def _machine(platform: str | None) -> str | None:
    found: dict[str, str] = {str(key): machine for key, machine in MACHINES.items()}
    return None if platform is None else found.get(platform)


def _glibc(needs: Needs, host: Host, name: str) -> Iterator[Finding]:
    if needs.glibc.value is None:
        return
    here = known(host.machine.system.glibc)
    if here is None:
        yield _unread(f"{name}: glibc", "the glibc")
    elif not _contains(needs.glibc.value, here):
        yield Finding(
            code="glibc-too-old",
            severity=Severity.ERROR,
            where=f"{name}: glibc",
            what=f"it needs glibc {needs.glibc.value}, and this host has {here}",
            why="its programs do not start: `version GLIBC_… not found` (ld.so(8))",
            hint=f"lock it with target.glibc: {here}, or take a newer host",
        )


def _memory(needs: Needs, host: Host, name: str) -> Iterator[Finding]:
    wanted = needs.memory.value
    memory = host.machine.memory
    here = [one for one in (known(memory.total_bytes), known(memory.limit_bytes)) if one]
    if wanted and wanted.isdigit() and here and int(wanted) > min(here):
        yield Finding(
            code="memory-short",
            severity=Severity.WARNING,
            where=f"{name}: memory",
            what=f"one of its services may take {int(wanted) / _GIB:.0f} GiB, and this host has"
            f" {min(here) / _GIB:.0f} GiB",
            why="the kernel ends it before its own limit does",
            hint="lower memory_max of the service, or take a host with more",
        )


def _disk(needs: Needs, host: Host, name: str) -> Iterator[Finding]:
    wanted, disk = needs.disk.value, host.machine.disk
    free = known(disk.free_bytes)
    if wanted and wanted.isdigit() and free is not None and int(wanted) > free:
        yield Finding(
            code="disk-short",
            severity=Severity.WARNING,
            where=f"{name}: disk",
            what=f"its archives have {int(wanted) / _GIB:.1f} GiB, and the store's disk has"
            f" {free / _GIB:.1f} GiB free",
            why="its files take more room than its archives; only what the store has already is not"
            " needed again",
            hint=f"free some ({disk.path}), as envbuild gc does; or put the store on another disk",
        )


def _cards(needs: Needs, host: Host, facts: Facts, name: str) -> Iterator[Finding]:
    if not cards(host):
        yield Finding(
            code="card-needed",
            severity=Severity.ERROR,
            where=f"{name}: cards",
            what=f"it is for {needs.gpus.value or 'cards'}, and this host has no NVIDIA card",
            why="its CUDA programs cannot run here",
            hint="take a host with such a card; it can be created and tested here all the same",
        )
        return
    driver = driver_of(host)
    if driver is None:
        yield Finding(
            code="driver-needed",
            severity=Severity.ERROR,
            where=f"{name}: driver",
            what="no driver is loaded on this host",
            why="its CUDA programs cannot run here",
            hint=f"install {_driver_words(needs)}",
        )
    else:
        yield from _driver(needs, driver, name)
    yield from _codes(needs, host, facts, name)


def _driver_words(needs: Needs) -> str:
    """Return which driver would do, in words: the recipe's range, else the oldest one."""
    wanted, floor = needs.driver.value, needs.floor.value
    if wanted not in {None, NONE}:
        return f"driver {wanted}"
    return "NVIDIA's driver" if floor in {None, NONE} else f"driver {floor} or newer"


def _driver(needs: Needs, driver: str, name: str) -> Iterator[Finding]:
    wanted, floor, branches = needs.driver.value, needs.floor.value, needs.branches.value
    fits = wanted in {None, NONE} or _contains(wanted or "", driver)
    if not fits:
        yield Finding(
            code="driver-out-of-range",
            severity=Severity.ERROR,
            where=f"{name}: driver",
            what=f"it is for driver {wanted}, and this host runs {driver}",
            why=f"the {needs.driver.origin} says so",
            hint="install a driver of that range, or change target.driver if it is too narrow",
        )
    if branches not in {None, NONE} and f"R{numbers(driver)[0]}" not in (branches or "").split(","):
        yield Finding(
            code="driver-out-of-range",
            severity=Severity.ERROR,
            where=f"{name}: driver",
            what=f"it is for the branches {branches}, and this host runs {driver}",
            why=f"the {needs.branches.origin} says so",
            hint="install a driver of such a branch, or change target.driver_branches",
        )
    if fits and floor not in {None, NONE} and numbers(driver) < numbers(floor or "0"):
        yield Finding(
            code="driver-too-old",
            severity=Severity.ERROR,
            where=f"{name}: driver",
            what=f"this host runs {driver}, and {floor} is needed",
            why=needs.floor.origin or "",
            hint=f"install driver {floor} or newer",
        )


def _codes(needs: Needs, host: Host, facts: Facts, name: str) -> Iterator[Finding]:
    """Yield cards that a framework has no code for: an error where no card is left."""
    named = (needs.capabilities.value or "").split(",")
    lacking: list[str] = []
    compiled: list[str] = []
    for card in cards(host):
        found = capability(card, facts)
        if found is None:
            yield _unread(f"{name}: {card_name(card)}", "the compute capability")
        elif needs.codes.value in {None, NONE}:
            if found not in named:
                yield Finding(
                    code="card-not-named",
                    severity=Severity.WARNING,
                    where=f"{name}: {card_name(card)}",
                    what=f"the recipe is for {needs.gpus.value or 'no card that it names'}; whether"
                    f" there is code for compute capability {found}, no table says",
                    why=_NO_KERNEL,
                    hint=f"once it is created: envbuild inspect {name}",
                )
        else:
            answers = [_verdict(codes, found) for codes in (needs.codes.value or "").split("; ")]
            lacking += [card_name(card)] * ("none" in answers)
            compiled += [card_name(card)] * ("none" not in answers and "jit" in answers)
    if lacking:
        alone = len(lacking) == len(cards(host))
        yield Finding(
            code="no-gpu-code",
            severity=Severity.ERROR if alone else Severity.WARNING,
            where=f"{name}: {', '.join(lacking)}",
            what=f"there is no code for {'these cards' if len(lacking) > 1 else 'this card'}: it"
            f" holds {needs.codes.value}",
            why=f"{_NO_KERNEL} ({needs.codes.origin})",
            hint="take a host with other cards, or a build that has the code: envbuild triangle"
            " list"
            if alone
            else "keep it to the other cards: CUDA_VISIBLE_DEVICES",
        )
    if compiled:
        yield Finding(
            code="code-compiled-first",
            severity=Severity.NOTE,
            where=f"{name}: {', '.join(compiled)}",
            what="the driver compiles its code for these cards when it is loaded",
            why="the first start takes longer (CUDA C++ Programming Guide, Just-in-Time"
            " Compilation)",
        )


def _verdict(text: str, card: str) -> str:
    codes = frozenset(map(code_of, text.partition(": ")[2].split()))
    return verdict(codes, capability_of(card))


def _unknown(needs: Needs, name: str) -> Iterator[Finding]:
    told = {
        "which platform": needs.platform,
        "which glibc": needs.glibc,
        "whether cards": needs.gpus,
        "which driver": needs.driver if needs.floor.value is None else needs.floor,
        "what GPU code it has": needs.codes,
    }
    missing = [what for what, need in told.items() if need.value is None]
    if missing:
        yield Finding(
            code="need-unknown",
            severity=Severity.WARNING,
            where=name,
            what=f"what it needs is not known in full: {', '.join(missing)}",
            why="neither its recipe nor a table says, or it was made before this was written down",
            hint=f"once it is created, envbuild inspect {name} reads its files; target.driver of"
            " the recipe names the oldest driver",
        )
