"""What compiles a package: the lock's own compiler and nvcc, else the machine's."""

from collections.abc import Sequence

from envbuild.compat.consistency import numbers
from envbuild.compat.model import Facts, Nvcc
from envbuild.compat.subject import part_of
from envbuild.packages import CondaPackage
from envbuild.recipe.compilers import CompilerWish
from envbuild.wheel.model import Toolchain
from envbuild.wheel.readings import Question, Reading

_NAMES = {
    "gcc": ("gxx_linux-64", "gxx_linux-aarch64", "gxx", "cxx-compiler"),
    "clang": ("clangxx_linux-64", "clangxx_linux-aarch64", "clangxx"),
}
_NVCC = ("cuda-nvcc", "cuda-nvcc_linux-64", "cuda-nvcc_linux-aarch64", "nvidia-cuda-nvcc")
_DEFAULT = "gcc"


def needed(
    question: Question, readings: Sequence[Reading], tables: Facts, *, cuda: bool
) -> Toolchain:
    """Return what compiles a package of a lock.

    Args:
        question: What is asked.
        readings: All packages of the lock.
        tables: What is known of nvcc.
        cuda: Whether the package has GPU code.
    """
    wish = question.build.wish
    package = None if wish is None else _compiler(wish, readings)
    release = question.cuda if cuda else None
    nvcc = _nvcc(readings, release) if release else None
    row = next((one for one in tables.nvccs if release and one.cuda == _minor(release)), None)
    return Toolchain(
        compiler=wish.own if wish else _DEFAULT,
        package=package,
        cuda=release,
        cuda_package=nvcc,
        takes=None if row is None else _range(row, wish),
        problem="" if row is None or wish is None else _problem(row, wish),
    )


def _compiler(wish: CompilerWish, readings: Sequence[Reading]) -> str | None:
    """Return the lock's conda package of the compiler in the version that is asked for."""
    for one in readings:
        package = one.package
        if not isinstance(package, CondaPackage) or package.name not in _NAMES[wish.family]:
            continue
        version = tuple(int(part) for part in package.version.split(".") if part.isdigit())
        if version[: len(wish.version)] == wish.version:
            return f"{package.name} {package.version}"
    return None


def _nvcc(readings: Sequence[Reading], release: str) -> str | None:
    """Return the lock's package that has the nvcc of a CUDA release."""
    for one in readings:
        name = part_of(one.package).plain_name
        if name in _NVCC and _minor(one.package.version) == _minor(release):
            return f"{one.package.name} {one.package.version}"
    return None


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _range(row: Nvcc, wish: CompilerWish | None) -> str:
    if wish is not None and wish.family == "clang":
        return f"clang {row.clang_min} to {row.clang_max}"
    return f"gcc {row.gcc_min} to {row.gcc_max}"


def _problem(row: Nvcc, wish: CompilerWish) -> str:
    low, high = row.gcc_min, row.gcc_max
    if wish.family == "clang":
        low, high = row.clang_min, row.clang_max
    if wish.version[0] > high or wish.version < numbers(low)[: len(wish.version)]:
        return f"nvcc of CUDA {row.cuda} takes {_range(row, wish)}, not {wish.own}"
    return ""
