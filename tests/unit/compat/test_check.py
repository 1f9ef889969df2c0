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
    assert set(told) == set()


def test_a_conda_build_has_the_code_that_its_recipe_says() -> None:
    forge, channel = "cuda129_mkl_py311_h49b8cc7_300", "py3.10_cuda12.4_cudnn9.1.0_0"
    assert "no-gpu-code" not in found(conda(f"pytorch 2.12.0 {forge}"), gpus=("b200",))
    assert "no-gpu-code" in found(conda(f"pytorch 2.4.0 {channel}"), gpus=("b200",))
    unread = found(conda("pytorch 2.5.1 cuda126_py310_h0_306"), gpus=("h100",))
    assert unread["gpu-code-unknown"].severity == "note"
    assert "gpu-code-unknown" in found(conda("pytorch 2.4.0 cuda124_py310_h0"), gpus=("b200",))


def test_a_cuda_build_that_nobody_asked_for() -> None:
    part = conda("pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0")
    finding = found(part, driver=None, asks_cuda=False)["cuda-not-asked"]
    assert finding.severity == "error"
    assert "CUDA 12.4" in finding.what
    assert found(conda("pytorch 2.4.0 py3.10_cpu_0"), driver=None, asks_cuda=False) == {}


@pytest.mark.parametrize(("python", "seen"), [("3.13", True), ("3.12", False), (None, False)])
def test_a_python_without_a_package(python: str | None, seen: bool) -> None:  # noqa: FBT001
    told = found(wheel("torch 2.4.0"), python=python)
    assert ("no-python-build" in told) is seen
    if seen:
        assert "Python 3.8 to 3.12, not for 3.13" in told["no-python-build"].what


@pytest.mark.parametrize(("glibc", "seen"), [("2.17", True), ("2.28", False), ("2.34", False)])
def test_a_glibc_that_is_too_old(glibc: str, seen: bool) -> None:  # noqa: FBT001
    assert ("glibc-floor" in found(wheel("torch 2.8.0"), glibc=glibc)) is seen


def test_a_c_compiler_for_torch_compile() -> None:
    torch = wheel("torch 2.8.0")
    missing = found(torch, gpus=("h100",), locked=True)["no-c-compiler"]
    assert missing.severity == "note"
    assert missing.why
    with_one = found(torch, conda("gxx_linux-64 12.4.0"), gpus=("h100",), locked=True)
    assert "no-c-compiler" not in with_one
    assert "no-c-compiler" not in found(torch, gpus=("h100",))  # a recipe says not all
    assert "no-c-compiler" not in found(torch, locked=True)


@pytest.mark.parametrize(
    ("triton", "seen"),
    [
        (wheel("triton 2.1.0"), True),
        (wheel("triton 3.2.0"), True),
        (wheel("triton 3.3.0"), False),
        (conda("torchtriton 3.0.0"), True),
    ],
)
def test_a_triton_that_declares_no_setuptools(triton: Part, *, seen: bool) -> None:
    told = found(triton, locked=True)
    assert ("no-setuptools" in told) is seen
    for there in (wheel("setuptools 80.9.0"), conda("setuptools 83.0.0")):
        assert "no-setuptools" not in found(triton, there, locked=True)
    assert "no-setuptools" not in found(triton)  # a recipe says not all


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


def test_a_locked_compiler_that_the_locked_nvcc_does_not_take() -> None:
    nvcc, gcc = conda("cuda-nvcc 12.4.131"), conda("gcc_linux-64 14.2.0")
    finding = found(nvcc, gcc)["compiler-too-new"]
    assert finding.where == "train: gcc_linux-64 14.2.0"
    assert "compiler-too-new" not in found(nvcc, conda("gcc_linux-64 12.4.0"))
    assert "compiler-too-new" not in found(gcc)
    assert "compiler-too-new" in found(wheel("nvidia-cuda-nvcc-cu12 12.4.131"), gcc)
    assert "compiler-too-new" not in found(conda("cuda-nvcc 12.8.93"), gcc)


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
