"""Builds the simulator of NVML and puts it, with a scenario, where a driver's library would be."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCENARIOS = tuple(sorted(path.stem for path in (HERE / "scenarios").glob("*.scn")))
LIBRARY = "libnvidia-ml.so.1"
_OLD = frozenset({"old-driver"})
_FLAGS = ("-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden")


def built(*, old: bool = False) -> Path:
    """Return the simulator's library, built once for each text of it; skip without a compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (gcc) for the simulator of NVML")
    sources = sorted((*HERE.glob("*.c"), *HERE.glob("*.h")))
    defines = ("-DOLD",) if old else ()
    text = repr((compiler, _FLAGS, defines)).encode() + b"".join(s.read_bytes() for s in sources)
    name = f"envbuild-nvmlsim-{os.getuid()}-{hashlib.sha256(text).hexdigest()[:16]}"
    target = Path(tempfile.gettempdir()) / name / LIBRARY
    if not target.exists():
        target.parent.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder) / LIBRARY
            argv = [compiler, *_FLAGS, *defines, f"-Wl,-soname,{LIBRARY}", "-o", made]
            code = [source for source in sources if source.suffix == ".c"]
            subprocess.run([*argv, *code, "-lm", "-pthread"], check=True)
            made.replace(target)
    return target


def place(root: Path, scenario: str, *more: str, old: bool | None = None) -> Path:
    """Make a driver's file tree under `root` whose NVML plays a scenario.

    Args:
        root: Where; it may hold other files already.
        scenario: The name of one of `SCENARIOS`.
        more: Lines put behind those of the scenario.
        old: Whether the library is that of an old driver; by default as the scenario wants it.

    Returns:
        The root, for `--driver-root`.
    """
    library = built(old=scenario in _OLD if old is None else old)
    folder = root / "usr/lib64"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LIBRARY).symlink_to(library)
    (folder / "traces").symlink_to(HERE / "traces")
    text = "".join(f"{line}\n" for line in (*expanded(f"scenarios/{scenario}.scn"), *more))
    (folder / "nvmlsim.scenario").write_text(text)
    return root


def expanded(name: str) -> list[str]:
    """Return the lines of a scenario with what it includes."""
    lines: list[str] = []
    for line in (HERE / name).read_text().splitlines():
        key, _, value = (part.strip() for part in line.partition("="))
        lines += expanded(value) if key == "include" else [line]
    return lines
