"""A recipe and its lock against the facts."""

import pytest

from envbuild.compat.check import check
from envbuild.compat.subject import Part, Subject
from envbuild.compat.tables import load
from envbuild.findings import Finding

FACTS = load()


def wheel(text: str) -> Part:
    name, _, version = text.partition(" ")
    return Part(kind="pypi", name=name, version=version)


def conda(text: str) -> Part:
    name, version, build = (*text.split(), "")[:3]
    return Part(kind="conda", name=name, version=version, build=build)


def found(*parts: Part, driver: str | None = ">=580.95.05", **more: object) -> dict[str, Finding]:
    subject = Subject(name="train", platform="linux-64", driver=driver, parts=parts, **more)  # type: ignore[arg-type]
    return {finding.code: finding for finding in check(subject, FACTS)}


def test_the_wheel_has_no_code_for_the_card() -> None:
    finding = found(wheel("torch 2.4.0"), gpus=("b200",))["no-gpu-code"]
    assert finding.severity == "error"
    assert "no code for 10.0" in finding.what
    assert "no PTX" in finding.what
    assert "pytorch 2.7.0 cu128" in (finding.hint or "")
    assert finding.why


def test_a_cudnn_that_the_framework_was_not_built_for() -> None:
    parts = (
        wheel("jax 0.4.28"),
        wheel("jax-cuda12-plugin 0.4.28"),
        wheel("nvidia-cudnn-cu12 9.1.0.70"),
    )
    finding = found(*parts, gpus=("a100",))["cudnn-differs"]
    assert finding.severity == "error"
    assert "<9.0,>=8.9.2.26" in finding.what
    assert "nvidia-cudnn-cu12 9.1.0.70" in finding.what
    assert finding.hint == "take cuDNN <9.0,>=8.9.2.26, or jax 0.4.29"


@pytest.mark.parametrize(
    "parts",
    [
        ("torch 2.4.0", "nvidia-cudnn-cu12 9.1.0.70"),
        ("jax 0.4.28", "jax-cuda12-plugin 0.4.28", "nvidia-cudnn-cu12 8.9.7.29"),
        ("jax 0.4.29", "jax-cuda12-plugin 0.4.29", "nvidia-cudnn-cu12 9.1.0.70"),
    ],
)
def test_a_cudnn_that_fits(parts: tuple[str, ...]) -> None:
    assert "cudnn-differs" not in found(*map(wheel, parts), gpus=("a100",))


def test_cuda_12_4_with_cudnn_9_1_is_fine_for_the_official_conda_build() -> None:
    part = conda("pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0")
    told = found(part, conda("cuda-version 12.4"), gpus=("h100",), cuda="12.4", cudnn="9.1")
    assert set(told) == {"gpu-code-unknown"}


def test_parts_of_three_cuda_releases() -> None:
    finding = found(
        conda("cuda-toolkit 12.9.1 0"),
        conda("cudnn 9.3.0.75 cuda12.6"),
        conda("libtorch 2.5.1 cuda126_hebb32c0_306"),
        gpus=("h100",),
    )["cuda-releases-differ"]
    for text in ("CUDA 12.6: cudnn 9.3.0.75", "libtorch 2.5.1", "CUDA 12.9: cuda-toolkit 12.9.1"):
        assert text in finding.what
    beside = found(conda("cuda-version 12.6"), conda("cuda-cudart 12.4.127 0"))
    assert "CUDA 12.4: cuda-cudart 12.4.127" in beside["cuda-releases-differ"].what


@pytest.mark.parametrize(
    ("driver", "code"),
    [(None, "driver-open"), (">=550.54.14", "driver-too-old"), (">=570.133.20", None)],
)
def test_the_oldest_driver(driver: str | None, code: str | None) -> None:
    told = found(wheel("torch 2.8.0"), gpus=("b200",), driver=driver, cuda="12.8")
    assert {name for name in told if name.startswith("driver")} == ({code} if code else set())
    if code:
        assert told[code].hint == 'driver: ">=570.26"'


def test_torch_from_pypi_needs_580_from_2_11_on() -> None:
    finding = found(wheel("torch 2.11.0"), gpus=("h100",), driver=">=550.54.14")["driver-too-old"]
    assert "580.65.06 is needed" in finding.what


def test_a_compiler_that_nvcc_does_not_take() -> None:
    assert "gcc up to 13" in found(cuda="12.4", compiler="gcc 14")["compiler-too-new"].what
    assert "compiler-too-new" not in found(cuda="12.4", compiler="gcc 12")
    assert "clang up to 17" in found(cuda="12.4", compiler="clang 18")["compiler-too-new"].what


def test_a_combination_that_is_known_to_fail() -> None:
    bad = found(wheel("torch 2.9.1"), wheel("nvidia-cudnn-cu12 9.10.2.21"), gpus=("h100",))
    assert bad["known-bad"].severity == "warning"
    assert bad["known-bad"].why
    card = (wheel("torch 2.12.0"),)
    assert "known-bad" in found(*card, gpus=("h100",))
    assert "known-bad" not in found(*card, gpus=("b200",))


def test_a_card_that_nobody_knows() -> None:
    finding = found(gpus=("h1000",))["unknown-gpu"]
    assert finding.hint == "did you mean h100?"


def test_nothing_asked_nothing_said() -> None:
    assert found(driver=None) == {}
    assert found(wheel("numpy 2.2.6"), driver=None) == {}
