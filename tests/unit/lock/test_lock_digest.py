"""What must and what must not change the two digests."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.lock.strategies import conda_packages, locks
from unit.lock.test_lock_files import sample, universal

from envbuild.lock.digest import asked, digest_of, environment_digest, solve_digest
from envbuild.lock.model import Lock
from envbuild.packages import CondaPackage
from envbuild.recipe.load import loads
from envbuild.recipe.model import Recipe

BASE = """
name: r
description: one
target:
  platforms: [linux-64, linux-aarch64]
  gpus: [h100, a100]
  driver: ">=550.54.14,<600"
triangle: {cuda: "12.4", framework: pytorch ==2.4.0}
python: ">=3.10,<3.12"
channels: [pytorch, conda-forge]
conda: [numpy >=1.26 , "pytorch::pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0"]
indexes:
  - {name: company, url: "https://index.example/simple/", packages: [Ours, Other]}
pypi: ["Transformers[torch, sentencepiece] <5, >=4", accelerate]
link_scripts: [pytorch]
build: {compiler: gcc 12, cuda_archs: ["9.0"]}
cutoff: 14d
"""

SAME = {
    "a description": ("description: one", "description: two # really"),
    "the order of platforms": ("[linux-64, linux-aarch64]", "[linux-aarch64, linux-64]"),
    "the order of cards": ("[h100, a100]", "[A100, h100]"),
    "spaces in a range": (">=550.54.14,<600", "<600, >= 550.54.14"),
    "spaces in the framework": ("pytorch ==2.4.0", "PyTorch==2.4.0"),
    "the order of a range": (">=3.10,<3.12", "<3.12,>=3.10"),
    "spaces in a spec": ("numpy >=1.26 ,", "NumPy>=1.26,"),
    "brackets": ("numpy >=1.26 ,", "'numpy[version=\">=1.26\"]',"),
    "the case of a PyPI name": ("accelerate]", "Accelerate]"),
    "dashes of a PyPI name": ("[Ours, Other]", "[other, OURS]"),
    "the order of extras": ("[torch, sentencepiece] <5, >=4", "[sentencepiece,torch]>=4,<5"),
    "a trailing slash": ("/simple/", "/simple"),
    "a smoke test": ("cutoff:", "smoke: {imports: [torch]}\ncutoff:"),
    "an allowed finding": ("cutoff:", "allow: [{code: x, reason: y, until: 2030-01-01}]\ncutoff:"),
    "a service": ("cutoff:", "services: {serve: {exec: python -m serve}}\ncutoff:"),
    "a slice": ("cutoff:", "slice: {cpu_weight: 50}\ncutoff:"),
    "a default that is written": ("  gpus:", "  glibc: '2.28'\n  gpus:"),
}

DIFFERENT = {
    "a platform": ("[linux-64, linux-aarch64]", "[linux-64]"),
    "a card": ("[h100, a100]", "[h100]"),
    "glibc": ("  gpus:", "  glibc: '2.31'\n  gpus:"),
    "the driver": ("<600", "<610"),
    "CUDA": ('"12.4", ', '"12.6", '),
    "the framework": ("==2.4.0}", "==2.4.1}"),
    "python": ("<3.12", "<3.13"),
    "the order of channels": ("[pytorch, conda-forge]", "[conda-forge, pytorch]"),
    "a spec": (">=1.26 ", ">=1.27 "),
    "a build": ("cudnn9.1.0_0", "cudnn9.1.0_1"),
    "a channel": ("pytorch::pytorch", "conda-forge::pytorch"),
    "an index's address": ("index.example", "other.example"),
    "an index's packages": ("[Ours, Other]", "[Ours]"),
    "an index's cutoff": ("[Ours, Other]}", "[Ours, Other], cutoff: none}"),
    "an extra": ("[torch, sentencepiece]", "[torch]"),
    "a marker": ("accelerate]", "accelerate ; python_version < '3.12']"),
    "a hash": ("accelerate]", f"accelerate ==1.0 --hash=sha256:{'0' * 64}]"),
    "a requirement": (", accelerate]", "]"),
    "a link script": ("[pytorch]\nbuild", "[]\nbuild"),
    "the compiler": ("gcc 12", "gcc 13"),
    "an architecture": ('"9.0"', '"8.0"'),
    "the cutoff": ("14d", "15d"),
}


def recipe(text: str) -> Recipe:
    return loads(text, source="r.yaml").recipe


def changed(name: str, cases: dict[str, tuple[str, str]]) -> Recipe:
    old, new = cases[name]
    assert BASE.count(old) == 1, name
    return recipe(BASE.replace(old, new))


@pytest.mark.parametrize("name", SAME)
def test_another_spelling_is_the_same(name: str) -> None:
    assert asked(changed(name, SAME)) == asked(recipe(BASE))


@pytest.mark.parametrize("name", DIFFERENT)
def test_another_wish_is_another_digest(name: str) -> None:
    assert solve_digest(changed(name, DIFFERENT)) != solve_digest(recipe(BASE))


def test_no_address_of_an_index_is_kept() -> None:
    assert "example" not in str(asked(recipe(BASE)))


@given(st.data())
def test_order_counts_nowhere_but_in_channels(data: st.DataObject) -> None:
    base = recipe(BASE)
    shuffled = base.model_copy(
        update={
            "conda": tuple(data.draw(st.permutations(base.conda))),
            "pypi": tuple(data.draw(st.permutations(base.pypi))),
            "link_scripts": tuple(data.draw(st.permutations(base.link_scripts))),
        }
    )
    assert solve_digest(shuffled) == solve_digest(base)


def environment(lock: Lock, platform: Any = "linux-64", **told: Any) -> str:  # noqa: ANN401
    settings_ = {"interpreter": None, "python": "3.11.7", "store_format": 1} | told
    return environment_digest(lock, platform, **settings_)


def test_what_the_environment_digest_does_not_see() -> None:
    lock = sample()
    digest = environment(lock)
    assert len(digest) == 64
    assert environment(replace(lock, solve_digest="0" * 64, name="other", asked=())) == digest
    assert environment(replace(lock, channels=(), uncut_indexes=())) == digest
    assert environment(replace(lock, cutoff=lock.cutoff.replace(year=2020))) == digest
    half = lock.platforms[0]
    told = tuple(replace(package, via=("x",)) for package in half.pip)
    assert environment(replace(lock, platforms=(replace(half, pip=told),))) == digest
    other = replace(half, platform="linux-aarch64", conda=(), pip=())
    assert environment(replace(lock, platforms=(half, other))) == digest


def test_what_the_environment_digest_sees() -> None:
    lock = sample()
    half = lock.platforms[0]
    digest = environment(lock)
    others = [
        environment(lock, interpreter="0" * 64),
        environment(lock, store_format=2),
        environment(replace(lock, compiler="gcc 13")),
        environment(replace(lock, compiler=None)),
        environment(replace(lock, link_scripts=())),
        environment(replace(lock, platforms=(replace(half, pip=half.pip[1:]),))),
        environment(replace(lock, platforms=(replace(half, conda=half.conda[1:]),))),
    ]
    weak, strong = half.conda
    changed_halves = (
        (replace(weak, md5="9" * 32), strong),
        (replace(weak, size=7), strong),
        (weak, replace(strong, sha256="9" * 64)),
        (weak, replace(strong, url=strong.url.replace("python-3.10", "python-3.11"))),
    )
    others += [
        environment(replace(lock, platforms=(replace(half, conda=conda),)))
        for conda in changed_halves
    ]
    assert len({digest, *others}) == len(others) + 1


def test_an_md5_beside_a_sha256_does_not_count() -> None:
    lock = sample()
    half = lock.platforms[0]
    conda = (half.conda[0], replace(half.conda[1], md5="9" * 32))
    assert environment(replace(lock, platforms=(replace(half, conda=conda),))) == environment(lock)


def test_only_lines_for_this_python_count() -> None:
    lock = universal()
    old, new = environment(lock, python="3.11.7"), environment(lock, python="3.12.1")
    assert old != new
    assert environment(lock, python="3.13.0") == new
    half = lock.platforms[0]
    moved = replace(half, pip=(half.pip[0], replace(half.pip[1], version="2.6.0")))
    assert environment(replace(lock, platforms=(moved,)), python="3.11.7") == old
    assert environment(replace(lock, platforms=(moved,)), python="3.12.1") != new


def test_a_platform_that_is_not_covered() -> None:
    with pytest.raises(KeyError):
        environment(sample(), "linux-aarch64")


@given(locks())
@settings(max_examples=15, deadline=None)
def test_the_digest_is_of_the_lock_alone(lock: Lock) -> None:
    platform = lock.platforms[0].platform
    again = replace(lock, platforms=lock.platforms[:1], uncut_indexes=(), asked=())
    assert environment(lock, platform) == environment(again, platform)
    assert digest_of(lock.asked) == lock.solve_digest


@given(st.lists(conda_packages("linux-64"), min_size=2, max_size=2, unique_by=lambda one: one.md5))
@settings(max_examples=15, deadline=None)
def test_another_package_is_another_environment(packages: list[CondaPackage]) -> None:
    lock = sample()
    one, other = (
        environment(replace(lock, platforms=(replace(lock.platforms[0], conda=(package,)),)))
        for package in packages
    )
    same = {(package.filename, package.sha256 or package.md5) for package in packages}
    assert (one == other) == (len(same) == 1)
