"""Cases from the field about CUDA, cuDNN, cards and drivers, through the commands as typed."""

import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from integration.index_server import wheel
from integration.locking import Locker, envbuild, locker

from envbuild.lock import files
from envbuild.packages import CondaPackage
from envbuild.pipeline.lock import write_lock

HEAD = """\
name: {name}
target: {{platforms: [linux-64], gpus: [{gpu}], driver: ">={driver}"}}
python: "3.11"
channels: [conda-forge]
"""


def recipe(name: str, *lines: str, gpu: str = "h100", driver: str = "580.95.05") -> str:
    return HEAD.format(name=name, gpu=gpu, driver=driver) + "\n".join(lines) + "\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locker]:
    with locker(tmp_path) as made:
        for name, value in made.variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        yield made


def findings(capsys: pytest.CaptureFixture[str], name: str, *words: str) -> dict[str, Any]:
    """Return what `check` says of a recipe, by code."""
    capsys.readouterr()
    envbuild("check", name, "--json", *words)
    (row,) = json.loads(capsys.readouterr().out)["recipes"]
    return {one["code"]: one for one in row["findings"]}


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code of a question about sets, and its answer."""
    capsys.readouterr()
    code = envbuild("triangle", *words, "--json")
    return code, json.loads(capsys.readouterr().out)


def test_a_gpu_recipe_gets_cuda_builds_on_a_machine_without_a_gpu(project: Locker) -> None:
    name = project.write(
        recipe("gpu", 'triangle: {cuda: "12.9"}', 'conda: [jax, "jaxlib * cuda*"]')
    )
    assert envbuild("lock", name) == 0
    half = files.read(project.root / "lockfiles" / name).for_platform("linux-64")
    assert half is not None
    builds = {package.name: package.build for package in half.conda}
    assert builds["jaxlib"].startswith("cuda129")
    assert "cuda-version" in builds


PLAIN = """\
name: plain
python: "3.10"
channels: [pytorch, nvidia/label/cuda-12.4.0, nvidia, conda-forge]
conda: [pytorch 2.4.0, numpy <2]
"""


def test_no_gpu_asked_for_no_cuda_build_locked(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(PLAIN)
    assert envbuild("lock", name) == 1
    said = capsys.readouterr()
    told = said.out + said.err
    assert "pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0: it is a build for CUDA 12.4" in told
    assert "for CUDA: target.gpus" in told
    assert "without: conda: pytorch 2.4.0 *cpu*" in told
    assert not (project.root / "lockfiles").exists()
    asked = PLAIN.replace("conda: [pytorch 2.4.0", "conda: [pytorch 2.4.0 *cuda12.4*")
    assert envbuild("lock", project.write(asked)) == 0


def conda(name: str, version: str, build: str) -> CondaPackage:
    file = f"{name}-{version}-{build}.conda"
    url = f"https://conda.anaconda.org/conda-forge/linux-64/{file}"
    return CondaPackage(
        name=name, version=version, build=build, url=url, sha256="0" * 64, md5="0" * 32
    )


def test_cuda_parts_of_different_releases(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(recipe("parts", "conda: [libzlib]"))
    assert envbuild("lock", name) == 0
    folder = project.root / "lockfiles" / name
    lock = files.read(folder)
    (half,) = lock.platforms
    parts = (
        conda("cuda-toolkit", "12.9.1", "0"),
        conda("cudnn", "9.3.0.75", "cuda12.6_0"),
        conda("libtorch", "2.5.1", "cuda126_hebb32c0_306"),
    )
    write_lock(replace(lock, platforms=(replace(half, conda=(*half.conda, *parts)),)), folder)
    what = findings(capsys, name)["cuda-releases-differ"]["what"]
    assert "parts of 2 CUDA releases are side by side" in what
    assert "CUDA 12.6: cudnn 9.3.0.75 cuda12.6_0, libtorch 2.5.1 cuda126" in what
    assert "CUDA 12.9: cuda-toolkit 12.9.1" in what


def test_a_cuda_library_of_both_halves(project: Locker, capsys: pytest.CaptureFixture[str]) -> None:
    needs = ["nvidia-cudnn-cu12"]
    project.index.wheels += [wheel("kernels", "1", requires=needs), wheel(needs[0], "9.1")]
    text = recipe("both", "conda: [libzlib]", "pypi: [kernels]")
    name = project.write(text)
    assert envbuild("lock", name) == 0
    folder = project.root / "lockfiles" / name
    lock = files.read(folder)
    (half,) = lock.platforms
    more = (*half.conda, conda("cudnn", "9.3.0.75", "cuda12.6_0"))
    write_lock(replace(lock, platforms=(replace(half, conda=more),)), folder)
    what = findings(capsys, name)["cuda-from-both"]["what"]
    assert what == "nvidia-cudnn-cu12 9.1 and conda's cudnn 9.3.0.75 hold the same CUDA library"
    assert envbuild("create", name) == 1
    assert "[cuda-from-both]" in capsys.readouterr().err
    project.write(text.replace("[libzlib]", "[cudnn]"))
    assert envbuild("lock", name) == 1
    assert "[cuda-from-both]" in capsys.readouterr().err


def test_a_newer_cuda_version_beside_older_parts(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    text = recipe(
        "beside",
        "conda:",
        "  - pytorch 2.4.0 py3.10_cuda12.4*",
        "  - pytorch-cuda 12.4.*",
        "  - cuda-version 12.6.*",
        "  - numpy <2",
    )
    channels = "channels: [nvidia/label/cuda-12.4.0, nvidia, pytorch, conda-forge]"
    text = text.replace("channels: [conda-forge]", channels).replace("3.11", "3.10")
    text = text.replace("gpus: [h100]", 'gpus: [h100], cuda: "12.6"')
    name = project.write(text)
    assert envbuild("lock", name) == 0
    what = findings(capsys, name)["cuda-releases-differ"]["what"]
    assert "CUDA 12.4: cuda-cudart 12.4" in what
    assert "pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0" in what
    assert "CUDA 12.6: cuda-version 12.6" in what


def test_the_tables_know_that_the_wheel_has_no_code(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = project.write(
        recipe("blackwell", "pypi: [torch==2.4.0]", gpu="b200", driver="570.133.20")
    )
    found = findings(capsys, name)["no-gpu-code"]
    assert found["severity"] == "error"
    assert "no code for 10.0: it holds sm_50 sm_60 sm_70" in found["what"]
    assert found["what"].endswith("sm_90, no PTX")
    assert "the first with code for it is pytorch 2.7.0 cu128" in found["hint"]
    for command in ("lock", "create"):
        assert envbuild(command, name) == 1
        assert "the first with code for it is pytorch 2.7.0 cu128" in capsys.readouterr().err
    assert project.server.log == []
    assert project.channels.log == []


def test_the_same_for_a_conda_build(project: Locker, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ("conda: [pytorch 2.4.0 py3.11_cuda12.4*]",)
    name = project.write(recipe("blackwell", *lines, gpu="b200", driver="570.133.20"))
    found = findings(capsys, name)["no-gpu-code"]
    assert "pytorch 2.4.0 pytorch *_cuda12.4_cudnn9.1.0_0" in found["where"]
    name = project.write(recipe("hopper", *lines))
    assert "no-gpu-code" not in findings(capsys, name)


def test_the_wheel_itself_has_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("needs nvcc")
    (tmp_path / "k.cu").write_text("__global__ void kernel(float *x) { x[0] = x[1]; }\n")
    argv = [nvcc, "-shared", "-Xcompiler", "-fPIC", "-cudart", "none", f"{tmp_path}/k.cu"]
    for number in ("80", "90"):
        argv += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
    subprocess.run([*argv, "-o", f"{tmp_path}/k.so"], check=True)
    wheel = tmp_path / "torch-2.4.0-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(tmp_path / "k.so", "torch/lib/libtorch_cuda.so")
    assert envbuild("inspect", f"{wheel}", "--gpu", "10.0") == 1
    told = capsys.readouterr().out
    assert "10.0: torch/lib/libtorch_cuda.so: NO CODE" in told
    assert "compute_" not in told
    assert envbuild("inspect", f"{wheel}", "--gpu", "9.0") == 0


def test_a_cudnn_that_the_framework_was_not_built_for(
    project: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    pins = 'pypi: ["jax[cuda12]==0.4.28", "nvidia-cudnn-cu12=={}"]'
    name = project.write(recipe("jaxy", pins.format("9.1.0.70")))
    found = findings(capsys, name)["cudnn-differs"]
    assert found["severity"] == "error"
    assert found["what"] == (
        "it takes cuDNN <9.0,>=8.9.2.26, and nvidia-cudnn-cu12 9.1.0.70 is there"
    )
    assert found["hint"] == "take cuDNN <9.0,>=8.9.2.26, or jax 0.4.29"
    assert envbuild("lock", name) == 1
    assert "hint: take cuDNN <9.0,>=8.9.2.26, or jax 0.4.29" in capsys.readouterr().err
    assert project.server.log == []
    fits = project.write(recipe("fits", pins.format("8.9.7.29")))
    assert "cudnn-differs" not in findings(capsys, fits)
    later = project.write(recipe("later", pins.format("9.1.0.70").replace("0.4.28", "0.4.29")))
    assert "cudnn-differs" not in findings(capsys, later)


def test_cuda_12_4_with_cudnn_9_1_is_fine_for_torch_2_4(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = findings(capsys, "h100-pt24")
    assert [one for one in found.values() if "cudnn" in json.dumps(one).lower()] == []
    assert {one["severity"] for one in found.values()} <= {"note"}


def test_h100_and_pytorch_2_4_offer_cuda_12_4_with_cudnn_9_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_of = ("--gpu", "h100", "--framework", "pytorch==2.4.0")
    code, told = answer(capsys, "list", *set_of)
    assert code == 0
    best, conda_build = told["sets"][:2]
    assert (best["cuda"], best["cudnn"], best["origin"]) == ("12.4", "9.1.0.70", "cu124")
    assert (conda_build["cuda"], conda_build["cudnn"]) == ("12.4", "9.1.0")
    assert conda_build["conda_build"] == "*_cuda12.4_cudnn9.1.0_0"
    assert answer(capsys, "why", *set_of, "--cuda", "12.4", "--cudnn", "9.1")[0] == 0


def test_b200_and_pytorch_2_4_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    set_of = ("--gpu", "b200", "--framework", "pytorch==2.4.0")
    assert answer(capsys, "list", *set_of) == (1, {"version": 1, "sets": []})
    code, told = answer(capsys, "why", *set_of)
    assert code == 1
    for build in told["against"]:
        (reason,) = build["reasons"]
        assert "no code for 10.0" in reason["what"]
        assert "sm_100" not in reason["what"]
        assert reason["what"].endswith("no PTX")
        assert reason["sources"]
    first = told["first_with_code"]
    assert (first["version"], first["origin"]) == ("2.7.0", "cu128")
    assert told["nearest"]


@pytest.mark.parametrize(
    ("version", "cudnn", "code"),
    [("0.4.28", "8.9", 0), ("0.4.28", "9", 1), ("0.4.29", "9", 0), ("0.4.29", "8.9", 1)],
)
def test_jax_and_its_cudnn(
    version: str, cudnn: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    set_of = ("--framework", f"jax=={version}", "--cudnn", cudnn)
    assert answer(capsys, "why", *set_of)[0] == code
    assert answer(capsys, "list", *set_of)[0] == code


def test_torch_from_pypi_wants_driver_580_from_2_11_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def origins(driver: str) -> set[str]:
        set_of = ("--gpu", "h100", "--framework", "pytorch>=2.11", "--driver", driver)
        return {each["origin"] for each in answer(capsys, "list", *set_of)[1]["sets"]}

    assert "pypi" in origins("580")
    assert "pypi" not in origins("575.57.08")
    set_of = ("--gpu", "h100", "--framework", "pytorch==2.11.0", "--cuda", "13.0")
    code, told = answer(capsys, "why", *set_of, "--driver", "575.57.08")
    assert code == 1
    (pypi,) = [each for each in told["against"] if each["origin"] == "pypi"]
    reasons = {reason["part"]: reason["what"] for reason in pypi["reasons"]}
    assert reasons["driver"].startswith("it needs driver 580.65.06 or newer")


ALONE = """\
[sources]
ours = "read with envbuild inspect"

[[build]]
version = "9.9.0"
origin = "pypi"
platform = "linux-64"
cuda = "12.8"
codes = ["sm_90a", "sm_100a"]
sources = ["ours"]
read = "2026-12-01"
confidence = "high"
"""


@pytest.mark.parametrize(
    ("capability", "code"), [("9.0", 0), ("10.0", 0), ("10.3", 1), ("12.0", 1), ("8.9", 1)]
)
def test_code_of_one_capability_alone_runs_on_no_other(
    capability: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "pytorch.toml").write_text(ALONE)
    monkeypatch.setenv("ENVBUILD_FACTS", str(tmp_path))
    set_of = ("--gpu", capability, "--framework", "pytorch==9.9.0")
    assert answer(capsys, "why", *set_of)[0] == code
    assert answer(capsys, "list", *set_of)[0] == code
