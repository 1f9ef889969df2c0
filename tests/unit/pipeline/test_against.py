"""What `check` finds, on the text of a recipe and on a lock that was changed by hand."""

from datetime import UTC, date, datetime

import pytest

from envbuild.compat.tables import load
from envbuild.lock.model import Lock, PlatformLock
from envbuild.packages import CondaPackage, PipPackage
from envbuild.pipeline.against import against_facts
from envbuild.recipe.load import loads

FACTS = load()
PLAIN = 'name: train\npython: "3.11"\n'
DRIVER = 'driver: ">=620"'


def recipe(target: str, *lines: str, python: str = "3.11") -> str:
    return "\n".join(
        (PLAIN.replace("3.11", python) + f"target: {{platforms: [linux-64], {target}}}", *lines, "")
    )


def lock(*packages: str) -> Lock:
    """Return a lock of packages, each `conda NAME VERSION [BUILD]` or `pypi NAME VERSION`."""
    conda, pip = [], []
    for text in packages:
        kind, name, version, build = (*text.split(), "0")[:4]
        if kind == "pypi":
            pip.append(PipPackage(name=name, version=version, hashes=("0" * 64,)))
            continue
        url = f"https://conda.anaconda.org/c/linux-64/{name}-{version}-{build}.conda"
        conda.append(CondaPackage(name=name, version=version, build=build, url=url))
    half = PlatformLock(platform="linux-64", conda=tuple(conda), pip=tuple(pip))
    instant = datetime(2026, 12, 1, tzinfo=UTC)
    return Lock(name="train", solve_digest="", cutoff=instant, channels=(), platforms=(half,))


def codes(text: str, own: Lock | None) -> set[str]:
    loaded = loads(text, source="train.yaml")
    found = against_facts(loaded, own, FACTS, today=date(2026, 12, 1))
    return {finding.code for finding in found}


FORGE = "py3.10_cuda12.4_cudnn9.1.0_0"
BOTH = [
    (
        "no-gpu-code",
        recipe(f"gpus: [b200], {DRIVER}", "pypi: [torch ==2.4.0]"),
        ["pypi torch 2.4.0"],
    ),
    (
        "driver-too-old",
        recipe('gpus: [h100], driver: ">=550"', "pypi: [torch ==2.11.0]"),
        ["pypi torch 2.11.0"],
    ),
    ("driver-open", recipe("gpus: [h100]", "pypi: [torch ==2.11.0]"), ["pypi torch 2.11.0"]),
    (
        "cuda-releases-differ",
        recipe(f"gpus: [h100], {DRIVER}", f"conda: [pytorch 2.4.0 {FORGE}, cuda-version 12.6.*]"),
        [f"conda pytorch 2.4.0 {FORGE}", "conda cuda-version 12.6"],
    ),
    (
        "cuda-releases-differ",
        recipe(f"gpus: [h100], {DRIVER}", "conda: [cuda-nvrtc 12.4.127, cuda-cudart 12.6.77]"),
        ["conda cuda-nvrtc 12.4.127", "conda cuda-cudart 12.6.77"],
    ),
    (
        "cudnn-differs",
        recipe(
            f"gpus: [a100], {DRIVER}", 'pypi: ["jax[cuda12]==0.4.28", nvidia-cudnn-cu12 ==9.1.0.70]'
        ),
        ["pypi jax 0.4.28", "pypi jax-cuda12-plugin 0.4.28", "pypi nvidia-cudnn-cu12 9.1.0.70"],
    ),
    (
        "cudnn-differs",
        recipe(f"gpus: [a100], {DRIVER}", "conda: [cudnn 8.9.7.29]", "pypi: [torch ==2.4.0]"),
        ["conda cudnn 8.9.7.29", "pypi torch 2.4.0"],
    ),
    (
        "no-python-build",
        recipe(f"gpus: [h100], {DRIVER}", "pypi: [torch ==2.4.0]", python="3.13"),
        ["conda python 3.13.1", "pypi torch 2.4.0"],
    ),
    (
        "compiler-too-new",
        recipe(
            f"gpus: [h100], {DRIVER}", "conda: [cuda-nvcc 12.4.131]", "build: {compiler: gcc 14}"
        ),
        ["conda cuda-nvcc 12.4.131", "conda gcc_linux-64 14.2.0"],
    ),
    (
        "known-bad",
        recipe(f"gpus: [h100], {DRIVER}", "pypi: [torch ==2.9.1, nvidia-cudnn-cu12 ==9.10.2.21]"),
        ["pypi torch 2.9.1", "pypi nvidia-cudnn-cu12 9.10.2.21"],
    ),
    (
        "cuda-from-both",
        recipe(f"gpus: [h100], {DRIVER}", "conda: [cudnn]", "pypi: [nvidia-cudnn-cu12]"),
        ["conda cudnn 9.3.0.75", "pypi nvidia-cudnn-cu12 9.1.0.70"],
    ),
    (
        "glibc-floor",
        recipe(f'gpus: [h100], {DRIVER}, glibc: "2.17"', "pypi: [torch ==2.8.0]"),
        ["pypi torch 2.8.0"],
    ),
    ("unknown-gpu", recipe(f"gpus: [h10], {DRIVER}"), []),
]
LOCKED = [
    ("no-c-compiler", recipe(f"gpus: [h100], {DRIVER}", "pypi: [torch ==2.8.0]"),
     ["pypi torch 2.8.0"]),
    ("no-setuptools", recipe(f"gpus: [h100], {DRIVER}", "pypi: [torch ==2.4.0]"),
     ["pypi triton 3.0.0"]),
    ("cuda-not-asked", recipe("glibc: '2.28'", "conda: [pytorch 2.4.0]"),
     [f"conda pytorch 2.4.0 {FORGE}"]),
    ("gpu-code-unknown", recipe(f"gpus: [h100], {DRIVER}", "conda: [pytorch]"),
     ["conda pytorch 2.5.1 cuda126_py310_h0_306"]),
]  # fmt: skip
"""What a text cannot say: it depends on what a solve takes."""


@pytest.mark.parametrize(("code", "text", "packages"), BOTH)
def test_the_text_says_it(code: str, text: str, packages: list[str]) -> None:
    assert code in codes(text, None)
    assert code not in codes(PLAIN, lock()), packages


@pytest.mark.parametrize(("code", "text", "packages"), [*BOTH, *LOCKED])
def test_the_lock_says_it(code: str, text: str, packages: list[str]) -> None:
    open_text = "".join(
        line
        for line in text.splitlines(keepends=True)
        if not line.startswith(("conda:", "pypi:", "build:", "python:"))
    )
    assert code in codes(open_text, lock(*packages))


@pytest.mark.parametrize(("code", "text", "packages"), LOCKED)
def test_the_text_alone_does_not(code: str, text: str, packages: list[str]) -> None:
    assert code not in codes(text, None), packages


def test_a_wheel_for_some_places_is_not_held_against_conda() -> None:
    marked = "pypi: [nvidia-cudnn-cu12; platform_machine == 'aarch64']"
    text = recipe(f"gpus: [h100], {DRIVER}", "conda: [cudnn]", marked)
    assert "cuda-from-both" not in codes(text, None)
