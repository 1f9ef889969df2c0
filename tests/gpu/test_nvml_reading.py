"""Readings of the cards of this machine; nothing on them is changed."""

import json
import subprocess
import sys

import pytest

from envbuild.host.gpus import read_nvml
from envbuild.host.model import NvmlState, from_json, to_json
from envbuild.host.readings import Value

pytestmark = pytest.mark.gpu

_BARE = """
import json, pynvml as n
n.nvmlInit()
gpus = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
print(json.dumps({
    "driver": n.nvmlSystemGetDriverVersion(),
    "gpus": [
        [n.nvmlDeviceGetName(g), n.nvmlDeviceGetUUID(g), n.nvmlDeviceGetMemoryInfo(g).total]
        for g in gpus
    ],
}))
"""


def test_what_is_read_is_what_nvidia_ml_py_says() -> None:
    argv = [sys.executable, "-c", _BARE]
    bare = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    nvml = read_nvml()
    assert (nvml.state, nvml.driver) == (NvmlState.ANSWERED, Value(bare["driver"]))
    assert [[gpu.name, gpu.uuid, gpu.memory.total_bytes] for gpu in nvml.gpus] == [
        [Value(each) for each in gpu] for gpu in bare["gpus"]
    ]
    assert from_json(to_json(nvml)) == nvml
