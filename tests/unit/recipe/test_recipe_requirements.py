"""PyPI requirements: taken apart, refused with a reason, and which of them collide."""

import pytest

from envbuild.recipe.model import Recipe
from envbuild.recipe.requirements import collide, name_of, parse, pip_needs

HASH = "7aada352fb0c7f5538c4fafeddf314d3a6a92ee8e2b1de70482329e42de70301"


@pytest.mark.parametrize(
    ("written", "requirement", "hashes"),
    [
        ("numpy", "numpy", 0),
        ("jax[cuda12] ==0.4.28", "jax[cuda12]==0.4.28", 0),
        (f"flit-core === 3.9.0 --hash=sha256:{HASH}", "flit-core===3.9.0", 1),
        (f"a==1 ; python_version < '3.11' --hash=sha256:{HASH.upper()} --hash sha256:{'0' * 64}",
         'a==1; python_version < "3.11"', 2),
        ("a >=1, <2 ; sys_platform == 'linux' and extra == 'x'",
         'a<2,>=1; sys_platform == "linux" and extra == "x"', 0),
        ("A.b_c", "A.b_c", 0),
    ],
)  # fmt: skip
def test_taken_apart(written: str, requirement: str, hashes: int) -> None:
    need = parse(written)
    assert str(need.requirement) == requirement
    assert len(need.hashes) == hashes
    assert all(digest == digest.lower() for digest in need.hashes)
    assert "--hash" not in need.text


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "expected a requirement such as"),
        ("a b", "expected a requirement such as"),
        ("a >>1", "expected a requirement such as"),
        ("a ; ", "the marker '' cannot be read"),
        ("a ; python_version < 3.11", "the marker 'python_version < 3.11' cannot be read"),
        ("a ; sys_platfrom == 'x'", "unknown name 'sys_platfrom'; did you mean sys_platform"),
        ("a ; python_verison < '3'", "did you mean python_version"),
        ("a @ https://a.test/a.whl", "asked for at an address"),
        ("git+https://a.test/a", "an address cannot be served again"),
        ("https://a.test/a.whl", "an address cannot be served again"),
        ("./a", "a path exists only on this machine"),
        ("/srv/a", "a path exists only on this machine"),
        ("a-1.0-py3-none-any.whl", "a file exists only on this machine"),
        ("-e .", "an editable project has no release"),
        ("--pre", "an option of pip is no requirement"),
        ("a --hash=md5:abc", "expected --hash=sha256:…, found the algorithm 'md5'"),
        ("a --hash=sha256:abc", "a SHA-256 has 64 hexadecimal digits"),
    ],
)
def test_refused(written: str, reason: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse(written)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a.b", "A-B >1", True),
        ("a ; python_version < '3.11'", "a", True),
        ("a ; python_version < '3.11'", "a ; python_version >= '3.11'", False),
        ("a ; python_version <= '3.11'", "a ; python_version >= '3.11'", True),
        ("a ; python_full_version < '3.11.4'", "a ; python_full_version >= '3.11.4'", False),
        ("a ; python_full_version <= '3.11.4'", "a ; python_full_version >= '3.11.4'", True),
        ("a ; platform_machine == 'x86_64'", "a ; platform_machine == 'aarch64'", False),
        ("a ; sys_platform == 'win32'", "a ; sys_platform == 'win32'", False),
    ],
)
def test_collide(one: str, other: str, *, expected: bool) -> None:
    assert collide(parse(one), parse(other)) is expected
    assert collide(parse(other), parse(one)) is expected


def test_needs_of_a_recipe_keep_their_place() -> None:
    needs = pip_needs(
        Recipe(name="x", pypi=("a ; python_version < '3.11'", f"b --hash=sha256:{HASH}"))
    )
    assert [(need.name, need.path, need.hashes) for need in needs] == [
        ("a", ("pypi", 0), ()),
        ("b", ("pypi", 1), (HASH,)),
    ]
    marker = needs[0].requirement.marker
    assert marker is not None
    assert not marker.evaluate({"python_version": "3.11"})
    assert marker.evaluate({"python_version": "3.10"})


def test_name_of() -> None:
    assert name_of("My_Pkg[x]>=1") == "my-pkg"
    assert name_of("./x") is None
