"""What a build sees: every variable of it, none of the caller's; and scripts around compilers.

The scripts stand before the compilers because builds differ in which variables they heed: each
compiler gets the flags without which two builds differ, and ccache before it where it is here.
nvcc puts a random number into symbols and the name of a temporary file into each object: with
`--keep` in a folder of its own per call, both are the same each time.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from envbuild.errors import UsageProblem
from envbuild.rebuild.toolchain import Tools
from envbuild.tools.run import base_environment
from envbuild.wheel.model import Rebuild

PLACE = Path("/tmp/envbuild-build")  # noqa: S108 - only a place to mount at
"""Where every build sees its folder, whatever that is."""

MAPPED = "/usr/src/envbuild"
"""What that is called in debug information and messages of the result."""

_ARCH = re.compile(r"(?P<major>\d{1,2})\.(?P<minor>\d)(?P<suffix>[af]?)(?P<ptx>\+PTX)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where a build's things are, as the build sees them.

    Attributes:
        root: `PLACE`, or the folder itself where the kernel refuses a sandbox.
    """

    root: Path

    @property
    def sources(self) -> Path:
        """The sources, which may have one more folder in them."""
        return self.root / "src"

    @property
    def environment(self) -> Path:
        """The virtual environment."""
        return self.root / "env"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.environment / "bin/python"

    @property
    def scripts(self) -> Path:
        """The scripts around compilers."""
        return self.root / "tools"

    @property
    def temporary(self) -> Path:
        """For temporary files."""
        return self.root / "tmp"

    @property
    def home(self) -> Path:
        """An empty home directory."""
        return self.root / "home"

    @property
    def output(self) -> Path:
        """Where the wheel is put."""
        return self.root / "out"

    @property
    def crates(self) -> Path:
        """The crates of Rust sources."""
        return self.root / "crates"

    @property
    def cuda(self) -> Path:
        """A CUDA toolkit whose nvcc is our script."""
        return self.root / "cuda"


@dataclass(frozen=True, kw_only=True, slots=True)
class CompilerCache:
    """ccache for one toolchain.

    Attributes:
        program: ccache.
        folder: Its cache, of this toolchain alone.
        enabled: Whether it may give an object from there.
    """

    program: Path
    folder: Path
    enabled: bool = True


def architectures(wanted: tuple[str, ...]) -> tuple[str, str]:
    """Return compute capabilities as PyTorch's builds and as CMake read them.

    Args:
        wanted: As a recipe writes them: `9.0`, `9.0a`, `9.0+PTX`.

    Returns:
        Such as `8.9;9.0` and `89;90`.

    Raises:
        UsageProblem: One is none.
    """
    found = []
    for text in wanted:
        match = _ARCH.fullmatch(text)
        if match is None:
            message = f"{text!r} is no compute capability"
            raise UsageProblem(message, hint="write them as 9.0, 9.0a, 10.0f or 9.0+PTX")
        found.append((int(match["major"]), int(match["minor"]), match["suffix"], text))
    found.sort()
    torch = ";".join(text for *_, text in found)
    numbers = dict.fromkeys(f"{major}{minor}{suffix}" for major, minor, suffix, _ in found)
    return torch, ";".join(numbers)


def variables(
    rebuild: Rebuild,
    tools: Tools,
    layout: Layout,
    *,
    jobs: int,
    epoch: int,
    prefix: Path | None,
    cache: CompilerCache | None,
) -> dict[str, str]:
    """Return the whole environment of a build.

    Args:
        rebuild: What is built.
        tools: The compilers.
        layout: Where things are.
        jobs: How many compilers at a time.
        epoch: Time of the sources, in seconds since 1970.
        prefix: The recipe's conda half, linked; None without one.
        cache: The compiler cache, or None.
    """
    cc, cxx = layout.scripts / "gcc", layout.scripts / "g++"
    if tools.compiler.family == "clang":
        cc, cxx = layout.scripts / "clang", layout.scripts / "clang++"
    path = [layout.scripts, layout.environment / "bin"]
    path += [prefix / "bin"] if prefix is not None else []
    base = base_environment(":".join([*map(str, path), base_environment()["PATH"]]))
    flags = " ".join([*_abi_flags(rebuild), *rebuild.flags])
    found = {
        **base,
        "HOME": f"{layout.home}",
        "TMPDIR": f"{layout.temporary}",
        "SOURCE_DATE_EPOCH": f"{epoch}",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PIP_NO_INDEX": "1",
        "UV_OFFLINE": "1",
        "CARGO_NET_OFFLINE": "true",
        "GIT_CONFIG_COUNT": "1",  # the sources may be another user's in a namespace
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "CC": f"{cc}",
        "CXX": f"{cxx}",
        "CFLAGS": flags,
        "CXXFLAGS": flags,
        "MAX_JOBS": f"{jobs}",
        "CMAKE_BUILD_PARALLEL_LEVEL": f"{jobs}",
        "CARGO_BUILD_JOBS": f"{jobs}",
        "MAKEFLAGS": f"-j{jobs}",
    }
    found |= _cuda_variables(rebuild, tools, layout, f"{cxx}")
    found |= _cache_variables(cache, layout)
    return _with_own(found, rebuild)


def _abi_flags(rebuild: Rebuild) -> list[str]:
    if rebuild.abi is None:
        return []
    return [f"-D_GLIBCXX_USE_CXX11_ABI={1 if rebuild.abi == 'new' else 0}"]


def _cuda_variables(rebuild: Rebuild, tools: Tools, layout: Layout, cxx: str) -> dict[str, str]:
    if tools.cuda is None:
        return {}
    torch, cmake = architectures(rebuild.cuda_archs)
    found = {
        "CUDAHOSTCXX": cxx,
        "CUDACXX": f"{layout.cuda}/bin/nvcc",
        "CUDA_HOME": f"{layout.cuda}",
        "CUDA_PATH": f"{layout.cuda}",
    }
    if torch:
        found["TORCH_CUDA_ARCH_LIST"] = torch
        found["CUDAARCHS"] = cmake
        found["CMAKE_ARGS"] = f"-DCMAKE_CUDA_ARCHITECTURES={cmake}"
    return found


def _cache_variables(cache: CompilerCache | None, layout: Layout) -> dict[str, str]:
    """Return what keeps a compiler cache apart: keyed by the compiler's content, own settings."""
    if cache is None:
        return {}
    found = {
        "CCACHE_DIR": f"{cache.folder}",
        "CCACHE_CONFIGPATH": "/dev/null",
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_BASEDIR": f"{layout.root}",
    }
    return found if cache.enabled else {**found, "CCACHE_DISABLE": "1"}


def _with_own(found: Mapping[str, str], rebuild: Rebuild) -> dict[str, str]:
    """Add the recipe's own variables; flags of its own come after ours."""
    joined = {"CFLAGS", "CXXFLAGS", "CMAKE_ARGS"}
    result = dict(found)
    for name, value in rebuild.environment:
        before = result.get(name, "")
        result[name] = f"{before} {value}".strip() if name in joined else value
    return result


def write_scripts(
    folder: Layout,
    seen: Layout,
    tools: Tools,
    *,
    jobs: int,
    ninja: Path | None,
    cache: CompilerCache | None,
) -> None:
    """Write the scripts around compilers and ninja.

    Args:
        folder: Where they are written.
        seen: Where the build sees them.
        tools: The compilers.
        jobs: How many jobs ninja starts where nobody says so.
        ninja: ninja as the build would find it, or None.
        cache: The compiler cache, or None.
    """
    before = [f"{cache.program}"] if cache is not None else []
    names = ("gcc", "g++") if tools.compiler.family == "gcc" else ("clang", "clang++")
    aliases = (("cc", *names[:1]), ("c++", *names[1:]))
    for program, own in zip((tools.compiler.cc, tools.compiler.cxx), aliases, strict=True):
        mapped = f"-ffile-prefix-map={seen.root}={MAPPED}"
        seed = '-frandom-seed="$seed" ' if tools.compiler.family == "gcc" else ""
        text = _OUTPUT + f'exec {shlex.join([*before, f"{program}", mapped])} {seed}"$@"\n'
        for name in own:
            _script(folder.scripts / name, text)
    if ninja is not None:
        _script(folder.scripts / "ninja", f'exec {shlex.quote(f"{ninja}")} -j{jobs} "$@"\n')
    if tools.rust is not None:
        for program in (tools.rust.rustc, tools.rust.cargo):
            _script(folder.scripts / program.name, f'exec {shlex.quote(f"{program}")} "$@"\n')
    if tools.cuda is not None:
        _write_cuda(folder, seen, tools.cuda.home, before, seen.scripts / names[1])


def _write_cuda(folder: Layout, seen: Layout, home: Path, before: list[str], cxx: Path) -> None:
    """Make a toolkit of links into the real one, with our script in place of nvcc."""
    (folder.cuda / "bin").mkdir(parents=True, exist_ok=True)
    for path in (*home.iterdir(), *(home / "bin").iterdir()):
        link = folder.cuda / path.relative_to(home)
        if path.name not in {"bin", "nvcc"} and not link.is_symlink():
            link.symlink_to(path)
    command = shlex.join([*before, f"{home}/bin/nvcc"])
    _script(folder.cuda / "bin/nvcc", _nvcc(command, f"{cxx}", f"{seen.temporary}"))
    _script(folder.scripts / "nvcc", f'exec {seen.cuda}/bin/nvcc "$@"\n')


_OUTPUT = """\
seed=none
for word in "$@"; do
  case "$before$word" in -o*) seed=${word#-o} ;; esac
  case "$word" in -o) before=-o ;; *) before= ;; esac
done
"""
"""Finds the output's name, which seeds what is random: the same file gives the same names."""


def _nvcc(command: str, cxx: str, temporary: str) -> str:
    return f"""\
host={shlex.quote(f"--compiler-bindir={cxx}")}
kept=
for word in "$@"; do
  case "$word" in
    -ccbin*|--compiler-bindir*) host= ;;
    --version|-V|--help|-h|-dryrun|--dryrun|--list-gpu-*) kept=no ;;
  esac
done
[ -n "$kept" ] && exec {command} "$@"
key=$(printf '%s\\n' "$PWD" "$@" | cksum)
kept={shlex.quote(temporary)}/nvcc-${{key%% *}}
mkdir -p "$kept"
exec {command} $host --keep --keep-dir "$kept" "$@"
"""


def _script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
    path.chmod(0o755)
