"""Rebuilds of real sources: the recipe that ships, and a CUDA extension."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from integration.rebuilding import Builder, needs_gcc, wanted, with_index

from envbuild.cli.main import main
from envbuild.native.inspect import inspect
from envbuild.wheel.model import Toolchain

pytestmark = [needs_gcc, pytest.mark.network, pytest.mark.slow]

NVCC = shutil.which("nvcc")

SETUP = """\
import os, subprocess
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

class Cuda(build_ext):
    def build_extension(self, ext):
        target = self.get_ext_fullpath(ext.name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        codes = []
        for arch in os.environ["TORCH_CUDA_ARCH_LIST"].split(";"):
            number = arch.replace(".", "")
            codes += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
        include = ["-I" + one for one in self.compiler.include_dirs]
        nvcc = os.environ["CUDA_HOME"] + "/bin/nvcc"
        command = [nvcc, "-c", "scale.cu", "-o", "scale.o", "-Xcompiler", "-fPIC", *codes, *include]
        subprocess.run(command, check=True)
        subprocess.run([nvcc, "-shared", *codes, "scale.o", "-o", target], check=True)

setup(name="scale", version="1.0", ext_modules=[Extension("scale", ["scale.cu"])],
      cmdclass={"build_ext": Cuda})
"""
KERNEL = """\
#include <Python.h>
namespace { __device__ float hidden; }
__global__ void scale(float *x) { x[threadIdx.x] *= 2 + hidden; }
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "scale", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_scale(void) { return PyModule_Create(&module); }
extern "C" const void *kernel(void) { return (const void *)scale; }
"""
PROJECT = """\
[build-system]
requires = ["setuptools ==75.8.0"]
build-backend = "setuptools.build_meta"
"""


def _release() -> str | None:
    if NVCC is None:
        return None
    told = subprocess.run([NVCC, "--version"], check=True, capture_output=True, text=True).stdout
    return told.partition("release ")[2].partition(",")[0]


@pytest.mark.skipif(NVCC is None, reason="nvcc is not here")
def test_a_cuda_extension_has_just_the_code_of_its_recipe_and_is_the_same_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "7.5")
    folder = tmp_path / "scale"
    folder.mkdir()
    for name, text in (("setup.py", SETUP), ("scale.cu", KERNEL), ("pyproject.toml", PROJECT)):
        (folder / name).write_text(text)
    one = wanted(
        folder,
        name="scale",
        cuda_archs=("9.0", "10.0"),
        toolchain=Toolchain(compiler="gcc 12", cuda=_release()),
    )
    outcome = Builder(root=tmp_path / "store", **with_index()).build(one, verify=True)
    assert outcome.identical
    assert str(outcome.kept.version) == "1.0+gcc12.sm100.sm90"
    facts = inspect(outcome.kept.path)
    assert {str(code) for code in facts.codes} == {"sm_90", "sm_100"}
    internal = outcome.kept.statement.internal
    assert internal["cuda"]["version"].startswith(f"{_release()}.")
    assert internal["variables"]["TORCH_CUDA_ARCH_LIST"] == "9.0;10.0"


def test_the_recipe_that_ships_is_rebuilt_locked_and_created(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    places = ["--store", f"{tmp_path}/store", "--locks", f"{tmp_path}/locks"]

    def told(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        assert main([*words, *places, "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    (planned,) = told("wheel", "plan", "rebuild-demo", "--fetch")["rebuild"]
    assert planned["name"] == "kiwisolver"
    assert "GCC 10.2.1" in json.dumps(planned)
    monkeypatch.setenv("ENVBUILD_PYTHON", os.path.realpath(sys.executable))
    (rebuilt,) = told("wheel", "rebuild", "rebuild-demo", "--fetch", "--verify-reproducible")[
        "rebuilt"
    ]
    assert (rebuilt["built"], rebuilt["identical"]) == (True, True)
    shown = told("wheel", "show", "kiwisolver")
    assert shown["wrong"] == []
    assert shown["provenance"]["subject"][0]["digest"]["sha256"] == rebuilt["sha256"]
    (locked,) = told("lock", "--prefer-rebuilt", "rebuild-demo")["locks"]
    assert locked["written"]
    text = (tmp_path / "locks/rebuild-demo/requirements.linux-64.txt").read_text()
    assert f"--hash=sha256:{rebuilt['sha256']}" in text
    told("create", "rebuild-demo")
    (kept,) = told("wheel", "list")["wheels"]
    assert (kept["locks"], kept["stale"]) == (["rebuild-demo"], [])
    (prefix,) = (tmp_path / "store/envs/rebuild-demo/generations").iterdir()
    (library,) = prefix.glob("lib/python3*/site-packages/kiwisolver/_cext*.so")
    (file,) = inspect(library).files
    assert (file.compilers, file.string_abi) == (("GCC 12.2.0",), "new")
