"""conda match specs: taken apart, written in one form, refused with a reason."""

import pytest

from envbuild.recipe.model import Recipe
from envbuild.recipe.specs import channel_of, conda_needs, name_of, parse


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("numpy", "numpy"),
        ("NumPy", "numpy"),
        ("numpy *", "numpy"),
        ("numpy >= 1.2, < 2", "numpy >=1.2,<2"),
        ("numpy>=1.2,<2", "numpy >=1.2,<2"),
        ("numpy=1.2", "numpy 1.2.*"),
        ("numpy =1.2", "numpy 1.2.*"),
        ("numpy==1.2", "numpy 1.2"),
        ("numpy 1.2", "numpy 1.2"),
        ("numpy=1.2=py311_0", "numpy 1.2 py311_0"),
        ("numpy==1.2=py311_0", "numpy 1.2 py311_0"),
        ("numpy 1.2.* py311*", "numpy 1.2.* py311*"),
        ("numpy ~=1.2", "numpy ~=1.2"),
        ("numpy 1.2|>=1.4,<2", "numpy 1.2|>=1.4,<2"),
        ("numpy (>=1,<1.2)|>2", "numpy (>=1,<1.2)|>2"),
        ("numpy !=1.3", "numpy !=1.3"),
        ("_openmp_mutex=*=*_gnu", "_openmp_mutex * *_gnu"),
        ("gxx_linux-64 12.*", "gxx_linux-64 12.*"),
        ("openssl 1.1.1w", "openssl 1.1.1w"),
        ("x 1!2.0+local", "x 1!2.0+local"),
        (
            "pytorch::pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0",
            "pytorch::pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0",
        ),
        (
            "pytorch=2.4.0=py3.10_cuda12.4_cudnn9.1.0_0",
            "pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0",
        ),
        ("nvidia/label/cuda-12.4.0::cuda-nvcc", "nvidia/label/cuda-12.4.0::cuda-nvcc"),
        ("https://conda.test/own::x 1.*", "https://conda.test/own::x 1.*"),
        ("numpy[version='>=1,<2',channel=conda-forge]", "conda-forge::numpy >=1,<2"),
        ('numpy[build="py311*"]', "numpy * py311*"),
        ("numpy 1.2[build_number='>=3']", 'numpy 1.2[build_number=">=3"]'),
        ("conda-forge::numpy[channel=conda-forge]", "conda-forge::numpy"),
    ],
)
def test_normal_form(written: str, text: str) -> None:
    need = parse(written)
    assert need.text == text
    assert need.written == written
    assert parse(text).text == text


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "a package name is missing"),
        (">=1.2", "a package name is missing"),
        ("./x.conda", "a path or an address cannot be locked"),
        ("https://conda.test/x-1-0.tar.bz2", "a path or an address cannot be locked"),
        ("x =", "expected a version such as"),
        ("x >", "expected a version such as"),
        ("x >=1,,<2", "expected a version such as"),
        ("x (>=1", "the parentheses of the version"),
        ("x 1 2 3", "at most a version and a build"),
        ("x 1 a/b", "expected a build string"),
        ("x[", "the brackets of"),
        ("x[version=1] y", "the brackets of"),
        ("x[verison=1]", "did you mean version?"),
        ("x[md5=1]", "known are version, build"),
        ("x[version]", "expected key=value pairs"),
        ("x[version=1,version=2]", "stands twice"),
        ("x[version='']", "is empty"),
        ("x 1.2[version=1.3]", "gives its version twice"),
        ("a::x[channel=b]", "gives its channel twice"),
        ("x[build_number=many]", "expected a build number"),
        ("::x", "expected a channel"),
        ("https://user:word@conda.test/own::x", "a login may not stand in a recipe"),
        ("num py[]!", "the brackets of"),
    ],
)
def test_refused(written: str, reason: str) -> None:
    with pytest.raises(ValueError, match="(?s)" + reason.replace("?", r"\?")):
        parse(written)
    assert name_of(written) is None
    assert channel_of(written) is None


def test_needs_of_a_recipe() -> None:
    recipe = Recipe(
        name="x", python="3.10", conda=("pytorch::pytorch 2.4.0", "numpy"), channels=("pytorch",)
    )
    needs = conda_needs(recipe)
    assert [(need.text, need.path) for need in needs] == [
        ("python 3.10.*", ("python",)),
        ("pytorch::pytorch 2.4.0", ("conda", 0)),
        ("numpy", ("conda", 1)),
    ]
    assert (needs[1].name, needs[1].channel, needs[1].version) == ("pytorch", "pytorch", "2.4.0")


@pytest.mark.parametrize(
    ("python", "text"),
    [
        ("3.11.7", "python 3.11.7"),
        (">=3.11,<3.13", "python >=3.11,<3.13"),
        ("3.12.*", "python 3.12.*"),
    ],
)
def test_python_as_a_need(python: str, text: str) -> None:
    assert [need.text for need in conda_needs(Recipe(name="x", python=python))] == [text]


def test_the_hosts_python_is_no_conda_need() -> None:
    assert conda_needs(Recipe(name="x", python=">=3.11", channels=("host",))) == ()
    assert conda_needs(Recipe(name="x")) == ()
