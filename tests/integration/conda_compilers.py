"""conda packages of a compiler, made by the tests: this machine's GCC under conda's names.

They have the names, the places and the activation script of conda-forge's `gxx_linux-64`.
"""

import shutil
import subprocess
from pathlib import Path

from integration.packages import Made, make_package, program

_TRIPLET = "x86_64-conda-linux-gnu"
_ACTIVATE = """\
export HOST={triplet}
export CC="$CONDA_PREFIX/bin/{triplet}-gcc"
export CXX="$CONDA_PREFIX/bin/{triplet}-g++"
export CFLAGS="-march=nocona -ftree-vectorize -isystem $CONDA_PREFIX/include"
export CXXFLAGS="-fvisibility-inlines-hidden $CFLAGS"
export LDFLAGS="-Wl,-rpath,$CONDA_PREFIX/lib -L$CONDA_PREFIX/lib"
"""


def gxx(root: Path) -> Made:
    """Write `gxx_linux-64` into a channel, of the version that gcc-12 has.

    Args:
        root: The channel's folder.
    """
    version = subprocess.run(
        [shutil.which("gcc-12") or "gcc-12", "-dumpfullversion"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    files = {
        f"bin/{_TRIPLET}-{name}": program(f'#!/bin/sh\nexec {shutil.which(f"{name}-12")} "$@"\n')
        for name in ("gcc", "g++")
    }
    files["etc/conda/activate.d/activate-gxx_linux-64.sh"] = program(
        _ACTIVATE.format(triplet=_TRIPLET)
    )
    return make_package(root, "gxx_linux-64", version, content=files)
