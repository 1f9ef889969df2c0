"""What the tests of rebuilds share: sources with a build backend of their own, and building them.

The backend needs nothing but Python, so no index is asked.
"""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from envbuild.access import Access
from envbuild.cli.context import Here
from envbuild.compat.tables import load
from envbuild.lock.model import PlatformLock
from envbuild.packages import PipPackage
from envbuild.pipeline.bench import Site
from envbuild.pipeline.rebuilding import Outcome, Wish, rebuild
from envbuild.store.layout import Store
from envbuild.target import Target
from envbuild.tools.uv_question import Source
from envbuild.wheel.model import Archive, Rebuild, Toolchain

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
GLIBC = (os.confstr("CS_GNU_LIBC_VERSION") or "glibc 2.17").split()[-1]

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc-12") is None or shutil.which("g++-12") is None,
    reason="gcc-12 and g++-12 are not here",
)

BACKEND = """\
import os, subprocess, sys, sysconfig, zipfile

INFO = "demo-1.0.dist-info"
TAG = "cp{0}{1}-cp{0}{1}-linux_x86_64".format(*sys.version_info)

def build_wheel(directory, config_settings=None, metadata_directory=None):
    before()
    include = sysconfig.get_paths()["include"]
    start = [os.environ["CC"], *os.environ["CFLAGS"].split(), "-g", "-fPIC"]
    for more in ([f"-I{include}", "-c", "demo.c", "-o", "demo.o"],
                 ["-shared", "demo.o", "-o", "demo.so"]):
        print("$", *start, *more, flush=True)
        subprocess.run([*start, *more], check=True)
    after()
    name = f"demo-1.0-{TAG}.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.write("demo.so", "demo.so")
        wheel.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n")
        wheel.writestr(f"{INFO}/WHEEL", f"Wheel-Version: 1.0\\nTag: {TAG}\\n")
        rows = ["demo.so", *(f"{INFO}/{one}" for one in ("METADATA", "WHEEL", "RECORD"))]
        wheel.writestr(f"{INFO}/RECORD", "".join(f"{one},,\\n" for one in rows))
    return name

def before():
    BEFORE

def after():
    AFTER
"""
SOURCE = """\
#include <Python.h>
static struct PyModuleDef demo = {PyModuleDef_HEAD_INIT, "demo", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_demo(void) { return PyModule_Create(&demo); }
"""


def project(
    folder: Path,
    *,
    before: str = "pass",
    after: str = "pass",
    source: str = SOURCE,
    requires: Sequence[str] = (),
) -> Path:
    """Write the sources of `demo` 1.0.

    Args:
        folder: Where.
        before: Python that its backend runs before it compiles.
        after: Python that it runs after.
        source: Its C.
        requires: What its build requires.
    """
    folder.mkdir(parents=True)
    text = BACKEND.replace("BEFORE", before).replace("AFTER", after)
    (folder / "backend.py").write_text(text)
    (folder / "demo.c").write_text(source)
    (folder / "pyproject.toml").write_text(
        f"[build-system]\nrequires = {[*requires]}\n"
        'build-backend = "backend"\nbackend-path = ["."]\n'
    )
    return folder


def wanted(folder: Path, **more: Any) -> Rebuild:  # noqa: ANN401
    """Return a rebuild of the sources in a folder."""
    told: dict[str, Any] = {
        "name": "demo",
        "version": "1.0",
        "half": "pypi",
        "why": (),
        "source": Archive(path=f"{folder}"),
        "toolchain": Toolchain(compiler="gcc 12"),
    }
    return Rebuild(**told | more)


class Steps:
    """Keeps what progress says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def step(self, text: str) -> None:
        self.said.append(text)

    def amount(self, what: str, done: int, total: int | None) -> None:
        """Nothing is downloaded."""


@dataclass(kw_only=True)
class Builder:
    """A store, and how wheels are rebuilt in it."""

    root: Path
    pip: tuple[PipPackage, ...] = ()
    access: Access = field(default_factory=lambda: Access(offline=True))
    steps: Steps = field(default_factory=Steps)
    search: str = field(default_factory=lambda: os.environ["PATH"])
    own: Mapping[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        return Store(root=self.root).resolved()

    @property
    def site(self) -> Site:
        version = ".".join(map(str, sys.version_info[:3]))
        nowhere = "http://127.0.0.1:9/" if self.access.offline else None
        return Site(
            store=self.store,
            access=self.access,
            half=PlatformLock(platform="linux-64", conda=(), pip=self.pip),
            indexes=(Source(name=None, url=self.access.default_index or nowhere),),
            cutoff=NOW,
            target=Target(platform="linux-64", glibc=GLIBC),
            glibc=GLIBC,
            python=Path(sys.executable).resolve(),
            python_version=version,
            search=self.search,
            own=self.own,
            facts=load(),
            now=lambda: datetime.now(UTC),
            progress=self.steps,
        )

    def build(self, one: Rebuild, **wish: Any) -> Outcome:  # noqa: ANN401
        """Rebuild one package."""
        (outcome,) = rebuild([one], self.site, Wish(**wish))
        return outcome


def with_index() -> Mapping[str, Any]:
    """Return how a builder reaches the index that this machine is set up for."""
    return {"access": Here().access}
