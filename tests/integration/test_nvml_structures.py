"""The simulator's structures are those of nvidia-ml-py, which are those of NVML."""

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest
from nvmlsim.simulator import HERE, built

_STRUCTURES = {
    "Memory": "c_nvmlMemory_t",
    "Memory2": "c_nvmlMemory_v2_t",
    "Temperature1": "c_nvmlTemperature_v1_t",
    "Margin1": "c_nvmlMarginTemperature_v1_t",
    "Utilization": "c_nvmlUtilization_t",
    "Pci": "nvmlPciInfo_t",
    "Process": "c_nvmlProcessInfo_v3_t",
    "Histogram": "c_nvmlRowRemapperHistogramValues",
    "FieldValue": "c_nvmlFieldValue_t",
    "Fabric": "c_nvmlGpuFabricInfo_t",
    "Fabric2": "c_nvmlGpuFabricInfo_v2_t",
    "Fabric3": "c_nvmlGpuFabricInfo_v3_t",
    "Placement": "c_nvmlGpuInstancePlacement_t",
    "GpuProfile": "c_nvmlGpuInstanceProfileInfo_t",
    "GpuProfile2": "c_nvmlGpuInstanceProfileInfo_v2_t",
    "ComputeProfile": "c_nvmlComputeInstanceProfileInfo_t",
    "ComputeProfile2": "c_nvmlComputeInstanceProfileInfo_v2_t",
    "GpuInstanceInfo": "c_nvmlGpuInstanceInfo_t",
    "ComputeInstanceInfo": "c_nvmlComputeInstanceInfo_t",
    "Attributes": "c_nvmlDeviceAttributes",
}
# nvidia-ml-py 13.615.71 has these two with sizes that are not those of its own structures.
_WRONG = frozenset({"nvmlC2cModeInfo_v1", "nvmlPerfMetricsSamples_v1"})


def test_every_member_lies_where_nvidia_ml_py_has_it(
    tmp_path: Path, program: Callable[[str], str]
) -> None:
    lines = []
    wanted = []
    for ours, theirs in _STRUCTURES.items():
        kind = getattr(pynvml, theirs)
        wanted.append(f"{ours} {ctypes.sizeof(kind)}")
        lines.append(f'printf("{ours} %zu\\n", sizeof({ours}));')
        for name, *_ in kind._fields_:
            member = getattr(kind, name)
            wanted.append(f"{ours}.{name} {member.offset} {member.size}")
            place = f"offsetof({ours}, {name}), sizeof((({ours} *)0)->{name})"
            lines.append(f'printf("{ours}.{name} %zu %zu\\n", {place});')
    code = tmp_path / "structures.c"
    body = "\n".join(lines)
    head = "#include <stddef.h>\n#include <stdio.h>\n#include "
    code.write_text(f'{head}"{HERE}/nvml.h"\nint main(void) {{\n{body}\n}}\n')
    binary = tmp_path / "structures"
    subprocess.run([program("gcc"), "-o", binary, code], check=True)
    said = subprocess.run([binary], capture_output=True, check=True, text=True).stdout
    assert said.splitlines() == wanted


# What came after driver 470: the simulator of an old driver does not have it.
_LATER = {
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetGpuFabricInfoV",
    "nvmlDeviceGetGpuInstanceProfileInfoV",
    "nvmlDeviceGetGpuMaxPcieLinkGeneration",
    "nvmlDeviceGetGspFirmwareMode",
    "nvmlDeviceGetGspFirmwareVersion",
    "nvmlDeviceGetMarginTemperature",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetTemperatureV",
    "nvmlGpuInstanceGetComputeInstanceProfileInfoV",
}


def _versioned() -> list[tuple[str, type[ctypes.Structure]]]:
    """Return nvidia-ml-py's version constants that have a structure of their own."""
    found = []
    for name, value in vars(pynvml).items():
        if isinstance(value, int) and re.fullmatch(r"nvml\w+_v\d", name) and value >> 24:
            for kind in (f"c_{name}_t", f"{name}_t"):
                if hasattr(pynvml, kind):
                    found.append((name, getattr(pynvml, kind)))
                    break
    return found


def test_version_constants_are_the_sizes_of_their_structures() -> None:
    wrong = {
        name
        for name, kind in _versioned()
        if getattr(pynvml, name) & 0xFFFFFF != ctypes.sizeof(kind)
    }
    assert len(_versioned()) >= 40
    assert wrong == _WRONG


def _symbols(name: str) -> set[str]:
    """Return the library's functions that one of nvidia-ml-py's calls."""
    source = Path(pynvml.__file__).read_text()
    code = re.search(rf"def {name}\(.*?\n(?=def |@|class )", source, re.DOTALL)
    assert code is not None, name
    symbols = set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', code[0]))
    return symbols.union(*map(_symbols, re.findall(r"return (nvml\w+)\(", code[0])))


@pytest.mark.parametrize("old", [False, True])
def test_all_that_is_called_is_there(old: bool, program: Callable[[str], str]) -> None:  # noqa: FBT001
    program("gcc")
    library = ctypes.CDLL(str(built(old=old)))
    worker = Path(__file__).parents[2] / "envbuild/tools"
    text = "".join(path.read_text() for path in worker.glob("nvml_*.py"))
    named = re.findall(r'"(nvml(?:System|Device|Gpu|Compute)\w+)"', text)
    called = {name for name in named if hasattr(pynvml, name)}
    assert len(called) > 50
    symbols = {symbol for name in called for symbol in _symbols(name)}
    missing = {name for name in symbols if not hasattr(library, name)}
    assert missing == (_LATER if old else set())
