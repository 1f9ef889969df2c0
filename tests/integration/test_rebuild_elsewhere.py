"""A lock with a rebuilt wheel, on a host whose wheelhouse does not have it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.index_server import wheel
from integration.locking import Locker, envbuild, locker
from integration.rebuilding import GLIBC, needs_gcc, project

pytestmark = needs_gcc

_RECIPE = f"""\
name: swap
target: {{platforms: [linux-64], glibc: '{GLIBC}'}}
python: ">=3.11,<3.15"
channels: [host]
pypi: [demo]
build: {{compiler: gcc 12, packages: {{demo: {{archive: ../demo}}}}}}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locker]:
    source = tmp_path / "empty.c"
    source.write_text("int nothing;\n")
    library = tmp_path / "empty.so"
    said = tmp_path / "said"
    said.write_bytes(b"GCC: (GNU) 10.2.1 20210130 (Red Hat 10.2.1-11)\0")
    for argv in (
        ["gcc-12", "-shared", f"{source}", "-o", f"{library}"],
        ["objcopy", "--update-section", f".comment={said}", f"{library}"],
    ):
        subprocess.run(argv, check=True)
    project(tmp_path / "demo")
    with locker(tmp_path) as made:
        tag = "py3-none-linux_x86_64"
        files = {"demo/empty.so": library.read_bytes()}
        made.index.wheels[:] = [wheel("demo", "1.0", tag=tag, files=files)]
        for name in [one for one in os.environ if one.startswith(("ENVBUILD_", "UV_", "PIP_"))]:
            monkeypatch.delenv(name)
        for name, value in made.variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("ENVBUILD_COMPILE", "0")
        monkeypatch.setenv("ENVBUILD_PYTHON", os.path.realpath(sys.executable))
        monkeypatch.chdir(tmp_path)
        made.write(_RECIPE)
        yield made


def test_it_is_built_there_to_the_bytes_that_the_lock_has(
    place: Locker, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*words: str, code: int = 0) -> str:
        capsys.readouterr()
        assert envbuild(*words) == code
        printed = capsys.readouterr()
        return printed.out + printed.err

    nothing = said("lock", "--prefer-rebuilt", "swap")
    assert "no rebuilt wheel fits; envbuild wheel rebuild swap" in nothing
    unknown = said("wheel", "rebuild", "swap")
    assert "demo is not: envbuild wheel rebuild swap --fetch" in unknown
    built = said("wheel", "rebuild", "swap", "--fetch")
    assert "to take them into the lock: envbuild lock --prefer-rebuilt swap" in built
    assert "no rebuilt wheel" not in said("lock", "--prefer-rebuilt", "swap")

    shutil.rmtree(place.store.root)
    assert "envbuild wheel rebuild swap makes it here" in said("create", "swap", code=8)
    plan: Any = json.loads(said("wheel", "plan", "swap", "--fetch", "--json").partition("\n{")[0])
    (planned,) = plan["rebuild"]
    assert [why["cause"] for why in planned["why"]] == ["absent"]
    assert "just what the lock has; next: envbuild create swap" in said("wheel", "rebuild", "swap")
    said("create", "swap")
    assert "nothing needs a rebuild" in said("wheel", "rebuild", "swap")
