"""Which distributions conda packages install, and which CUDA libraries both sides have."""

import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from envbuild.packages import CondaPackage
from envbuild.solve import standins
from envbuild.solve.names import cuda_rivals, distribution, provided


def record(
    name: str, version: str = "1.0", *, channel: str = "conda-forge", depends: tuple[str, ...] = ()
) -> CondaPackage:
    return CondaPackage(
        name=name,
        version=version,
        build="0",
        url=f"https://conda.anaconda.org/{channel}/linux-64/{name}-{version}-0.conda",
        depends=depends,
    )


@pytest.mark.parametrize(
    ("conda", "pypi"),
    [
        ("pytorch", "torch"),
        ("numpy", "numpy"),
        ("jaxlib", "jaxlib"),
        ("torchtriton", "triton"),
        ("ruamel.yaml", "ruamel-yaml"),
        ("py-opencv", "opencv-python"),
        ("typing_extensions", "typing-extensions"),
        ("importlib_metadata", "importlib-metadata"),
        ("nsight-compute", None),
        ("qgis", None),
        ("python", None),
        ("cmake", None),
        ("libcublas", None),
    ],
)
def test_names(conda: str, pypi: str | None) -> None:
    assert distribution(record(conda)) == pypi


def test_a_package_of_a_channel_without_rows() -> None:
    needs_python = ("numpy", "python >=3.10")
    assert distribution(record("my_lib", channel="corp", depends=needs_python)) == "my-lib"
    assert distribution(record("lib", channel="corp", depends=("python_abi 3.11.*",))) == "lib"
    assert distribution(record("my_lib", channel="corp", depends=("python-dateutil",))) is None
    assert distribution(record("my_lib", depends=needs_python)) is None
    assert (
        distribution(record("my_lib", channel="nvidia/label/cuda-12.4.0", depends=needs_python))
        is None
    )


def test_what_a_half_provides() -> None:
    half = [record("python", "3.11.9"), record("pytorch", "2.4.0"), record("zlib")]
    found = provided(half)
    assert {name: str(one.version) for name, one in found.items()} == {"torch": "2.4.0"}
    assert found[canonicalize_name("torch")].package is half[1]


def test_the_package_of_the_distributions_own_name_counts() -> None:
    half = [record("matplotlib-base", "3.8"), record("matplotlib", "3.9")]
    for packages in (half, half[::-1]):
        found = provided(packages)[canonicalize_name("matplotlib")]
        assert found.version == Version("3.9")


def test_a_version_that_pypi_does_not_know() -> None:
    found = provided([record("numpy", "1.26.4_abc")])[canonicalize_name("numpy")]
    assert (str(found.version), found.exact) == ("1.26.4", False)
    found = provided([record("numpy", "custom")])[canonicalize_name("numpy")]
    assert (str(found.version), found.exact) == ("0", False)


@pytest.mark.parametrize(
    ("wheel", "conda", "rivals"),
    [
        ("nvidia-cudnn-cu12", ["cudnn"], ["cudnn"]),
        ("nvidia-cudnn-cu13", ["libcudnn"], ["libcudnn"]),
        ("nvidia-cublas", ["libcublas"], ["libcublas"]),
        ("nvidia-cublas-cu11", ["cudatoolkit"], ["cudatoolkit"]),
        ("nvidia-cudnn-cu12", ["libcublas", "cuda-version"], []),
        ("numpy", ["numpy"], []),
    ],
)
def test_cuda_libraries_of_both_sides(wheel: str, conda: list[str], rivals: list[str]) -> None:
    assert [name for name in conda if name in cuda_rivals(wheel)] == rivals


def test_standins(tmp_path: Path) -> None:
    found = provided([record("pytorch", "2.4.0"), record("numpy", "1.0+mkl")])
    standins.write(found.values(), tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "numpy-1.0+mkl.conda-py3-none-any.whl",
        "torch-2.4.0+conda-py3-none-any.whl",
    ]
    first = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    standins.write(found.values(), tmp_path)
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == first
    with zipfile.ZipFile(tmp_path / names[1]) as archive:
        assert "Requires-Dist" not in archive.read("torch-2.4.0+conda.dist-info/METADATA").decode()
        assert len(archive.namelist()) == 3
    assert standins.constraints(found.values()) == "numpy==1.0+mkl.conda\ntorch==2.4.0+conda\n"


def test_words_without_the_mark_of_a_standin() -> None:
    text = "torch==2.4.0+conda and numpy==1.0+mkl.conda and x==1+condax"
    assert (
        standins.plain_words(text)
        == "torch==2.4.0 (conda) and numpy==1.0+mkl (conda) and x==1+condax"
    )


def test_arbitrary_equality() -> None:
    names = {canonicalize_name("sympy")}
    assert standins.requirement_text(Requirement("Sympy===1.14.0"), names) == "Sympy==1.14.0"
    assert standins.requirement_text(Requirement("other===1"), names) == "other===1"
