"""Architectures, memory and jobs: what was asked for, what is left out, what came out."""

from dataclasses import replace
from pathlib import Path

import pytest
from toolchains import tools
from unit.wheel.planning import file

from envbuild.cli.main import main
from envbuild.native.model import NativeFacts
from envbuild.pipeline.rebuilding import Wish, chosen
from envbuild.rebuild import limits, proof
from envbuild.rebuild.jobs import GIB
from envbuild.wheel.model import Plan, Rebuild, Sdist, Toolchain

CUDA = Rebuild(
    name="demo",
    version="1",
    half="pypi",
    why=(),
    source=Sdist(name="demo", version="1"),
    toolchain=Toolchain(compiler="gcc 12", cuda="12.4"),
    cuda_archs=("8.9", "9.0"),
)


def test_architectures_of_the_option_replace_the_recipes_and_what_is_missing_is_said() -> None:
    plan = Plan(name="one", platform="linux-64", rebuilds=(CUDA,))
    (taken,), said = chosen(plan, Wish(archs=("7.5", "8.9")))
    assert taken.cuda_archs == ("7.5", "8.9")
    (finding,) = said
    assert (finding.code, finding.severity) == ("gpu-code-replaced", "warning")
    assert finding.what == "built for 7.5, 8.9, and 9.0 of the recipe is missing"
    assert chosen(plan, Wish()) == ((CUDA,), ())


def test_what_is_no_architecture_is_refused_with_the_form(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["wheel", "rebuild", "rebuild-demo", "--cuda-archs", "cpu"]) == 2
    told = capsys.readouterr().err
    assert "--cuda-archs" in told
    assert "8.9;9.0+PTX" in told


@pytest.mark.parametrize(
    ("codes", "wrong"),
    [
        ("sm_89 sm_90", []),
        ("sm_75 sm_89 sm_90", ["it has sm_75, which nobody asked for"]),
        ("sm_89", ["it has no sm_90; it has sm_89"]),
        ("", ["it has no sm_89, sm_90; it has no GPU code"]),
    ],
)
def test_just_the_code_that_was_asked_for_is_a_result(codes: str, wrong: list[str]) -> None:
    library = file("demo.so", "GCC 12.2.0", codes=codes)
    facts = NativeFacts(name="demo", files=(library,), other_files=0)
    compiler = tools(Path("/usr/bin/gcc-12")).compiler
    assert list(proof.problems(facts, CUDA, compiler)) == wrong


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ((), 4 * GIB),
        ((("NVCC_THREADS", "4"),), 16 * GIB),
        ((("NVCC_APPEND_FLAGS", "-O3 --threads 2"),), 8 * GIB),
        ((("NVCC_APPEND_FLAGS", "-t=0"),), 24 * GIB),
        ((("NVCC_APPEND_FLAGS", "-target-dir x"),), 4 * GIB),
    ],
)
def test_threads_of_nvcc_multiply_what_a_job_takes(
    environment: tuple[tuple[str, str], ...], expected: int
) -> None:
    one = replace(CUDA, environment=environment)
    assert limits.memory_per_job(one, cores=6) == expected
    smaller = replace(one, memory_per_job_bytes=GIB)
    assert limits.memory_per_job(smaller, cores=6) == expected // 4
    plain = replace(one, toolchain=Toolchain(compiler="gcc 12"))
    assert limits.memory_per_job(plain, cores=6) == GIB
