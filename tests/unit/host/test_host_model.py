"""What NVML said, as JSON and back."""

import msgspec
import pytest

from envbuild.host.mig import ComputeInstance, GpuInstance, Mig, MigDevice, Placement
from envbuild.host.model import (
    Gpu,
    GpuProcess,
    NvLink,
    Nvml,
    NvmlState,
    Processes,
    RemappedRows,
    SpareRows,
    Temperature,
    from_json,
    to_json,
)
from envbuild.host.readings import Lost, NoAnswer, NoPermission, Unsupported, Value

_WHOLE = Nvml(
    state=NvmlState.SILENT,
    why="nvmlDeviceGetName on GPU 1 did not answer",
    library=Value("12.550.54.15"),
    driver=Value("550.54.15"),
    cuda=Value("12.4"),
    gpus=(
        Gpu(
            index=0,
            name=Value("NVIDIA H100 80GB HBM3"),
            minor=Value(0),
            persistence=Value(True),  # noqa: FBT003 - a reading
            temperature=Temperature(
                gpu_c=Value(31), memory_c=Unsupported("Not Supported"), margin_c=Lost("GPU is lost")
            ),
            remapped_rows=RemappedRows(
                spare=Value(SpareRows(max=640, high=0, partial=0, low=0, none=0))
            ),
            nvlinks=Value((NvLink(link=0, active=Value(False)),)),  # noqa: FBT003 - a reading
            mig=Mig(
                instances=Value(
                    (
                        GpuInstance(
                            id=1,
                            profile_id=9,
                            profile=Value("3g.40gb"),
                            placement=Placement(start=0, size=4),
                            compute=Value(
                                (
                                    ComputeInstance(
                                        id=0, profile_id=2, placement=Placement(start=0, size=3)
                                    ),
                                )
                            ),
                        ),
                    )
                ),
                devices=Value((MigDevice(index=0, uuid=Value("MIG-1")),)),
            ),
            processes=Processes(
                compute=Value((GpuProcess(pid=7, memory_bytes=NoAnswer()),)),
                graphics=NoPermission("root"),
            ),
        ),
        Gpu(index=1),
    ),
)


def test_json_and_back() -> None:
    assert from_json(to_json(_WHOLE)) == _WHOLE


def test_what_an_older_one_did_not_ask_is_no_answer() -> None:
    nvml = from_json(b'{"state": "answered", "gpus": [{"index": 0}]}')
    assert nvml.gpus[0].power.usage_mw == NoAnswer("not asked")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (b'{"state": "fine"}', "$.state"),
        (
            b'{"state": "answered", "gpus": [{"index": 0, "minor": {"reading": "zero"}}]}',
            "$.gpus[0].minor",
        ),
        (b'{"state": "answered", "driver": {"reading": "value", "value": 3}}', "$.driver.value"),
    ],
)
def test_another_shape_is_refused_with_its_place(text: bytes, where: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        from_json(text)
    assert where in str(refused.value)
