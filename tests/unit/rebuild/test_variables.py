from dataclasses import replace
from pathlib import Path

import pytest
from toolchains import cuda, tools

from envbuild.errors import UsageProblem
from envbuild.rebuild import variables
from envbuild.rebuild.toolchain import Tools
from envbuild.rebuild.variables import CompilerCache, Layout
from envbuild.wheel.model import Rebuild, Sdist, Toolchain

_SEEN = Layout(root=Path("/seen"))


def _rebuild(**more: object) -> Rebuild:
    made = Rebuild(
        name="demo",
        version="1",
        half="pypi",
        why=(),
        source=Sdist(name="demo", version="1"),
        toolchain=Toolchain(compiler="gcc 12"),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def _of(rebuild: Rebuild, with_: Tools, cache: CompilerCache | None = None) -> dict[str, str]:
    return variables.variables(
        rebuild, with_, _SEEN, jobs=3, epoch=7, prefix=Path("/conda"), cache=cache
    )


@pytest.mark.parametrize(
    ("wanted", "torch", "cmake"),
    [
        (("9.0", "8.9"), "8.9;9.0", "89;90"),
        (("9.0+PTX",), "9.0+PTX", "90"),
        (("9.0a", "10.0f", "9.0"), "9.0;9.0a;10.0f", "90;90a;100f"),
        ((), "", ""),
    ],
)
def test_capabilities_as_builds_read_them(wanted: tuple[str, ...], torch: str, cmake: str) -> None:
    assert variables.architectures(wanted) == (torch, cmake)


def test_what_is_no_capability_is_refused_with_the_form() -> None:
    with pytest.raises(UsageProblem) as caught:
        variables.architectures(("cpu",))
    assert "9.0" in (caught.value.hint or "")


def test_nothing_of_the_caller_is_in_a_builds_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCH_CUDA_ARCH_LIST", "CFLAGS", "CMAKE_ARGS", "CC"):
        monkeypatch.setenv(name, "7.5")
    made = tools(Path("/usr/bin/gcc-12"), cuda=cuda(Path("/cuda")))
    found = _of(_rebuild(cuda_archs=("8.9", "9.0"), flags=("-O3",), abi="new"), made)
    assert found["TORCH_CUDA_ARCH_LIST"] == "8.9;9.0"
    assert found["CUDAARCHS"] == "89;90"
    assert found["CMAKE_ARGS"] == "-DCMAKE_CUDA_ARCHITECTURES=89;90"
    assert found["CFLAGS"] == found["CXXFLAGS"] == "-D_GLIBCXX_USE_CXX11_ABI=1 -O3"
    assert found["CC"] == "/seen/tools/gcc"
    assert found["CUDAHOSTCXX"] == found["CXX"] == "/seen/tools/g++"
    assert found["PATH"].startswith("/seen/tools:/seen/env/bin:/conda/bin:/usr/local/bin")
    assert (found["SOURCE_DATE_EPOCH"], found["MAX_JOBS"]) == ("7", "3")
    assert "7.5" not in found.values()


def test_a_recipes_own_variables_come_after_ours() -> None:
    own = (("CFLAGS", "-DX"), ("USE_MPI", "0"), ("MAX_JOBS", "9"))
    found = _of(_rebuild(environment=own, flags=("-O1",)), tools(Path("/usr/bin/gcc-12")))
    assert (found["CFLAGS"], found["USE_MPI"], found["MAX_JOBS"]) == ("-O1 -DX", "0", "9")


def test_the_compiler_cache_is_one_toolchains_own_and_looks_at_content() -> None:
    cache = CompilerCache(program=Path("/usr/bin/ccache"), folder=Path("/store/ccache/ab"))
    found = _of(_rebuild(), tools(Path("/usr/bin/gcc-12")), cache)
    assert found["CCACHE_DIR"] == "/store/ccache/ab"
    assert found["CCACHE_COMPILERCHECK"] == "content"
    assert found["CCACHE_CONFIGPATH"] == "/dev/null"
    assert "CCACHE_DISABLE" not in found
    off = _of(_rebuild(), tools(Path("/usr/bin/gcc-12")), replace(cache, enabled=False))
    assert off["CCACHE_DISABLE"] == "1"
