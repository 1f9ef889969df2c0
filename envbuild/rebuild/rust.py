"""Rust's compiler and cargo: found, asked what they are, known by their content.

They come from a conda prefix (`rust`), else from the host. What rustup puts on a PATH only starts
the toolchain that it has chosen: that one's own programs are taken, so that a build needs no rustup
and no file of the sources (`rust-toolchain.toml`) makes it fetch another.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from envbuild.errors import ToolMissing
from envbuild.tools.files import sha256_file
from envbuild.tools.run import Runner, base_environment

_BACKENDS = ("maturin", "setuptools-rust")
_ASK_S = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Rust:
    """A Rust toolchain.

    Attributes:
        version: Version of rustc in full (`1.80.0`).
        rustc: rustc's own program.
        cargo: cargo's own program.
        origin: The prefix it belongs to, or `host`.
        digests: SHA-256 of the programs and of the compiler's libraries, by name, sorted.
    """

    version: str
    rustc: Path
    cargo: Path
    origin: str
    digests: tuple[tuple[str, str], ...]


def needed(requires: tuple[str, ...]) -> bool:
    """Say whether what a build requires (PEP 508 lines) builds Rust."""
    names = [re.match(r"[A-Za-z0-9._-]*", line.strip()) for line in requires]
    return any(match and match[0].lower().replace("_", "-") in _BACKENDS for match in names)


def find(*, prefix: Path | None, search: str, own: Mapping[str, str], runner: Runner) -> Rust:
    """Return the Rust toolchain.

    Args:
        prefix: The recipe's conda half, linked; None without one.
        search: The user's PATH.
        own: Variables that say where rustup has its toolchains (HOME, RUSTUP_HOME).
        runner: Starts rustc.

    Raises:
        ToolMissing: There is none.
    """
    environment = {**base_environment(search or base_environment()["PATH"]), **own}
    for found, origin in _candidates(prefix, search):
        root = runner([f"{found}", "--print", "sysroot"], env=environment, check=False).stdout
        folder = Path(root.strip() or "/") / "bin"
        rustc = folder / "rustc" if (folder / "rustc").exists() else found
        cargo = rustc.with_name("cargo")
        argv = [f"{rustc}", "-vV"]
        told = runner(argv, env=environment, check=False, timeout_s=_ASK_S).stdout
        release = re.search(r"(?m)^release: (\S+)$", told)
        if release is None or not cargo.exists():
            continue
        libraries = rustc.parents[1] / "lib"
        parts = (*libraries.glob("librustc_driver*.so"), *libraries.glob("libLLVM*"))
        programs = (rustc, cargo, *(path for path in parts if path.is_file()))
        return Rust(
            version=release[1],
            rustc=rustc,
            cargo=cargo,
            origin=origin,
            digests=tuple(sorted((path.name, sha256_file(path)) for path in programs)),
        )
    message = "its build needs Rust, and there is no rustc that answers, with cargo beside it"
    raise ToolMissing(message, hint="install Rust, or add `rust` to the recipe's conda packages")


def _candidates(prefix: Path | None, search: str) -> Iterator[tuple[Path, str]]:
    """Yield rustc's programs and where they come from, the first choice first."""
    if prefix is not None and (prefix / "bin/rustc").exists():
        yield prefix / "bin/rustc", f"{prefix}"
    if found := shutil.which("rustc", path=search):
        yield Path(found), "host"
