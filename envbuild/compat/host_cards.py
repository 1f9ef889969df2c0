"""What speaks against a host's cards: lost, broken memory, heat, links, modes that wait."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from envbuild.compat.host_words import on_bus, places
from envbuild.findings import Finding, Severity
from envbuild.host.machine import Host, Link
from envbuild.host.model import Gpu
from envbuild.host.readings import NOT_ASKED, Lost, NoAnswer, known

_MEMORY = "NVIDIA, GPU Memory Error Management"
_PCIE = (
    "nvidia-smi(1): an idle card may lower its generation; its width stays, so a width or a"
    " generation under load is sure"
)
_REASONS = "NVML, nvmlClocksEventReasons"
_HEAT = {"hw-thermal-slowdown", "sw-thermal-slowdown"}
_BRAKE = {"hw-power-brake"}
_SLOW = {"hw-slowdown"}
_CAP = {"sw-power-cap"}
_RESET = "end what runs on the card, then: nvidia-smi --gpu-reset -i "


def judge(host: Host) -> Iterator[Finding]:
    """Yield what speaks against the cards."""
    for gpu in host.nvml.gpus:
        where = f"GPU {gpu.index}"
        if (why := _lost(gpu)) is not None:
            yield _gone(where, why)
            continue
        yield from _memory(gpu, where)
        yield from _modes(gpu, where)
        yield from _clocks(gpu, where)
        yield from _links(gpu, where)
        yield from _silent(gpu, where, host.nvml.why)
    by_index = {gpu.index: gpu for gpu in host.nvml.gpus}
    told = {address: by_index.pop(index) for index, address in places(host).items()}
    for device in on_bus(host):
        card = told.pop(device.address, None)
        lost = card is not None and _lost(card) is not None
        if isinstance(device.link.width, Lost) and not lost:
            yield _gone(device.address, device.link.width.why)
        elif not lost:
            yield from _pcie(device.link, card, device.address)
    for gpu in (*told.values(), *by_index.values()):  # whose place on the bus is not shown here
        if _lost(gpu) is None:
            yield from _pcie(_link_of(gpu), gpu, "")


def _gone(where: str, why: str) -> Finding:
    return Finding(
        code="gpu-lost",
        severity=Severity.ERROR,
        where=where,
        what=f"the card no longer answers on the bus: {why}",
        why="what ran on it has failed, and nothing starts on it (nvml.h, NVML_ERROR_GPU_IS_LOST;"
        " in the kernel's log Xid 79)",
        hint="turn the machine off and on again; if it comes back, look at the seat, the power and"
        " the slot of the card",
    )


def _lost(gpu: Gpu) -> str | None:
    found = next((one for _, one in _readings(gpu) if isinstance(one, Lost)), None)
    return None if found is None else found.why or "it is lost"


def _readings(part: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every reading of a card with its name."""
    if not is_dataclass(part):
        yield path.lstrip("."), part
        return
    for each in fields(part):
        yield from _readings(getattr(part, each.name), f"{path}.{each.name}")


def _memory(gpu: Gpu, where: str) -> Iterator[Finding]:
    rows, pages, ecc = gpu.remapped_rows, gpu.retired_pages, gpu.ecc
    if known(rows.failed):
        yield Finding(
            code="remap-failed",
            severity=Severity.ERROR,
            where=where,
            what="a bad row of its memory could not be replaced",
            why=f"the card computes on memory that is known to be bad ({_MEMORY})",
            hint="take the card out of use and have it replaced",
        )
    if known(rows.pending) or known(pages.pending):
        yield Finding(
            code="remap-pending",
            severity=Severity.WARNING,
            where=where,
            what="bad memory is to be replaced at the next reset of the card",
            why=f"until then the bad place may be used again ({_MEMORY})",
            hint=f"{_RESET}{gpu.index}",
        )
    spare = known(rows.spare)
    if spare is not None and spare.none:
        yield Finding(
            code="spare-rows-gone",
            severity=Severity.WARNING,
            where=where,
            what=f"{spare.none} of its memory's banks have no spare row left",
            why=f"the next bad row there cannot be replaced ({_MEMORY})",
            hint="plan to have the card replaced",
        )
    now, ever = known(ecc.uncorrected_volatile), known(ecc.uncorrected_aggregate)
    if now or ever:
        since = f"{now} since the driver was loaded" if now else "none since the driver was loaded"
        yield Finding(
            code="ecc-uncorrected",
            severity=Severity.WARNING if now else Severity.NOTE,
            where=where,
            what=f"memory errors that could not be corrected: {since}"
            + (f", {ever} in its life" if ever is not None else ""),
            why=f"a program that was hit is ended, with what it had computed ({_MEMORY})",
            hint="look whether a reset is pending; where the count rises, have the card replaced",
        )
    if known(ecc.current) is False:
        yield Finding(
            code="ecc-off",
            severity=Severity.NOTE,
            where=where,
            what="error correction of its memory is off",
            why="errors of memory then change results without a word",
            hint=f"nvidia-smi -i {gpu.index} -e 1, then reset the card",
        )


def _modes(gpu: Gpu, where: str) -> Iterator[Finding]:
    for code, what, both in (("mig-pending", "MIG", gpu.mig), ("ecc-pending", "ECC", gpu.ecc)):
        current, pending = known(both.current), known(both.pending)
        if current is not None and pending is not None and current != pending:
            words = {True: "on", False: "off"}
            yield Finding(
                code=code,
                severity=Severity.WARNING,
                where=where,
                what=f"{what} is {words[current]}, and will be {words[pending]} after a reset",
                why="what was planned for the one does not run on the other",
                hint=f"{_RESET}{gpu.index}",
            )
    if known(gpu.mig.current) and known(gpu.mig.devices) == ():
        yield Finding(
            code="mig-empty",
            severity=Severity.WARNING,
            where=where,
            what="MIG is on, and no instance is made",
            why="CUDA finds nothing to run on; instances are gone after each restart (NVIDIA, MIG"
            " User Guide)",
            hint=f"nvidia-smi mig -i {gpu.index} -cgi PROFILE -C makes one; -lgip lists profiles",
        )
    mode = known(gpu.compute_mode)
    if mode not in (None, "default"):
        yield Finding(
            code="compute-mode",
            severity=Severity.WARNING if mode == "prohibited" else Severity.NOTE,
            where=where,
            what=f"its compute mode is {mode}",
            why="no CUDA program may use it"
            if mode == "prohibited"
            else "one process at a time may use it; MPS wants it so (nvidia-smi(1))",
            hint=f"nvidia-smi -i {gpu.index} -c DEFAULT",
        )


def _clocks(gpu: Gpu, where: str) -> Iterator[Finding]:
    reasons = frozenset(known(gpu.clocks.reasons) or ())
    degrees = known(gpu.temperature.gpu_c)
    at = "" if degrees is None else f" at {degrees} °C"
    if found := sorted(reasons & _HEAT):
        yield Finding(
            code="throttled-heat",
            severity=Severity.WARNING,
            where=where,
            what=f"heat holds its clocks down{at} ({', '.join(found)})",
            why=f"it computes slower than it can ({_REASONS})",
            hint="look at fans, air flow and the machine's inlet temperature; a lower power limit"
            " keeps clocks even",
        )
    if reasons & _SLOW and not reasons & (_HEAT | _BRAKE):
        yield Finding(
            code="throttled-hardware",
            severity=Severity.WARNING,
            where=where,
            what=f"the hardware halves its clocks or more{at} (hw-slowdown)",
            why="heat, the power supply or a draw that rises too fast; the card does not say which"
            f" ({_REASONS})",
            hint="look at its temperature and at the power supplies; nvidia-smi -q -d PERFORMANCE",
        )
    if found := sorted(reasons & (_BRAKE | _CAP)):
        brake = bool(reasons & _BRAKE)
        yield Finding(
            code="throttled-power",
            severity=Severity.WARNING if brake else Severity.NOTE,
            where=where,
            what=f"its power holds its clocks down ({', '.join(found)})",
            why="the machine's power supply told the card to slow down" if brake
            else f"it draws what its limit allows: normal under full load ({_REASONS})",
            hint="look at the power supplies and what else they feed" if brake else None,
        )  # fmt: skip


def _links(gpu: Gpu, where: str) -> Iterator[Finding]:
    links = known(gpu.nvlinks) or ()
    down = [link.link for link in links if known(link.active) is False]
    if down and len(down) < len(links):
        yield Finding(
            code="nvlink-down",
            severity=Severity.WARNING,
            where=where,
            what=f"{len(down)} of {len(links)} NVLinks are down: {', '.join(map(str, down))}",
            why="cards exchange data slower, and some pairs perhaps over PCIe only",
            hint=f"nvidia-smi nvlink -s -i {gpu.index}; the kernel's log may have an Xid 74",
        )


def _silent(gpu: Gpu, where: str, told: str) -> Iterator[Finding]:
    """Yield readings that got no answer, or one that cannot be: all of a card in one finding.

    Args:
        gpu: The card.
        where: What it is called.
        told: Why NVML as a whole did not answer: what hangs on that is told already.
    """
    odd = [
        (name, one)
        for name, one in _readings(gpu)
        if isinstance(one, NoAnswer)
        and not one.why.startswith(NOT_ASKED.why)
        and not (told and told in one.why)
    ]
    if odd:
        some = "; ".join(f"{name}: {one.why}" for name, one in odd[:3])
        more = f"; and {len(odd) - 3} more" if len(odd) > 3 else ""  # noqa: PLR2004
        yield Finding(
            code="reading-no-answer",
            severity=Severity.WARNING,
            where=where,
            what=f"no answer that can be used for {some}{more}",
            why="these are taken as not known, never as zero",
            hint="the kernel's log may say more; a card whose sensors fail may need service",
        )


def _link_of(gpu: Gpu) -> Link:
    """Return a card's link as NVML has it, where the bus does not show the card."""
    pcie = gpu.pcie
    return Link(
        generation=pcie.generation,
        width=pcie.width,
        max_generation=pcie.card_max_generation,
        max_width=pcie.max_width,
        slot_generation=pcie.max_generation,
        slot_width=pcie.max_width,
    )


def _pcie(link: Link, gpu: Gpu | None, address: str) -> Iterator[Finding]:
    """Yield a link that is slower than card and slot could be together."""
    where = address if gpu is None else f"GPU {gpu.index}"
    width, most = known(link.width), _least(known(link.max_width), known(link.slot_width))
    now = known(link.generation)
    best = _least(known(link.max_generation), known(link.slot_generation))
    narrow = width is not None and most is not None and width < most
    slow = now is not None and best is not None and now < best
    reasons = None if gpu is None else known(gpu.clocks.reasons)
    idle = reasons is None or "gpu-idle" in reasons
    if narrow or slow:
        yield Finding(
            code="pcie-degraded",
            severity=Severity.NOTE if idle and not narrow else Severity.WARNING,
            where=where,
            what=f"its link runs as {_link(now, width)}; card and slot could do"
            f" {_link(best, most)} together" + (" (idle now)" if slow and idle else ""),
            why=_PCIE,
            hint="look again under load" if not narrow
            else "seat the card and its riser anew; look into the firmware's settings of the slot",
        )  # fmt: skip
    own, wide = known(link.max_generation), known(link.max_width)
    if (best is not None and own is not None and best < own) or (
        most is not None and wide is not None and most < wide
    ):
        slot = f" ({name})" if (name := known(link.slot)) else ""
        yield Finding(
            code="pcie-slot",
            severity=Severity.WARNING,
            where=where,
            what=f"its slot{slot} gives {_link(best, most)} at most; the card can"
            f" do {_link(own, wide)}",
            why="copies between memory and card are slower by that, whatever runs",
            hint="put the card into another slot, or look into the firmware's settings of this one",
        )


def _least(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


def _link(generation: int | None, width: int | None) -> str:
    return f"gen {'?' if generation is None else generation} x{'?' if width is None else width}"
