"""The compiler cache of rebuilds: another toolchain's objects are never taken."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from integration.rebuilding import Builder, needs_gcc, project, wanted

from envbuild.tools.files import sha256_file

pytestmark = [
    needs_gcc,
    pytest.mark.skipif(shutil.which("ccache") is None, reason="ccache is not here"),
]

_MOMENT = 1_700_000_000


def _toolchain(folder: Path, level: str, *, inside: bool) -> None:
    """Put a GCC in place that optimizes as its files say, whose sizes and times are always equal.

    Args:
        folder: Where; it is the first of the PATH.
        level: Such as `-O1`.
        inside: Whether the program that the driver runs says so, not the driver.
    """
    parts = folder / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    asked = ["gcc-12", "-print-prog-name=cc1"]
    cc1 = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    real = shutil.which("gcc-12")
    told = f"-B{parts}/" if inside else level
    texts = {folder / name: f'exec {real} {told} "$@"\n' for name in ("gcc-12", "g++-12")}
    if inside:
        texts[parts / "cc1"] = f'exec {cc1} {level} "$@"\n'
    for path, text in texts.items():
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)
        os.utime(path, (_MOMENT, _MOMENT))


def _seen(builder: Builder, folder: Path) -> tuple[bool, bool, int]:
    """Build once more; say whether `-O1` and `-O2` are in it, and what the caches had by then."""
    kept = builder.build(wanted(folder), again=True).kept
    with zipfile.ZipFile(kept.path) as opened:
        library = opened.read("demo.so")
    hits = 0
    for cache in (builder.store.rebuild_cache / "ccache").iterdir():
        argv = ["ccache", "--dir", f"{cache}", "--print-stats"]
        told = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        hits += int(dict(line.split() for line in told.splitlines())["direct_cache_hit"])
    return b" -O1" in library, b" -O2" in library, hits


@pytest.mark.parametrize("inside", [False, True], ids=["driver", "what it runs"])
def test_a_toolchain_swapped_in_place_gets_nothing_of_the_one_before(
    tmp_path: Path, *, inside: bool
) -> None:
    tools = tmp_path / "tools"
    builder = Builder(root=tmp_path / "store", search=f"{tools}:{os.environ['PATH']}")
    folder = project(tmp_path / "demo")
    _toolchain(tools, "-O1", inside=inside)
    before = {path: (path.stat().st_size, path.stat().st_mtime) for path in tools.rglob("*")}
    digest = sha256_file(tools / "gcc-12")
    assert _seen(builder, folder) == (True, False, 0)
    assert _seen(builder, folder) == (True, False, 1)
    _toolchain(tools, "-O2", inside=inside)
    assert {path: (path.stat().st_size, path.stat().st_mtime) for path in before} == before
    assert (sha256_file(tools / "gcc-12") == digest) is inside
    assert _seen(builder, folder) == (False, True, 1)
