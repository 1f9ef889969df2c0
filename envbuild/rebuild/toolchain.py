"""The compilers that build a wheel: found, asked what they are, and known by their content.

GCC comes from a conda prefix (gxx_linux-64), else from the host by its versioned name; nvcc from
the prefix, else from the host. Nothing of the caller's environment but PATH is looked at.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from envbuild.compat.model import Facts
from envbuild.errors import ToolMissing
from envbuild.rebuild.rust import Rust
from envbuild.recipe import compilers
from envbuild.target import Platform
from envbuild.tools.files import sha256_file
from envbuild.tools.run import Completed, Runner, base_environment, run
from envbuild.wheel import model

_TRIPLETS = {"linux-64": "x86_64-conda-linux-gnu", "linux-aarch64": "aarch64-conda-linux-gnu"}
_PROGRAMS = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}
_PARTS = {"gcc": ("cc1", "cc1plus", "as", "ld"), "clang": ("ld",)}
_CUDA_PARTS = ("cicc", "ptxas", "fatbinary", "cudafe++")
_RELEASE = re.compile(r"release (\d+\.\d+), V(\d+(?:\.\d+)+)")
_ASK_S = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiler:
    """A C and C++ compiler.

    Attributes:
        family: `gcc` or `clang`.
        version: Its version in full (`12.2.0`).
        cc: The C compiler's program.
        cxx: The C++ compiler's.
        origin: The prefix it belongs to, or `host`.
        digests: SHA-256 of the programs that it is made of, by name, sorted.
    """

    family: compilers.Family
    version: str
    cc: Path
    cxx: Path
    origin: str
    digests: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cuda:
    """A CUDA toolkit.

    Attributes:
        version: Version of its nvcc in full (`13.0.88`).
        release: Major and minor version (`13.0`).
        home: The toolkit's folder, which has `bin` and `include`.
        nvcc: nvcc's own program.
        origin: The prefix it belongs to, or `host`.
        digests: SHA-256 of its programs, by name, sorted.
    """

    version: str
    release: str
    home: Path
    nvcc: Path
    origin: str
    digests: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tools:
    """What a wheel is built with.

    Attributes:
        compiler: The C and C++ compiler.
        cuda: The CUDA toolkit, None where none is needed.
        ccache: The program of ccache, None where there is none.
        rust: The Rust toolchain, None where none is needed.
    """

    compiler: Compiler
    cuda: Cuda | None
    ccache: Path | None
    rust: Rust | None = None

    @property
    def digest(self) -> str:
        """What the compilers are, by their content: another one has another compiler cache."""
        return hashlib.sha256(repr([*self.digests]).encode()).hexdigest()

    @property
    def digests(self) -> tuple[tuple[str, str], ...]:
        """SHA-256 of every program, by name."""
        more = (part.digests for part in (self.cuda, self.rust) if part is not None)
        return (*self.compiler.digests, *(row for rows in more for row in rows))


def find(
    wanted: model.Toolchain,
    *,
    prefix: Path | None,
    platform: Platform,
    search: str,
    facts: Facts,
    runner: Runner = run,
) -> Tools:
    """Return the compilers that a plan asks for.

    Args:
        wanted: What it asks for.
        prefix: The recipe's conda half, linked; None without one.
        platform: This machine's.
        search: The user's PATH.
        facts: The tables, for what nvcc takes as host compiler.
        runner: Starts compilers.

    Raises:
        ToolMissing: One is not here, or nvcc does not take that compiler; says what to install.
    """
    wish = compilers.parse(wanted.compiler)
    compiler = _compiler(wish, prefix, platform, search, runner)
    cuda = None
    if wanted.cuda is not None:
        cuda = _cuda(wanted.cuda, prefix, search, runner)
        _check_host_compiler(cuda, compiler, facts)
    found = shutil.which("ccache", path=search)
    return Tools(compiler=compiler, cuda=cuda, ccache=Path(found) if found else None)


def _compiler(
    wish: compilers.CompilerWish,
    prefix: Path | None,
    platform: Platform,
    search: str,
    runner: Runner,
) -> Compiler:
    seen: list[str] = []
    for cc, cxx, origin in _candidates(wish, prefix, platform, search):
        version = _printed(runner, [f"{cc}", "-dumpfullversion", "-dumpversion"]).strip()
        if not cxx.exists():
            seen.append(f"{cc} has no {cxx.name} beside it")
        elif not _is(version, wish.version):
            seen.append(f"{cc} is {wish.family} {version or 'of an unknown version'}")
        else:
            digests = _digests(cc, cxx, _PARTS[wish.family], runner)
            return Compiler(
                family=wish.family,
                version=version,
                cc=cc,
                cxx=cxx,
                origin=origin,
                digests=digests,
            )
    major = wish.version[0]
    names = f"gcc-{major} and g++-{major}" if wish.family == "gcc" else f"clang-{major}"
    message = f"{wish.own} is not here"
    message += f": {'; '.join(seen)}" if seen else ""
    conda = "gxx" if wish.family == "gcc" else "clangxx"
    hint = f"install {names}, or add `{conda}_{platform} {major}.*` to the recipe's conda packages"
    raise ToolMissing(message, hint=hint)


def _candidates(
    wish: compilers.CompilerWish, prefix: Path | None, platform: Platform, search: str
) -> Iterator[tuple[Path, Path, str]]:
    """Yield C and C++ compilers and where they come from, the first choice first."""
    cc_name, cxx_name = _PROGRAMS[wish.family]
    if prefix is not None:
        for start in (f"{_TRIPLETS[platform]}-", ""):
            cc = prefix / "bin" / f"{start}{cc_name}"
            if cc.exists():
                yield cc, cc.with_name(f"{start}{cxx_name}"), f"{prefix}"
    for ending in (f"-{wish.version[0]}", ""):
        if found := shutil.which(f"{cc_name}{ending}", path=search):
            yield Path(found), Path(found).with_name(f"{cxx_name}{ending}"), "host"


def _is(version: str, wanted: tuple[int, ...]) -> bool:
    numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
    return numbers[: len(wanted)] == wanted


def _digests(
    cc: Path, cxx: Path, parts: Sequence[str], runner: Runner
) -> tuple[tuple[str, str], ...]:
    """Return the digests of the drivers and of what they run; a driver alone says little."""
    found = {cc.name: sha256_file(cc), cxx.name: sha256_file(cxx)}
    for part in parts:
        path = Path(_printed(runner, [f"{cxx}", f"-print-prog-name={part}"]).strip())
        if not path.is_absolute():
            path = Path(shutil.which(f"{path}", path=base_environment()["PATH"]) or path)
        if path.is_file():
            found[part] = sha256_file(path)
    return tuple(sorted(found.items()))


def _cuda(wanted: str, prefix: Path | None, search: str, runner: Runner) -> Cuda:
    seen: list[str] = []
    for nvcc, origin in _nvccs(wanted, prefix, search):
        printed = _printed(runner, [f"{nvcc}", "--version"])
        match = _RELEASE.search(printed)
        home = _home(nvcc, runner)
        if match is None or home is None:
            seen.append(f"{nvcc} does not say what it is")
        elif match[1].split(".")[: len(wanted.split("."))] != wanted.split("."):
            seen.append(f"{nvcc} is of CUDA {match[1]}")
        else:
            own = home / "bin/nvcc"
            parts = [own, *(_cuda_part(home, name) for name in _CUDA_PARTS)]
            return Cuda(
                version=match[2],
                release=match[1],
                home=home,
                nvcc=own,
                origin=origin,
                digests=tuple((path.name, sha256_file(path)) for path in parts if path.is_file()),
            )
    message = f"nvcc of CUDA {wanted} is not here"
    message += f": {'; '.join(seen)}" if seen else ""
    hint = f"install CUDA {wanted}, or add `cuda-nvcc {wanted}.*` to the recipe's conda packages"
    raise ToolMissing(message, hint=hint)


def _nvccs(wanted: str, prefix: Path | None, search: str) -> Iterator[tuple[Path, str]]:
    if prefix is not None and (prefix / "bin/nvcc").exists():
        yield prefix / "bin/nvcc", f"{prefix}"
    found = [Path(f"/usr/local/cuda-{wanted}/bin/nvcc"), shutil.which("nvcc", path=search)]
    found.append(Path("/usr/local/cuda/bin/nvcc"))
    for one in dict.fromkeys(Path(path) for path in found if path):
        if one.exists():
            yield one, "host"


def _home(nvcc: Path, runner: Runner) -> Path | None:
    """Return the toolkit of an nvcc, which may be a script or a link: it says so in a dry run."""
    done = _asked(runner, [f"{nvcc}", "-dryrun", "-E", "-x", "cu", "/dev/null"])
    for line in (done.stderr + done.stdout).splitlines():
        name, _, value = line.removeprefix("#$ ").partition("=")
        if name == "TOP" and value:
            home = Path(value).resolve()
            return home if (home / "bin/nvcc").is_file() else None
    return None


def _cuda_part(home: Path, name: str) -> Path:
    return home / ("nvvm/bin" if name == "cicc" else "bin") / name


def _check_host_compiler(cuda: Cuda, compiler: Compiler, facts: Facts) -> None:
    """Refuse a host compiler outside nvcc's range now: nvcc does so after the first files.

    Raises:
        ToolMissing: It is outside.
    """
    row = next((one for one in facts.nvccs if one.cuda == cuda.release), None)
    if row is None:
        return
    numbers = tuple(int(part) for part in compiler.version.split("."))
    gcc = compiler.family == "gcc"
    least, newest = (row.gcc_min, row.gcc_max) if gcc else (row.clang_min, row.clang_max)
    if numbers[0] > newest or numbers < tuple(map(int, least.split("."))):
        message = (
            f"nvcc of CUDA {cuda.release} takes {compiler.family} {least} to {newest}, "
            f"not {compiler.version}"
        )
        hint = f"set build.compiler to {compiler.family} {newest}, or take another CUDA"
        raise ToolMissing(message, hint=hint)


def _printed(runner: Runner, argv: Sequence[str]) -> str:
    return _asked(runner, argv).stdout


def _asked(runner: Runner, argv: Sequence[str]) -> Completed:
    return runner(argv, env=base_environment(), check=False, timeout_s=_ASK_S)
