"""auditwheel: the libraries that a wheel needs, put into it."""

import sys
from pathlib import Path

from envbuild.errors import ToolFailed
from envbuild.target import MACHINES, Target
from envbuild.tools.files import make_folder, remove_tree
from envbuild.tools.run import Runner, base_environment


def repaired(
    wheel: Path,
    folder: Path,
    *,
    target: Target,
    epoch: int,
    runner: Runner,
    libraries: Path | None = None,
) -> Path:
    """Let auditwheel put the libraries that a wheel needs into it, and return the new one.

    Args:
        wheel: The wheel.
        folder: Where the new one is put; it is made anew.
        target: The platform and the oldest glibc that it has to run on.
        epoch: SOURCE_DATE_EPOCH.
        runner: Starts auditwheel.
        libraries: A folder of libraries that the loader does not know of, such as those of the
            conda half.

    Raises:
        ToolFailed: It cannot be made portable to the recipe's glibc.
    """
    remove_tree(folder)
    make_folder(folder)
    machine = MACHINES[target.platform]
    tag = f"manylinux_{target.glibc.replace('.', '_')}_{machine}"
    words = [sys.executable, "-m", "auditwheel", "repair", "--plat", tag]
    path = f"{Path(sys.executable).parent}:{base_environment()['PATH']}"
    environ = {**base_environment(path), "SOURCE_DATE_EPOCH": f"{epoch}"}
    if libraries is not None:
        environ["AUDITWHEEL_LD_LIBRARY_PATH"] = f"{libraries}"
    try:
        runner([*words, "--wheel-dir", f"{folder}", f"{wheel}"], env=environ)
    except ToolFailed as error:
        error.message = f"{wheel.name} cannot be made portable to glibc {target.glibc}"
        error.hint = "build with conda's gxx, whose glibc is older, or raise target.glibc"
        raise
    return next(folder.glob("*.whl"))
