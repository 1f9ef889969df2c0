"""Compilers as `toolchain.find` would return them, for tests that need none that works."""

from pathlib import Path

from envbuild.rebuild.toolchain import Compiler, Cuda, Tools


def tools(cc: Path, *, cuda: Cuda | None = None) -> Tools:
    """Return a GCC 12.2.0 of the host whose C and C++ compiler are one program."""
    compiler = Compiler(
        family="gcc", version="12.2.0", cc=cc, cxx=cc, origin="host", digests=(("gcc", "1"),)
    )
    return Tools(compiler=compiler, cuda=cuda, ccache=None)


def cuda(home: Path) -> Cuda:
    """Return a CUDA 13.0 toolkit of the host that lies in a folder."""
    return Cuda(
        version="13.0.88",
        release="13.0",
        home=home,
        nvcc=home / "bin/nvcc",
        origin="host",
        digests=(),
    )
