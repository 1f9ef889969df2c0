"""`Nvml`: what NVIDIA's management library says of the driver and the cards.

Every field that is asked for is a `Reading`. Names and meanings are those of nvml.h; units are in
the names: MiB are 2**20 bytes, mW and MHz as NVML gives them, temperatures in degrees Celsius.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from envbuild.host.mig import Mig
from envbuild.host.readings import NOT_ASKED, Reading


class NvmlState(StrEnum):
    """How NVML answered as a whole."""

    ANSWERED = "answered"
    NO_LIBRARY = "no-library"
    NOT_LOADED = "driver-not-loaded"
    MISMATCH = "version-mismatch"
    SILENT = "silent"
    DIED = "died"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """The card's memory in bytes; what is reserved belongs to driver and firmware.

    A driver before 510 counts what is reserved as used.
    """

    total_bytes: Reading[int] = NOT_ASKED
    used_bytes: Reading[int] = NOT_ASKED
    free_bytes: Reading[int] = NOT_ASKED
    reserved_bytes: Reading[int] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Ecc:
    """Error correction of memory; volatile counts are since the driver loaded.

    Attributes:
        current: Whether it is on.
        pending: Whether it will be after the next reset.
        corrected_volatile: Errors corrected.
        corrected_aggregate: The same over the card's life.
        uncorrected_volatile: Errors that could not be.
        uncorrected_aggregate: The same over the card's life.
    """

    current: Reading[bool] = NOT_ASKED
    pending: Reading[bool] = NOT_ASKED
    corrected_volatile: Reading[int] = NOT_ASKED
    corrected_aggregate: Reading[int] = NOT_ASKED
    uncorrected_volatile: Reading[int] = NOT_ASKED
    uncorrected_aggregate: Reading[int] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class SpareRows:
    """How many memory banks have how many spare rows left: all, most, some, few, none."""

    max: int
    high: int
    partial: int
    low: int
    none: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RemappedRows:
    """Memory rows replaced by spare ones (Ampere and later).

    Attributes:
        corrected: Rows remapped for errors that were corrected.
        uncorrected: Rows remapped for errors that were not.
        pending: Whether a remapping waits for a reset of the card.
        failed: Whether one failed: the card is to be replaced.
        spare: Banks by what they have left.
    """

    corrected: Reading[int] = NOT_ASKED
    uncorrected: Reading[int] = NOT_ASKED
    pending: Reading[bool] = NOT_ASKED
    failed: Reading[bool] = NOT_ASKED
    spare: Reading[SpareRows] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class RetiredPages:
    """Memory pages taken out of use (before Ampere).

    Attributes:
        single_bit: Pages retired for several single-bit errors.
        double_bit: Pages retired for a double-bit error.
        pending: Whether pages wait for a reset of the card.
    """

    single_bit: Reading[int] = NOT_ASKED
    double_bit: Reading[int] = NOT_ASKED
    pending: Reading[bool] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Pcie:
    """The link to the host; an idle card lowers its generation.

    Attributes:
        generation: Now.
        width: Lanes now.
        max_generation: The most that card and slot have in common.
        max_width: The most that card and slot have in common.
        card_max_generation: The most that the card can do.
        replays: Transfers that had to be repeated.
    """

    generation: Reading[int] = NOT_ASKED
    width: Reading[int] = NOT_ASKED
    max_generation: Reading[int] = NOT_ASKED
    max_width: Reading[int] = NOT_ASKED
    card_max_generation: Reading[int] = NOT_ASKED
    replays: Reading[int] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class NvLink:
    """One NVLink.

    Attributes:
        link: Its number.
        active: Whether it is up.
        remote: What is at its other end: `gpu`, `switch`, `ibm-npu` or `unknown`.
        replays: Transfers repeated.
        recoveries: Times the link recovered.
        crc_errors: Checksum errors.
    """

    link: int
    active: Reading[bool] = NOT_ASKED
    remote: Reading[str] = NOT_ASKED
    replays: Reading[int] = NOT_ASKED
    recoveries: Reading[int] = NOT_ASKED
    crc_errors: Reading[int] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Fabric:
    """The card's place among NVSwitches, as the fabric manager registered it.

    Attributes:
        state: `not-supported`, `not-started`, `in-progress` or `completed`.
        status: `success`, or the error of a completed registration.
        clique: Number of the group of cards that reach one another.
        cluster: UUID of the cluster; all zero on a single host.
        faults: What the card says is not well, such as `degraded-bandwidth`.
    """

    state: Reading[str] = NOT_ASKED
    status: Reading[str] = NOT_ASKED
    clique: Reading[int] = NOT_ASKED
    cluster: Reading[str] = NOT_ASKED
    faults: Reading[tuple[str, ...]] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Temperature:
    """Temperatures, and the card's own limits: degrees, or on newer cards margins.

    Attributes:
        gpu_c: The processor.
        memory_c: The memory.
        slowdown_c: Where hardware lowers the clocks.
        shutdown_c: Where the card turns itself off.
        gpu_max_c: The highest for normal work, of the processor.
        memory_max_c: The same of the memory.
        margin_c: Degrees left to the limit where software lowers the clocks (T.Limit).
        slowdown_margin_c: The margin at which hardware does; it is below zero.
        shutdown_margin_c: The margin at which the card turns itself off.
        gpu_max_margin_c: The margin that ends normal work.
        memory_max_margin_c: The same of the memory.
    """

    gpu_c: Reading[int] = NOT_ASKED
    memory_c: Reading[int] = NOT_ASKED
    slowdown_c: Reading[int] = NOT_ASKED
    shutdown_c: Reading[int] = NOT_ASKED
    gpu_max_c: Reading[int] = NOT_ASKED
    memory_max_c: Reading[int] = NOT_ASKED
    margin_c: Reading[int] = NOT_ASKED
    slowdown_margin_c: Reading[int] = NOT_ASKED
    shutdown_margin_c: Reading[int] = NOT_ASKED
    gpu_max_margin_c: Reading[int] = NOT_ASKED
    memory_max_margin_c: Reading[int] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Power:
    """Power in milliwatts.

    Attributes:
        usage_mw: Drawn; on newer cards the mean of a second.
        instant_mw: Drawn at this moment.
        limit_mw: The limit that was set.
        enforced_mw: The limit in force, the lowest of all limiters.
        default_mw: The limit after the driver loads.
        min_mw: The lowest limit that can be set.
        max_mw: The highest.
    """

    usage_mw: Reading[int] = NOT_ASKED
    instant_mw: Reading[int] = NOT_ASKED
    limit_mw: Reading[int] = NOT_ASKED
    enforced_mw: Reading[int] = NOT_ASKED
    default_mw: Reading[int] = NOT_ASKED
    min_mw: Reading[int] = NOT_ASKED
    max_mw: Reading[int] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Clocks:
    """Clocks in MHz, and what holds them down.

    Attributes:
        sm_mhz: The multiprocessors, now.
        memory_mhz: The memory, now.
        max_sm_mhz: The most.
        max_memory_mhz: The most.
        reasons: Words such as `gpu-idle`, `sw-power-cap`, `hw-thermal-slowdown`; none: full speed.
    """

    sm_mhz: Reading[int] = NOT_ASKED
    memory_mhz: Reading[int] = NOT_ASKED
    max_sm_mhz: Reading[int] = NOT_ASKED
    max_memory_mhz: Reading[int] = NOT_ASKED
    reasons: Reading[tuple[str, ...]] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Utilization:
    """Percent of the last sample in which a kernel ran, and in which memory was used."""

    gpu_percent: Reading[int] = NOT_ASKED
    memory_percent: Reading[int] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Firmware:
    """Firmware: of the card, and of its system processor (GSP).

    Attributes:
        vbios: Version of the VBIOS.
        gsp: Version of the GSP firmware.
        gsp_enabled: Whether it runs.
        gsp_default: Whether it runs by default.
    """

    vbios: Reading[str] = NOT_ASKED
    gsp: Reading[str] = NOT_ASKED
    gsp_enabled: Reading[bool] = NOT_ASKED
    gsp_default: Reading[bool] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuProcess:
    """A process that uses a card.

    Attributes:
        pid: Its number, in the driver's own view: from a container it may be another.
        memory_bytes: What it holds of the card's memory.
        gpu_instance: The GPU instance it uses, None without MIG.
        compute_instance: The compute instance in it.
    """

    pid: int
    memory_bytes: Reading[int] = NOT_ASKED
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Processes:
    """Processes by what they do: CUDA, graphics, and CUDA through MPS."""

    compute: Reading[tuple[GpuProcess, ...]] = NOT_ASKED
    graphics: Reading[tuple[GpuProcess, ...]] = NOT_ASKED
    mps: Reading[tuple[GpuProcess, ...]] = NOT_ASKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """One card.

    Attributes:
        index: NVML's number of it; CUDA may count otherwise.
        name: The model.
        uuid: `GPU-…`.
        pci_address: As sysfs writes it: `0000:1b:00.0`.
        minor: N of `/dev/nvidiaN`.
        compute_capability: Such as `9.0`.
        memory: Its memory.
        mig: Multi-instance mode.
        persistence: Whether the driver keeps it initialised without users.
        compute_mode: `default`, `exclusive-thread`, `prohibited` or `exclusive-process`.
        ecc: Error correction.
        remapped_rows: Memory rows replaced.
        retired_pages: Memory pages retired.
        pcie: The link to the host.
        nvlinks: Its NVLinks.
        fabric: Its place among NVSwitches.
        temperature: Temperatures and limits.
        power: Power and limits.
        clocks: Clocks and what holds them down.
        utilization: How busy it is.
        firmware: Its firmware.
        processes: Who uses it.
    """

    index: int
    name: Reading[str] = NOT_ASKED
    uuid: Reading[str] = NOT_ASKED
    pci_address: Reading[str] = NOT_ASKED
    minor: Reading[int] = NOT_ASKED
    compute_capability: Reading[str] = NOT_ASKED
    memory: Memory = Memory()
    mig: Mig = field(default_factory=Mig)
    persistence: Reading[bool] = NOT_ASKED
    compute_mode: Reading[str] = NOT_ASKED
    ecc: Ecc = Ecc()
    remapped_rows: RemappedRows = RemappedRows()
    retired_pages: RetiredPages = RetiredPages()
    pcie: Pcie = Pcie()
    nvlinks: Reading[tuple[NvLink, ...]] = NOT_ASKED
    fabric: Fabric = Fabric()
    temperature: Temperature = Temperature()
    power: Power = Power()
    clocks: Clocks = Clocks()
    utilization: Utilization = Utilization()
    firmware: Firmware = Firmware()
    processes: Processes = Processes()


@dataclass(frozen=True, kw_only=True, slots=True)
class Nvml:
    """What NVML says of a host.

    Attributes:
        state: How it answered.
        why: What stands behind any other state than `answered`, in words: the error, the call that
            hung and for how long.
        library: Version of the library, such as `12.550.54.15`.
        driver: Version of the driver, such as `550.54.15`.
        cuda: The CUDA version that the driver offers, such as `12.4`.
        gpus: The cards, by index; those that were not reached are there, with no answers.
    """

    state: NvmlState
    why: str = ""
    library: Reading[str] = NOT_ASKED
    driver: Reading[str] = NOT_ASKED
    cuda: Reading[str] = NOT_ASKED
    gpus: tuple[Gpu, ...] = ()


def to_json(nvml: Nvml) -> bytes:
    """Return it as JSON, indented."""
    return msgspec.json.format(msgspec.json.encode(nvml), indent=2) + b"\n"


def from_json(data: bytes) -> Nvml:
    """Return what `to_json` wrote, or an earlier envbuild's.

    Raises:
        ValueError: It is not that; the message names the place.
    """
    return msgspec.json.decode(data, type=Nvml)
