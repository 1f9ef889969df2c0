"""Reading NVML through its real interface: the simulator plays cards, drivers and their faults."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nvmlsim.simulator import HERE, LIBRARY, SCENARIOS, expanded, place

from envbuild.host.gpus import read_nvml
from envbuild.host.model import Nvml, NvmlState, from_json, to_json
from envbuild.host.readings import Lost, NoAnswer, Value
from envbuild.tools.nvml import Limits

_SHORT = Limits(silence_s=2, total_s=60)


def _lines(nvml: Nvml) -> str:
    """Return JSON with a line for each field, which a golden file can show the change of."""
    tree: dict[str, Any] = json.loads(to_json(nvml))
    gpus = tree.pop("gpus")
    lines = [f"{key}: {json.dumps(value)}" for key, value in tree.items()]
    for gpu in gpus:
        lines += ["", *(f"{key}: {json.dumps(value)}" for key, value in gpu.items())]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_whole_answer(
    scenario: str, tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    limits = _SHORT if "hang" in scenario else None
    nvml = read_nvml(place(tmp_path, scenario), limits=limits)
    golden(f"nvml/{scenario}.txt", _lines(nvml))
    assert from_json(to_json(nvml)) == nvml


def test_a_host_without_the_library(tmp_path: Path) -> None:
    nvml = read_nvml(tmp_path)
    assert nvml.state is NvmlState.NO_LIBRARY
    assert f"{tmp_path}/usr/lib64/{LIBRARY}: cannot open shared object file" in nvml.why


def test_a_drivers_tree_whose_library_cannot_be_loaded_is_not_passed_over(tmp_path: Path) -> None:
    place(tmp_path, "no-gpu")
    library = tmp_path / "usr/lib64" / LIBRARY
    library.unlink()
    library.write_bytes(b"no ELF")
    nvml = read_nvml(tmp_path)
    assert (nvml.state, nvml.gpus) == (NvmlState.NO_LIBRARY, ())
    assert str(library) in nvml.why


def test_a_call_that_hangs_holding_the_librarys_lock(tmp_path: Path) -> None:
    place(tmp_path, "hang", "system.hang_lock = 1")
    nvml = read_nvml(tmp_path, limits=_SHORT)
    call = "nvmlDeviceGetTemperatureV on GPU 5 did not answer within 2 s"
    assert (nvml.state, nvml.why) == (NvmlState.SILENT, call)
    assert all(isinstance(gpu.power.usage_mw, Value) for gpu in nvml.gpus[:5])
    assert isinstance(nvml.gpus[5].pcie.replays, Value)
    assert nvml.gpus[5].temperature.gpu_c == NoAnswer(call)
    assert nvml.gpus[5].temperature.shutdown_c == NoAnswer(f"not asked: {call}")
    assert nvml.gpus[7].temperature.gpu_c == NoAnswer(f"not asked: {call}")


def test_calls_that_each_take_long_end_at_the_whole_limit(tmp_path: Path) -> None:
    place(tmp_path, "hang")
    nvml = read_nvml(tmp_path, limits=Limits(silence_s=30, total_s=6))
    call = "nvmlDeviceGetTemperatureV on GPU 5 did not answer within 6 s"
    assert (nvml.state, nvml.why) == (NvmlState.SILENT, call)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV])
def test_a_crash_in_the_library_is_an_answer(number: signal.Signals, tmp_path: Path) -> None:
    place(tmp_path, "h100x8-mig", f"gpu.2.death = nvmlDeviceGetPowerUsage@1:{number.value}")
    nvml = read_nvml(tmp_path, limits=_SHORT)
    why = f"the process that asks NVML ended with {number.name} in nvmlDeviceGetPowerUsage on GPU 2"
    assert (nvml.state, nvml.why) == (NvmlState.DIED, why)
    assert isinstance(nvml.gpus[1].power.usage_mw, Value)
    assert isinstance(nvml.gpus[2].temperature.gpu_c, Value)
    assert nvml.gpus[2].power.usage_mw == NoAnswer(why)
    assert nvml.gpus[2].power.limit_mw == NoAnswer(f"not asked: {why}")
    assert nvml.gpus[7].name == NoAnswer(f"not asked: {why}")


def test_a_library_on_a_file_server_that_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "usr/lib64").mkdir(parents=True)
    os.mkfifo(tmp_path / "usr/lib64" / LIBRARY)  # opening it waits for a writer
    nvml = read_nvml(tmp_path, limits=_SHORT)
    assert (nvml.state, nvml.why) == (NvmlState.SILENT, "dlopen did not answer within 2 s")


def test_nothing_is_left_running_after_a_hang(tmp_path: Path) -> None:
    place(tmp_path, "hang-at-once")
    read_nvml(tmp_path, limits=_SHORT)
    library = os.fsencode(tmp_path)
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with contextlib.suppress(OSError):
                assert library not in (process / "maps").read_bytes()


def test_a_card_lost_at_any_call(tmp_path: Path) -> None:
    place(tmp_path, "h100x8-mig", "system.gpus = 1", "gpu.0.fault = lost@3")
    (gpu,) = read_nvml(tmp_path).gpus
    assert isinstance(gpu.name, Value)
    assert gpu.uuid == Value("GPU-00000000-1111-2222-3333-000000000000")
    assert gpu.power.usage_mw == Lost("nvmlDeviceGetPowerUsage: GPU is lost")
    assert gpu.mig.devices == Lost("nvmlDeviceGetMigMode: GPU is lost")


def test_a_trace_is_read_at_its_time(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    place(tmp_path, "trace", f"system.clock = file:{clock}")
    seen = []
    for seconds in ("0", "305.8", "1490"):
        clock.write_text(seconds)
        (gpu,) = read_nvml(tmp_path).gpus
        assert isinstance(gpu.temperature.gpu_c, Value)
        seen.append(gpu.temperature.gpu_c.value)
    assert seen == [26, 46, 49]


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    place(tmp_path, "no-gpu", "system.gpus = 1")
    scenario = tmp_path / "usr/lib64/nvmlsim.scenario"
    scenario.write_bytes(scenario.read_bytes() + b"gpu.0.name = H100\xff\ngpu.0.minor = 3\n")
    (gpu,) = read_nvml(tmp_path).gpus
    assert isinstance(gpu.name, NoAnswer)
    assert "codec can't decode byte 0xff" in gpu.name.why
    assert gpu.minor == Value(3)


def test_pynvml_is_loaded_in_the_worker_alone() -> None:
    code = "import sys, envbuild.host.gpus; print('pynvml' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert ended.stdout == "False\n"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_line_of_a_scenario_is_one_that_the_simulator_reads(scenario: str) -> None:
    code = "".join((HERE / name).read_text() for name in ("scenario.c", "device.c", "instances.c"))
    for line in expanded(f"scenarios/{scenario}.scn"):
        path = line.partition("#")[0].partition("=")[0].strip()
        if not path:
            continue
        _, _, key = path.partition("gpu.")
        known = f'"{path}"' if not key else _shape(key.partition(".")[2])
        function = path.rpartition(".")[2]
        assert known in code or function.startswith("nvml"), path


def _shape(key: str) -> str:
    """Return a key as the code has it: numbers become `%u`, words that it makes `%s`."""
    words = key.split(".")
    if words[0] == "ecc" and words[1] in ("corrected", "uncorrected"):
        return '"ecc.%s.%s"'
    if words[0] in ("compute", "graphics", "mps"):
        return f'"{words[0]}"'
    if words[0] == "nvlink":
        return '"nvlink.%u.%s"' if words[1].isdecimal() else '"nvlink.%s"'
    return '"' + ".".join("%u" if word.isdecimal() else word for word in words) + '"'
