"""Which conda packages give way to rebuilt wheels, and which stand in the way."""

import pytest

from envbuild.errors import Refused
from envbuild.packages import CondaPackage
from envbuild.pipeline import from_conda
from envbuild.recipe.build import Build


def _package(name: str, *depends: str, version: str = "1.0") -> CondaPackage:
    url = f"https://conda.anaconda.org/conda-forge/linux-64/{name}-{version}-0.conda"
    return CondaPackage(name=name, version=version, build="0", url=url, depends=depends)


TORCH = (
    _package("libtorch", "mkl", version="2.4.0"),
    _package("mkl"),
    _package("python", version="3.11.9"),
    _package("pytorch", "libtorch 2.4.0", "python", version="2.4.0"),
    _package("torchvision", "pytorch 2.4.*", "python", version="0.19.0"),
)


def _names(packages: tuple[CondaPackage, ...]) -> list[str]:
    return [one.name for one in packages]


def test_the_framework_and_what_depends_on_it_may_give_way() -> None:
    found = {one.name: one.version for one in from_conda.candidates(TORCH, Build())}
    assert found == {"torch": "2.4.0", "torchvision": "0.19.0"}
    other = Build.model_validate({"packages": {"mkl": {}}})
    assert list(from_conda.candidates(TORCH[:3], other)) == []


def test_all_parts_of_the_framework_leave_and_their_own_dependencies_stay() -> None:
    gone = from_conda.leaving(TORCH[:4], Build(), {"torch"}, lock="demo")
    assert _names(gone) == ["libtorch", "pytorch"]


def test_what_depends_on_it_leaves_too_where_it_was_rebuilt() -> None:
    gone = from_conda.leaving(TORCH, Build(), {"torch", "torchvision"}, lock="demo")
    assert _names(gone) == ["libtorch", "pytorch", "torchvision"]


def test_what_depends_on_it_and_was_not_rebuilt_is_named() -> None:
    with pytest.raises(Refused) as caught:
        from_conda.leaving(TORCH, Build(), {"torch"}, lock="demo")
    assert caught.value.message == (
        "demo: conda's libtorch, pytorch cannot give way to the rebuilt torch: conda's "
        "torchvision 0.19.0 needs it"
    )
    assert caught.value.details == "torchvision 0.19.0 0 needs `pytorch 2.4.*`"
    assert "PyPI" in (caught.value.hint or "")


def test_nothing_leaves_without_a_wheel_of_what_the_recipe_names() -> None:
    assert from_conda.leaving(TORCH, Build(), {"torchvision"}, lock="demo") == ()
    named = Build.model_validate({"packages": {"torchvision": {}}})
    assert _names(from_conda.leaving(TORCH, named, {"torch", "torchvision"}, lock="demo")) == [
        "torchvision"
    ]
