"""What was really fetched against the recipe's cards: without code for one, create stops."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fuzz.made import code_library
from integration.creating import NEEDS, codes
from integration.index_server import BuiltWheel, wheel
from integration.test_create_wheels import World, packed, world

from envbuild.errors import Refused
from envbuild.store.create import Created
from envbuild.store.order import Allowed
from envbuild.target import Need

__all__ = ["packed", "world"]

KERNEL = """\
__global__ void kernel(float *x) { x[0] = x[1]; }
extern "C" void go(float *x) { kernel<<<1, 1>>>(x); }
"""
ALLOWED = Allowed(code="no-gpu-code", where="pypi:k", reason="not used there", until="2099-01-01")


def kernels(version: str, **libraries: bytes) -> BuiltWheel:
    files = {f"k/{name}.so": data for name, data in libraries.items()}
    return wheel("k", version, files={"k/__init__.py": "", **files})


def create(
    world: World, made: BuiltWheel, card: str = "9.0", allow: tuple[Allowed, ...] = ()
) -> Created:
    needs = replace(NEEDS, capabilities=Need(value=card, origin="facts: a card"))
    return world.create(world.order(made, needs=needs, allow=allow))


def told(created: Created) -> str:
    found: str = json.loads(created.generation.needs.read_text())["codes"]["value"]
    return found


def test_without_code_for_the_card_nothing_is_made_current(world: World) -> None:
    first = create(world, kernels("1", a=code_library("sm_90")))
    assert told(first) == "k: sm_90"
    current = world.creator.place.current.readlink()
    with pytest.raises(Refused, match=r"k/a.so holds sm_100a sm_80 \[no-gpu-code\]"):
        create(world, kernels("2", a=code_library("sm_80", "sm_100a")))
    assert world.creator.place.current.readlink() == current
    again = create(world, kernels("2", a=code_library("sm_80", "sm_100a")), "10.0")
    assert told(again) == "k: sm_80 sm_100a"


def test_what_the_recipe_lets_through_is_created(world: World) -> None:
    created = create(world, kernels("1", a=code_library("sm_80")), allow=(ALLOWED,))
    (note,) = created.manifest.findings
    assert (note.severity, note.why) == ("note", "let through until 2099-01-01: not used there")


def test_a_library_for_each_card_is_a_warning(world: World) -> None:
    made = kernels("1", a=code_library("sm_90"), b=code_library("sm_100f"))
    created = create(world, made)
    assert codes(created) == ["no-gpu-code"]
    assert created.manifest.findings[0].severity == "warning"


def test_kernels_that_nvcc_compiled(
    world: World, program: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "k.cu").write_text(KERNEL)
    argv = [program("nvcc"), "-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "k.cu"]
    argv += ["-gencode", "arch=compute_90,code=sm_90", "-o", "k.so"]
    subprocess.run(argv, check=True, cwd=tmp_path)
    made = kernels("1", a=(tmp_path / "k.so").read_bytes())
    with pytest.raises(Refused, match=r"no code for compute capability 8\.9"):
        create(world, made, "8.9")
    assert told(create(world, made)) == "k: sm_90"
