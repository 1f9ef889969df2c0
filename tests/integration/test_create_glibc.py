"""glibc that a wheel's files need, whatever its name says."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from integration.creating import NEEDS, codes
from integration.index_server import BuiltWheel, wheel
from integration.test_create_wheels import World, packed, world

from envbuild.store.create import Created
from envbuild.store.order import Allowed
from envbuild.target import Need

__all__ = ["packed", "world"]

_SOURCE = """\
#include <dlfcn.h>
void *find(void) { return dlsym(RTLD_DEFAULT, "find"); }
"""
_NEEDS = replace(NEEDS, glibc=Need(value=">=2.28", origin="recipe"))
_ALLOWED = Allowed(code="glibc-floor", where="pypi:k", reason="not used", until="2099-01-01")


@pytest.fixture
def newer(program: Callable[[str], str], tmp_path: Path) -> BuiltWheel:
    """A wheel with a library of this machine's compiler: dlsym is of glibc 2.34 in libc itself."""
    (tmp_path / "k.c").write_text(_SOURCE)
    argv = [program("gcc"), "-shared", "-fPIC", "-o", "k.so", "k.c"]
    subprocess.run(argv, check=True, cwd=tmp_path)
    library = (tmp_path / "k.so").read_bytes()
    if b"GLIBC_2.34\0" not in library:
        pytest.skip("the glibc here is another one than Debian 12's")
    return wheel("k", "1", files={"k/__init__.py": "", "k/k.so": library})


def _glibc(created: Created) -> str:
    found: str = json.loads(created.generation.needs.read_text())["glibc"]["value"]
    return found


def test_needs_ask_for_what_the_files_need(world: World, newer: BuiltWheel) -> None:
    created = world.create(world.order(newer, needs=_NEEDS))
    assert codes(created) == ["glibc-floor"]
    (found,) = created.manifest.findings
    assert found.what.startswith("it needs glibc 2.34, and the target may have 2.28: ")
    assert _glibc(created) >= ">=2.34"  # the packed Python may need more


def test_what_the_recipe_lets_through_is_no_need(world: World, newer: BuiltWheel) -> None:
    other = wheel("other", "1", files={"other/__init__.py": ""})
    bare = world.create(world.order(other, needs=_NEEDS))
    created = world.create(world.order(newer, needs=_NEEDS, allow=(_ALLOWED,)))
    assert created.manifest.findings[0].severity == "note"
    assert _glibc(created) == _glibc(bare)
