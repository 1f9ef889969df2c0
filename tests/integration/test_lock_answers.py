"""Whether a lock answers its recipe: every code once, with the line that is not answered."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from envbuild.findings import Severity
from envbuild.lock import answers, freeze
from envbuild.lock.model import Lock, PlatformLock
from envbuild.packages import CondaPackage, PipPackage
from envbuild.pipeline.lock import check_lock
from envbuild.recipe.load import LoadedRecipe, loads
from envbuild.solve.solution import PlatformSolution, Solution
from envbuild.target import PLATFORMS

ALIAS = "https://conda.anaconda.org"
CUTOFF = datetime(2026, 12, 1, tzinfo=UTC)
RECIPE = """\
name: r
target: {platforms: [linux-64], glibc: "2.28", cuda: "12.4"}
triangle: {cudnn: "9.1"}
python: "3.11"
channels: [pytorch, conda-forge]
conda:
  - numpy >=1.26,<2
  - pytorch::pytorch 2.4.0 py3.11_cuda12.4*
indexes:
  - {name: company, url: "http://localhost/simple", packages: [ours]}
pypi:
  - ours
  - torch >=2.4
  - accelerate[deepspeed] >=1 ; python_version >= "3.10"
  - tomli ; python_version < "3.11"
build: {compiler: gcc 12}
link_scripts: [pytorch]
cutoff: 14d
"""


def conda(
    name: str,
    version: str,
    build: str,
    *depends: str,
    channel: str = "conda-forge",
    subdir: str = "linux-64",
) -> CondaPackage:
    return CondaPackage(
        name=name,
        version=version,
        build=build,
        url=f"{ALIAS}/{channel}/{subdir}/{name}-{version}-{build}.conda",
        sha256="a" * 64,
        md5="b" * 32,
        depends=depends,
    )


CONDA = (
    conda("libgcc", "14.2.0", "h1_0", "__glibc >=2.17,<3.0.a0"),
    conda("numpy", "1.26.4", "py311_0", "python >=3.11,<3.12.0a0", "python_abi 3.11.* *_cp311"),
    conda("python", "3.11.9", "h955ad1f_0_cpython", "libgcc >=13"),
    conda("python_abi", "3.11", "5_cp311"),
    conda(
        "pytorch",
        "2.4.0",
        "py3.11_cuda12.4_cudnn9.1.0_0",
        "__cuda >=12",
        "numpy",
        channel="pytorch",
    ),
    conda("tzdata", "2026a", "0", subdir="noarch"),
)
PIP = (
    PipPackage(name="accelerate", version="1.2", hashes=("c" * 64,), via=("recipe",)),
    PipPackage(name="ours", version="1", hashes=("d" * 64,), index="company", via=("recipe",)),
)


def locked(loaded: LoadedRecipe) -> Lock:
    half = PlatformSolution(platform="linux-64", conda=CONDA, pip=PIP)
    return freeze.freeze(loaded.recipe, Solution(platforms=(half,), cutoff=CUTOFF))


def recipe(text: str = RECIPE) -> LoadedRecipe:
    return loads(text, source="recipes/r.yaml")


def told(lock: Lock, loaded: LoadedRecipe) -> list[str]:
    findings = check_lock(lock, loaded)
    assert all(one.severity is Severity.ERROR for one in findings)
    assert all(one.hint == "envbuild lock r" for one in findings)
    return [f"{one.where}: {one.code}: {one.what}" for one in findings]


def test_a_lock_answers_its_own_recipe() -> None:
    assert told(locked(recipe()), recipe()) == []


def test_what_decides_no_solve_makes_no_lock_stale() -> None:
    more = "services: {a: {exec: python}}\nsmoke: {imports: [numpy]}\ndescription: x # comment\n"
    assert told(locked(recipe()), recipe(RECIPE + more)) == []


CHANGES: dict[str, tuple[str, str, list[str]]] = {
    "a tighter spec": ("numpy >=1.26,<2", "numpy >=1.27,<2", ["lock-conda-unmet"]),
    "a looser spec": ("numpy >=1.26,<2", "numpy >=1.26,<3", ["lock-conda"]),
    "another channel for one": (
        "pytorch::pytorch 2.4.0",
        "conda-forge::pytorch 2.4.0",
        ["lock-conda-unmet"],
    ),
    "a new conda package": ("  - numpy", "  - scipy\n  - numpy", ["lock-conda-unmet"]),
    "one that came along": ("  - numpy", "  - libgcc\n  - numpy", ["lock-conda"]),
    "one less": ("  - numpy >=1.26,<2\n", "", ["lock-conda"]),
    "another Python": ('python: "3.11"', 'python: "3.12"', ["lock-python"]),
    "Python said otherwise": ('python: "3.11"', 'python: ">=3.11"', ["lock-python"]),
    "a new PyPI package": ("  - ours", "  - ours\n  - requests", ["lock-pypi-unmet"]),
    "a version that conda has not": ("torch >=2.4", "torch >=2.5", ["lock-pypi-unmet"]),
    "a version that PyPI has not": ("] >=1 ;", "] >=2 ;", ["lock-pypi-unmet"]),
    "an extra less": ("accelerate[deepspeed]", "accelerate", ["lock-pypi"]),
    "a marker that holds now": (
        'tomli ; python_version < "3.11"',
        'tomli ; python_version < "3.12"',
        ["lock-pypi-unmet"],
    ),
    "another order of channels": (
        "[pytorch, conda-forge]",
        "[conda-forge, pytorch]",
        ["lock-channels"],
    ),
    "another platform": ("[linux-64]", "[linux-64, linux-aarch64]", ["lock-platform"]),
    "an older glibc": ('"2.28"', '"2.12"', ["lock-virtual"]),
    "a newer glibc": ('"2.28"', '"2.31"', ["lock-target"]),
    "older CUDA": ('cuda: "12.4"', 'cuda: "11.8"', ["lock-virtual"]),
    "no CUDA": (', cuda: "12.4"', "", ["lock-virtual"]),
    "the triangle": ('cudnn: "9.1"', 'cudnn: "9.5"', ["lock-triangle"]),
    "the compiler": ("gcc 12", "gcc 13", ["lock-compiler"]),
    "how wheels are built": ("gcc 12}", 'gcc 12, cuda_archs: ["9.0"]}', ["lock-build"]),
    "a link script": ("[pytorch]\ncutoff", "[]\ncutoff", ["lock-link-scripts"]),
    "the cutoff": ("14d", "2026-11-30", ["lock-cutoff"]),
    "no cutoff": ("cutoff: 14d\n", "", ["lock-cutoff"]),
    "an index's address": ("localhost/simple", "localhost/other", ["lock-indexes"]),
    "an index's packages": ("[ours]}", "[ours, accelerate]}", ["lock-index", "lock-indexes"]),
    "an index's name": (
        "name: company",
        "name: other",
        ["lock-index", "lock-indexes", "lock-indexes"],
    ),
    "the host's Python": (
        RECIPE[RECIPE.index("channels") : RECIPE.index("indexes")],
        "channels: [host]\n",
        ["lock-channels", "lock-python"],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_recipe_is_named_by_line(name: str, golden: Callable[[str, str], None]) -> None:
    old, new, codes = CHANGES[name]
    text = RECIPE.replace("link_scripts: [pytorch]\n", "") if "host" in name else RECIPE
    assert text.count(old) == 1
    found = told(locked(recipe(text)), recipe(text.replace(old, new)))
    assert [line.split(": ")[1] for line in found][: len(codes)] == codes
    assert len(found) == len(codes) or "host" in name
    slug = name.lower().replace("'", "").replace(" ", "-")
    golden(f"lock/answers/{slug}.txt", "\n".join(found) + "\n")


def half_of(lock: Lock) -> PlatformLock:
    return lock.platforms[0]


def with_half(lock: Lock, **changes: tuple[CondaPackage, ...] | tuple[PipPackage, ...]) -> Lock:
    half = half_of(lock)
    return replace(
        lock,
        platforms=(
            PlatformLock(
                platform=half.platform,
                conda=changes.get("conda", half.conda),  # type: ignore[arg-type]
                pip=changes.get("pip", half.pip),  # type: ignore[arg-type]
            ),
        ),
    )


def without(name: str) -> tuple[CondaPackage, ...]:
    return tuple(one for one in CONDA if one.name != name)


DAMAGE: dict[str, tuple[Callable[[Lock], Lock], str, str]] = {
    "another name": (lambda lock: replace(lock, name="s"), "lock-name", "has s"),
    "another compiler": (
        lambda lock: replace(lock, compiler=None),
        "lock-compiler",
        "the lock has none",
    ),
    "another digest": (
        lambda lock: replace(lock, solve_digest="0" * 64),
        "lock-digest",
        "not the one of its own",
    ),
    "a missing dependency": (
        lambda lock: with_half(lock, conda=without("python_abi")),
        "lock-depends",
        "numpy 1.26.4 needs `python_abi 3.11.* *_cp311`, the lock has no such package",
    ),
    "an unmet dependency": (
        lambda lock: with_half(lock, conda=(*without("libgcc"), conda("libgcc", "12.1", "h1_0"))),
        "lock-depends",
        "python 3.11.9 needs `libgcc >=13`, the lock has 12.1 h1_0",
    ),
    "a foreign channel": (
        lambda lock: with_half(
            lock, conda=(*without("tzdata"), conda("tzdata", "1", "0", channel="mine"))
        ),
        "lock-channel",
        f"tzdata come from {ALIAS}/mine, no channel of the recipe",
    ),
    "no Python": (
        lambda lock: with_half(lock, conda=without("python")),
        "lock-no-python",
        "no Python that",
    ),
    "in both halves": (
        lambda lock: with_half(
            lock, pip=(*PIP, PipPackage(name="torch", version="2.5", hashes=("e" * 64,)))
        ),
        "lock-twice",
        "torch is in both halves (conda's pytorch 2.4.0, PyPI's 2.5)",
    ),
    "another index": (
        lambda lock: with_half(lock, pip=(PIP[0], replace(PIP[1], index=None))),
        "lock-index",
        "ours comes from the default index in the lock, from index company in the recipe",
    ),
    "another Python": (
        lambda lock: replace(lock, host_python=">=3.11"),
        "lock-python",
        "host's Python >=3.11",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_lock_that_was_changed_is_seen_through(name: str) -> None:
    change, code, text = DAMAGE[name]
    found = told(change(locked(recipe())), recipe())
    assert any(f": {code}: " in line and text in line for line in found), found


HOST = """\
name: r
target: {platforms: [linux-64, linux-aarch64]}
python: ">=3.11,<3.15"
channels: [host]
pypi: [numpy >=2, "tomli ; python_version < '3.12'", "pywin32 ; sys_platform == 'win32'"]
"""


def universal(*pip: PipPackage) -> Lock:
    return freeze.freeze(
        recipe(HOST).recipe,
        Solution(
            platforms=tuple(
                PlatformSolution(platform=platform, conda=(), pip=pip) for platform in PLATFORMS
            ),
            cutoff=CUTOFF,
        ),
    )


def line(name: str, version: str, marker: str | None = None) -> PipPackage:
    return PipPackage(name=name, version=version, hashes=("a" * 64,), marker=marker)


BELOW, ABOVE = "python_full_version < '3.12'", "python_full_version >= '3.12'"


def test_a_universal_lock_answers_for_every_python() -> None:
    lock = universal(
        line("numpy", "2.4.6", BELOW), line("numpy", "2.5.4", ABOVE), line("tomli", "2", BELOW)
    )
    assert told(lock, recipe(HOST)) == []
    for missing, python in ((("numpy", ABOVE), "3.12.0"), (("tomli", BELOW), "3.11.0")):
        pip = lock.platforms[0].pip
        less = universal(*(one for one in pip if (one.name, one.marker) != missing))
        found = told(less, recipe(HOST))
        assert len(found) == 2
        assert all("lock-pypi-unmet" in text and f"for Python {python}" in text for text in found)


def test_another_range_of_the_hosts_python() -> None:
    lock = universal(line("numpy", "2.4.6"), line("tomli", "2", BELOW))
    (found,) = told(lock, recipe(HOST.replace("3.15", "3.14")))
    assert found.startswith("recipes/r.yaml:3:9: lock-python: ")
    assert found.endswith("host's Python >=3.11,<3.14, the lock on the host's Python >=3.11,<3.15")


def test_the_engine_is_asked_once() -> None:
    asked: list[int] = []

    def matches(pairs: object) -> list[bool]:
        assert isinstance(pairs, list)
        asked.append(len(pairs))
        return [True] * len(pairs)

    loaded = recipe()
    assert answers.check(locked(loaded), loaded, matches=matches, virtual=lambda _: ()) != ()
    assert len(asked) == 1
