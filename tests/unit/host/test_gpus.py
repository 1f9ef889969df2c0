"""What NVML's process said, as readings."""

from pathlib import Path
from typing import Any

import pytest

from envbuild.host.gpus import read_nvml
from envbuild.host.model import Nvml, NvmlState
from envbuild.host.plausible import Impossible, judged
from envbuild.host.readings import Lost, NoAnswer, NoPermission, Reading, Unsupported, Value
from envbuild.tools.nvml import Ending, Heard, Limits

_BEGUN: dict[tuple[int | None, str], Any] = {
    (None, "init"): {"value": None},
    (None, "library"): {"value": "12.550.54.15"},
    (None, "driver"): {"value": "550.54.15"},
    (None, "cuda"): {"value": 12040},
    (None, "count"): {"value": 2},
}
_WHY = "nvmlDeviceGetUUID on GPU 0 did not answer within 15 s"


def _read(said: dict[tuple[int | None, str], Any], ending: Ending = Ending.WHOLE) -> Nvml:
    why = "" if ending is Ending.WHOLE else _WHY

    def ask(_root: Path | None, *, limits: Limits | None) -> Heard:
        assert limits is None
        return Heard(said=_BEGUN | said, ending=ending, why=why)

    return read_nvml(ask=ask)


def _error(code: int | None, text: str, call: str = "nvmlDeviceGetName") -> dict[str, Any]:
    return {"error": code, "text": text, "call": call}


@pytest.mark.parametrize(
    ("cell", "reading"),
    [
        ({"value": "NVIDIA L4"}, Value("NVIDIA L4")),
        (_error(3, "Not Supported"), Unsupported("nvmlDeviceGetName: Not Supported")),
        (_error(13, "Function Not Found"), Unsupported("nvmlDeviceGetName: Function Not Found")),
        (_error(25, "Version"), Unsupported("nvmlDeviceGetName: Version")),
        (_error(4, "Permissions"), NoPermission("nvmlDeviceGetName: Permissions")),
        (_error(15, "GPU is lost"), Lost("nvmlDeviceGetName: GPU is lost")),
        (_error(999, "Unknown Error"), NoAnswer("nvmlDeviceGetName: Unknown Error")),
        (_error(None, "UnicodeDecodeError: …", ""), NoAnswer("UnicodeDecodeError: …")),
    ],
)
def test_an_error_is_its_own_silence(cell: dict[str, Any], reading: Reading[str]) -> None:
    assert _read({(0, "name"): cell}).gpus[0].name == reading


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (9, NvmlState.NOT_LOADED),
        (12, NvmlState.NO_LIBRARY),
        (18, NvmlState.MISMATCH),
        (4, NvmlState.FAILED),
    ],
)
def test_why_it_did_not_begin(code: int, state: NvmlState) -> None:
    nvml = _read({(None, "init"): _error(code, "No", "nvmlInit"), (None, "count"): {"value": 0}})
    assert (nvml.state, nvml.why, nvml.gpus) == (state, "nvmlInit: No", ())


def test_what_came_before_a_silence_is_kept_and_the_rest_says_why() -> None:
    nvml = _read({(0, "name"): {"value": "NVIDIA L4"}}, Ending.SILENT)
    assert (nvml.state, nvml.why) == (NvmlState.SILENT, _WHY)
    assert nvml.gpus[0].name == Value("NVIDIA L4")
    missing = NoAnswer(f"not asked: {_WHY}")
    assert (nvml.gpus[0].power.usage_mw, nvml.gpus[1].name) == (missing, missing)


def test_a_card_that_gives_no_handle_is_silent_as_a_whole() -> None:
    nvml = _read({(1, ""): _error(15, "GPU is lost", "nvmlDeviceGetHandleByIndex")})
    lost = Lost("nvmlDeviceGetHandleByIndex: GPU is lost")
    gpu = nvml.gpus[1]
    assert (gpu.uuid, gpu.mig.devices, gpu.nvlinks, gpu.firmware.gsp) == (lost, lost, lost, lost)


def test_parts_of_a_list_are_readings_too() -> None:
    link = {"link": 3, "active": {"value": 1}, "remote": {"value": 2}, "replays": {"value": -1}}
    links = _read({(0, "nvlinks"): {"value": [link]}}).gpus[0].nvlinks
    assert isinstance(links, Value)
    (only,) = links.value
    assert (only.active, only.remote) == (Value(True), Value("switch"))  # noqa: FBT003
    assert isinstance(only.replays, NoAnswer)


@pytest.mark.parametrize(
    ("path", "raw", "value"),
    [
        ("cuda", 12040, "12.4"),
        ("cuda", 13000, "13.0"),
        ("pci_address", "00000000:1B:00.0", "0000:1b:00.0"),
        ("pci_address", "00010000:00:1E.0", "10000:00:1e.0"),
        ("compute_capability", [12, 1], "12.1"),
        ("clocks.reasons", 0, ()),
        ("clocks.reasons", 0x48, ("hw-slowdown", "hw-thermal-slowdown")),
        ("clocks.reasons", 0x401, ("gpu-idle", "reason-0x400")),
        ("compute_mode", 3, "exclusive-process"),
        ("fabric.faults", 0b10_10_10_01, ("degraded-bandwidth",)),
        ("fabric.faults", 4 << 8 | 0b10_10_10_10, ("no-partition",)),
        ("fabric.status", 0, "success"),
        ("fabric.cluster", "0" * 32, "00000000-0000-0000-0000-000000000000"),
        ("temperature.slowdown_margin_c", -2, -2),
        ("name", "NVIDIA L4", "NVIDIA L4"),
    ],
)
def test_raw_values_become_words(path: str, raw: object, value: object) -> None:
    assert judged(path, raw) == value


@pytest.mark.parametrize(
    ("path", "raw"),
    [
        ("cuda", 0),
        ("pci_address", ""),
        ("compute_capability", [-1, 0]),
        ("memory.total_bytes", 2**64 - 1),
        ("memory.used_bytes", -1),
        ("minor", 2**32 - 1),
        ("persistence", 7),
        ("compute_mode", 12),
        ("ecc.corrected_volatile", 2**64 - 1),
        ("pcie.generation", 255),
        ("pcie.width", 255),
        ("pcie.width", 3),
        ("temperature.gpu_c", 4294967295),
        ("temperature.gpu_c", -1),
        ("temperature.memory_c", 0),
        ("temperature.slowdown_c", 0),
        ("power.usage_mw", 2**32 - 1),
        ("power.limit_mw", 0),
        ("utilization.gpu_percent", 101),
        ("clocks.sm_mhz", 2**32 - 1),
        ("nvlinks.remote", 9),
        ("remapped_rows.spare", {"max": 2**32 - 1}),
    ],
)
def test_what_cannot_be_is_refused(path: str, raw: object) -> None:
    with pytest.raises(Impossible):
        judged(path, raw)
