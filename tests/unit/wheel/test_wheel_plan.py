"""Which packages of a lock need a rebuild: every rule, on packages as they were read."""

from dataclasses import replace

import pytest
from unit.wheel.planning import answers, conda, file, made, recipe, wheel

from envbuild.compat.model import Facts
from envbuild.native.code import code_of
from envbuild.packages import WHEELHOUSE
from envbuild.pipeline import planning
from envbuild.wheel.evidence import covers
from envbuild.wheel.model import Archive, Cost, GitCommit, Sdist

TORCH_24 = wheel(
    "torch==2.4.0",
    file("torch/lib/libtorch_cpu.so", "GCC 9.3.1", "GCC 4.8.5", abi="old"),
    file(
        "torch/lib/libtorch_cuda.so",
        "GCC 9.3.1",
        "GCC 4.8.5",
        abi="old",
        codes="sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90",
    ),
    file("torch/lib/libgomp-a34b3233.so.1", "GCC 4.8.5"),
    via=("torchvision", "accelerate"),
)
TORCHVISION = wheel(
    "torchvision==0.19.0",
    file("torchvision/_C.so", "GCC 9.3.1", abi="old", needed=("libc10.so", "libtorch.so")),
    file("torchvision/image.so", "GCC 9.3.1", abi="old", needed=("libpng16.so.16", "libc10.so")),
)
ACCELERATE = wheel("accelerate==1.15.0")
SOURCES = (
    "packages: {torch: {git: 'https://git.test/torch', commit: "
    "d990dada86a8ad94882b5c23e859b88c0c255bda, tag: v2.4.0}}"
)


@pytest.mark.parametrize(
    ("compiler", "version", "expected"),
    [
        ("gcc 12", "2.4.0", "yes"),
        ("gcc 12", "2.6.0", "yes"),
        ("gcc 12", "2.7.0", "yes"),
        ("gcc 12", "2.8.0", None),
        ("gcc >=12", "2.15.0", None),
        ("gcc ==12.*", "2.7.0", "yes"),
        ("gcc ==12.*", "2.8.0", "yes"),
        ("gcc ==13.*", "2.8.0", None),
        ("gcc 9", "2.4.0", None),
    ],
)
def test_official_wheels_of_pytorch_by_the_facts(
    compiler: str, version: str, expected: str | None
) -> None:
    found = made(f"{{compiler: {compiler}}}", wheel(f"torch=={version}", read=False))
    assert answers(found).get("torch") == expected
    reads = {each.read for one in found.rebuilds for why in one.why for each in why.evidence}
    assert reads == ({"facts"} if expected else set())


def test_the_wheel_of_pytorch_24_as_it_was_read() -> None:
    found = made("{compiler: gcc 12}", TORCH_24, TORCHVISION, ACCELERATE)
    torch, vision = found.rebuilds
    assert [one.name for one in (torch, vision)] == ["torch", "torchvision"]
    (why,) = torch.why
    assert why.cause == "compiler"
    assert why.what == "GCC 9.3.1 compiled it, and gcc 12 or newer is asked for"
    (evidence,) = why.evidence
    assert evidence.where == "torch/lib/libtorch_cpu.so, torch/lib/libtorch_cuda.so"
    assert evidence.what == ".comment: GCC 9.3.1, GCC 4.8.5"
    assert evidence.read == "generation"
    assert torch.abi == vision.abi == "old"
    assert [reason.cause for reason in vision.why] == ["links", "compiler"]
    assert [(one.where, one.what) for one in vision.why[0].evidence] == [
        ("torchvision/_C.so", "NEEDED: libc10.so, libtorch.so"),
        ("torchvision/image.so", "NEEDED: libc10.so"),
    ]
    assert vision.after == ("torch",)
    assert "accelerate" not in answers(found)
    assert [(one.name, one.what.partition(":")[0]) for one in found.instead] == [
        ("torch", "pytorch 2.8.0 pypi")
    ]


def test_startup_objects_only_look_as_if() -> None:
    found = made(
        "{compiler: gcc 12}", wheel("torch==2.8.0", file("a.so", "GCC 4.8.5", "GCC 13.3.1"))
    )
    assert not found.rebuilds
    (spared,) = found.spared
    assert spared.looks == "it names GCC 4.8.5"
    assert spared.why.startswith("GCC 13.3.1 compiled it; older lines are of startup objects")


@pytest.mark.parametrize(
    ("compilers", "loose", "exact"),
    [
        (("GCC 12.2.0",), None, None),
        (("GCC 12.2.0", "GCC 4.8.5"), "no", "no"),
        (("GCC 12.2.0", "GCC 13.3.1"), None, "yes"),
        (("GCC 13.3.1",), None, "yes"),
        (("GCC 11.2.1",), "yes", "yes"),
        # jaxlib 0.4.30, dpctl 0.18.3, ruff 0.6.9, ziglang 0.13.0
        (("GCC 9.3.1", "clang 17.0.6", "GCC 4.7.3"), "no", "yes"),
        (("GCC 14.2.0", "Intel oneAPI DPC++ 2025.0.1"), None, "yes"),
        (("GCC 4.8.5", "GCC 10.2.1", "rustc 1.81.0", "clang 18.1.0rc"), "no", "yes"),
        (("clang 18.1.6",), None, "yes"),
        (("GCC 10.2.1", "rustc 1.80.0"), "no", "no"),
        ((), "unknown", "unknown"),
    ],
)
def test_which_line_decides(
    compilers: tuple[str, ...], loose: str | None, exact: str | None
) -> None:
    for compiler, expected in (("gcc 12", loose), ("gcc ==12.*", exact)):
        found = made(
            f"{{compiler: {compiler}, packages: {{a: {{}}}}}}",
            wheel("a==1", file("a.so", *compilers)),
        )
        assert answers(found).get("a") == expected, compiler


def test_clang_is_asked_for() -> None:
    build = "{compiler: clang 17, packages: {a: {}, b: {}, c: {}}}"
    found = made(
        build,
        wheel("a==1", file("a.so", "GCC 9.3.1", "clang 17.0.6")),
        wheel("b==1", file("b.so", "GCC 13.3.1")),
        wheel("c==1", file("c.so", "clang 16.0.0")),
    )
    assert answers(found) == {"a": "no", "b": "yes", "c": "yes"}


def test_without_comment_it_is_unknown_and_never_guessed() -> None:
    found = made("{compiler: gcc 12, packages: {a: {}}}", wheel("a==1", file("a.so")))
    (unknown,) = found.unknown
    assert "no .comment" in unknown.what
    assert unknown.hint == "to rebuild it in any case: when: always"
    mixed = made(
        "{compiler: gcc 12, packages: {a: {}}}",
        wheel("a==1", file("a.so"), file("b.so", "GCC 9.3.1")),
    )
    assert answers(mixed) == {"a": "yes"}


def test_what_was_not_read_is_unknown() -> None:
    found = made("{compiler: gcc 12, packages: {a: {}}}", wheel("a==1", read=False))
    (unknown,) = found.unknown
    assert unknown.what == "its binaries were not read"
    assert unknown.hint == "envbuild wheel plan x --fetch"


@pytest.mark.parametrize(
    ("abis", "asked", "expected"),
    [
        (("old", "none"), "new", "yes"),
        (("new", "old"), "new", "yes"),
        (("mixed",), "new", "yes"),
        (("new", "none"), "new", None),
        (("none",), "old", None),
        (("new",), "old", "yes"),
    ],
)
def test_string_abi(abis: tuple[str, ...], asked: str, expected: str | None) -> None:
    files = [file(f"{place}.so", "GCC 12.2.0", abi=abi) for place, abi in enumerate(abis)]  # type: ignore[arg-type]
    found = made(f"{{cxx_abi: {asked}, packages: {{a: {{}}}}}}", wheel("a==1", *files))
    assert answers(found).get("a") == expected
    assert all(one.abi == asked for one in found.rebuilds)


def test_string_abi_by_the_facts() -> None:
    assert answers(made("{cxx_abi: new}", wheel("torch==2.6.0", read=False))) == {"torch": "yes"}
    assert answers(made("{cxx_abi: new}", wheel("torch==2.7.0", read=False))) == {}
    conda_24 = conda("pytorch::pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0", read=False)
    assert answers(made("{cxx_abi: new}", conda_24)) == {"pytorch": "unknown"}


@pytest.mark.parametrize(
    ("codes", "arch", "expected"),
    [
        ("sm_80 sm_90", "9.0", True),
        ("sm_80", "8.6", True),
        ("sm_80 sm_90a", "9.0", True),
        ("sm_80 sm_90", "9.0a", False),
        ("sm_80 sm_90a", "9.0a", True),
        ("sm_80 sm_90a sm_100a", "10.3", False),
        ("sm_100f", "10.3", True),
        ("sm_100f", "10.0f", True),
        ("sm_90", "10.0", False),
        ("compute_90", "10.0", False),
        ("sm_90", "9.0+PTX", False),
        ("sm_90 compute_50", "9.0+PTX", False),
        ("sm_90 compute_90", "9.0+PTX", True),
    ],
)
def test_gpu_code(codes: str, arch: str, *, expected: bool) -> None:
    assert covers(frozenset(map(code_of, codes.split())), arch) is expected


def test_gpu_code_of_each_library_counts() -> None:
    # sgl-kernel 0.3.10: one library has code for 10.0, the other has not
    found = made(
        "{cuda_archs: ['10.0'], packages: {sgl-kernel: {}}}",
        wheel(
            "sgl-kernel==0.3.10",
            file("common_ops.abi3.so", codes="sm_80 sm_89 sm_90 sm_90a sm_100a"),
            file("flash_ops.abi3.so", codes="sm_80 sm_86 sm_90a"),
        ),
    )
    (why,) = found.rebuilds[0].why
    assert why.what == "it lacks GPU code for 10.0, in 1 of 2 libraries"
    assert [(one.where, one.what) for one in why.evidence] == [
        ("flash_ops.abi3.so", "GPU code: sm_80 sm_86 sm_90a")
    ]
    assert found.rebuilds[0].cuda_archs == ("10.0",)


def test_architectures_are_those_of_the_recipes_cards() -> None:
    loaded = recipe("{packages: {a: {}}}", "target: {gpus: [h100, l40s]}\ntriangle: {cuda: '12.4'}")
    question = planning.question(loaded, Facts(), "linux-64", python="3.11.7")
    assert question.archs == ()  # no table knows the cards
    found = made(
        "{packages: {a: {}}}",
        wheel("a==1", file("a.so", "GCC 9.3.1", codes="sm_75")),
        more="target: {gpus: [h100, l40s]}\ntriangle: {cuda: '12.4'}",
    )
    (one,) = found.rebuilds
    assert one.cuda_archs == ("8.9", "9.0")
    assert one.toolchain.cuda == "12.4"
    assert found.asked == ("GPU code for 8.9, 9.0 (of the recipe's cards)",)


def test_a_conda_pytorch_is_replaced_and_its_dependents_are_named() -> None:
    found = made(
        f"{{compiler: gcc 12, {SOURCES}}}",
        conda("pytorch::pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0", read=False),
        conda("pytorch::torchtriton 3.0.0 py310", depends=("pytorch", "python")),
        conda("pytorch::torchvision 0.19.0 py310_cu124", depends=("pytorch 2.4.0",), read=False),
        conda("conda-forge::gxx_linux-64 12.4.0 h1"),
        more="triangle: {cuda: '12.4'}",
    )
    (torch,) = found.rebuilds
    assert (torch.name, torch.half) == ("torch", "conda")
    assert torch.replaces == ("pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0",)
    assert torch.dependents == ("torchtriton 3.0.0 py310", "torchvision 0.19.0 py310_cu124")
    assert torch.toolchain.package == "gxx_linux-64 12.4.0"
    assert torch.toolchain.takes == "gcc 6.0 to 13"
    assert [one.name for one in found.unknown] == ["torchvision"]


def test_condas_libtorch_is_a_part_of_torch() -> None:
    found = made(
        "{compiler: gcc ==12.*}",
        conda("conda-forge::libtorch 2.8.0 cuda129_h1", file("lib/libtorch.so", "GCC 13.3.0")),
        conda("conda-forge::pytorch 2.8.0 cuda129_py313", file("_C.so", "GCC 13.3.0")),
        conda(
            "conda-forge::torchvision 0.23.0 cuda129_py313",
            file("_C.so", "GCC 13.3.0", needed=("libtorch.so",)),
            depends=("pytorch", "libtorch"),
        ),
    )
    assert [one.name for one in found.rebuilds] == ["torch", "torchvision"]
    assert [name.split()[0] for name in found.rebuilds[0].replaces] == ["libtorch", "pytorch"]
    assert found.rebuilds[0].dependents == ("torchvision 0.23.0 cuda129_py313",)


def test_only_what_is_named_is_rebuilt_and_others_are_told() -> None:
    numpy = wheel("numpy==1.26.4", file("numpy/core.so", "GCC 10.2.1", "GCC 4.8.5"))
    found = made("{compiler: gcc 12}", TORCH_24, numpy)
    assert answers(found) == {"torch": "yes", "numpy": "no"}
    named = made("{compiler: gcc 12, packages: {NumPy: {}}}", TORCH_24, numpy)
    assert answers(named) == {"torch": "no", "numpy": "yes"}
    assert named.spared[0].why == "build.packages does not name it"


def test_what_links_pytorch_has_its_string_abi() -> None:
    kernels = wheel(
        "flash-attn==2.6.3", file("flash.so", "GCC 9.3.1", abi="old", needed=("libc10.so",))
    )
    (one,) = made("{compiler: gcc 12, packages: {flash-attn: {}}}", TORCH_24, kernels).rebuilds
    assert (one.abi, one.toolchain.problem) == ("old", "")
    build = "{compiler: gcc 12, cxx_abi: new, packages: {flash-attn: {}}}"
    (other,) = made(build, TORCH_24, kernels).rebuilds
    assert other.toolchain.problem == (
        "torch, which it links, has the old string ABI and is not rebuilt"
    )
    both = made("{cxx_abi: new, packages: {torch: {}, flash-attn: {}}}", TORCH_24, kernels)
    assert [(one.abi, one.toolchain.problem) for one in both.rebuilds] == [("new", "")] * 2


def test_nothing_ties_another_package_to_an_abi() -> None:
    alone = wheel("iminuit==2.30.1", file("iminuit/_core.so", "GCC 10.2.1", abi="old"))
    (one,) = made("{compiler: gcc 12, packages: {iminuit: {}}}", alone).rebuilds
    assert one.abi is None


def test_nvidias_libraries_are_not_listed() -> None:
    nccl = wheel("nvidia-nccl-cu12==2.20.5", file("nvidia/nccl/lib/libnccl.so.2", "GCC 8.5.0"))
    assert answers(made("{compiler: gcc 12}", TORCH_24, nccl)) == {"torch": "yes"}


def test_the_sdist_of_a_rebuilt_wheel_is_that_of_its_release() -> None:
    (one,) = made("{when: always, packages: {a: {}}}", wheel("a==1.2+gcc12", read=False)).rebuilds
    assert one.source == Sdist(name="a", version="1.2")


def test_a_name_that_the_lock_lacks() -> None:
    found = made("{compiler: gcc 12, packages: {flash-attn: {}}}", TORCH_24)
    assert answers(found)["flash-attn"] == "unknown"


def test_when() -> None:
    fine = wheel("torch==2.8.0", file("torch/lib/libtorch.so", "GCC 13.3.1"))
    pure = wheel("a==1")
    always = made("{compiler: gcc 12, when: always, packages: {torch: {}, a: {}}}", fine, pure)
    assert [(one.name, one.why[-1].cause) for one in always.rebuilds] == [("torch", "always")]
    own = wheel("a==1+gcc12", file("a.so", "GCC 12.2.0"), index=WHEELHOUSE)
    assert not made("{compiler: gcc 12, when: always, packages: {a: {}}}", own).rebuilds
    never = made("{compiler: gcc 12, when: never}", TORCH_24, TORCHVISION)
    assert not never.rebuilds
    assert never.spared[0].why == "the recipe says when: never"


def test_what_each_is_built_from_and_with() -> None:
    build = """
  compiler: gcc 12
  when: always
  flags: [-O2]
  jobs: 8
  memory_per_job: 4G
  packages:
    a: {flags: [-g], environment: {USE_MPI: 0}, jobs: 2, portable: true}
    b: {archive: b-1.tar.gz}
    c: {git: 'https://git.test/c', commit: d990dada86a8ad94882b5c23e859b88c0c255bda}
    torch: {}
"""
    packages = [wheel(f"{name}==1", read=False, via=("c",) * (name == "a")) for name in "abc"]
    found = made(build, *packages, wheel("torch==2.4.0", read=False))
    sources = {one.name: one.source for one in found.rebuilds}
    assert isinstance(sources["a"], Sdist)
    assert isinstance(sources["b"], Archive)
    assert sources["b"].path.endswith("/b-1.tar.gz")
    assert isinstance(sources["c"], GitCommit)
    assert sources["torch"] is None
    rebuilds = {one.name: one for one in found.rebuilds}
    assert rebuilds["a"].flags == ("-O2", "-g")
    assert rebuilds["a"].environment == (("USE_MPI", "0"),)
    assert (rebuilds["a"].jobs, rebuilds["b"].jobs) == (2, 8)
    assert rebuilds["a"].memory_per_job_bytes == 4 << 30
    assert (rebuilds["a"].portable, rebuilds["b"].portable) == (True, False)
    assert rebuilds["c"].after == ("a",)
    assert rebuilds["a"].cost == Cost()


def test_a_compiler_that_nvcc_does_not_take() -> None:
    found = made(f"{{compiler: gcc 13, {SOURCES}}}", TORCH_24, more="triangle: {cuda: '12.1'}")
    problem = found.rebuilds[0].toolchain.problem
    assert problem == "nvcc of CUDA 12.1 takes gcc 6.0 to 12, not gcc 13"


def test_nothing_is_offered_in_place_of_gcc_12_exactly() -> None:
    found = made("{compiler: gcc ==12.*}", wheel("torch==2.8.0", read=False))
    assert answers(found) == {"torch": "yes"}
    assert found.instead == ()


def test_local_versions_are_held_against_the_tables_without_what_was_added() -> None:
    torch = file("torch/lib/libtorch_cuda.so", "GCC 9.3.1", abi="old", codes="sm_90")
    found = made("{compiler: gcc 12}", wheel("torch==2.4.0+cu124", torch, index="pytorch"))
    assert [one.version for one in found.rebuilds] == ["2.4.0+cu124"]
    assert found.instead
    assert found.instead == made("{compiler: gcc 12}", wheel("torch==2.4.0", torch)).instead


def test_a_wheel_of_another_index_is_not_the_default_ones() -> None:
    found = made("{compiler: gcc 12}", wheel("torch==2.4.0", read=False, index="own"))
    assert answers(found) == {"torch": "unknown"}


def test_rebuilt_wheels_that_the_wheelhouse_lacks_are_built_again_as_they_were() -> None:
    version = "2.4.0+gcc12.sm90.oldabi"
    torch = wheel(f"torch=={version}", read=False, via=("torchvision",), index=WHEELHOUSE)
    vision = wheel("torchvision==0.19.0+gcc12", read=False, index=WHEELHOUSE)
    found = made(
        "{compiler: gcc 12, packages: {torch: {}}}",
        replace(torch, absent=True),
        replace(vision, absent=True),
        more="target: {gpus: [h100]}\ntriangle: {cuda: '12.4'}",
    )
    first, second = found.rebuilds
    assert (first.name, first.cuda_archs, first.abi, first.after) == ("torch", ("9.0",), "old", ())
    assert (second.name, second.cuda_archs, second.after) == ("torchvision", (), ("torch",))
    assert [one.cause for one in (*first.why, *second.why)] == ["absent", "absent"]
    assert found.unknown == ()
