"""Jupyter kernel specs of environments: a folder with a `kernel.json` where Jupyter looks.

A spec starts `envbuild run NAME`, so that a kernel started later runs in whatever generation is
current then, with what activation sets; a notebook that runs keeps the one it was started in.
Format and places: jupyter_client's documentation, "Making kernels for Jupyter".
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envbuild.errors import InputError, Refused, UsageProblem
from envbuild.store import manifest as manifests
from envbuild.store.layout import Generation
from envbuild.tools.files import make_folder, remove_tree, write_atomic

SPEC = "kernel.json"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_PACKAGE = "ipykernel"
_MARK = "envbuild"


def folder(data: Path, kernel: str) -> Path:
    """Return where a kernel's spec lies below a Jupyter data folder.

    Raises:
        UsageProblem: Jupyter knows no kernel of such a name.
    """
    if not _NAME.fullmatch(kernel):
        message = f"{kernel!r} is not a kernel's name"
        raise UsageProblem(message, hint="use letters, digits, '.', '_' and '-'")
    return data / "kernels" / kernel.lower()


def install(
    generation: Generation, to: Path, *, envbuild: Sequence[str], display_name: str
) -> dict[str, Any]:
    """Write the spec of an environment's kernel; one that is there of the same is replaced.

    Args:
        generation: What is current now: it must hold ipykernel.
        to: The spec's folder.
        envbuild: How envbuild is started, the store with it.
        display_name: What Jupyter shows.

    Returns:
        The spec.

    Raises:
        Refused: The environment has no ipykernel, or the folder holds somebody else's kernel.
        StoreError: The manifest is damaged.
        OSError: It cannot be written.
    """
    name = generation.place.name
    if all(package.name != _PACKAGE for package in manifests.read(generation).packages):
        message = f"{name} has no {_PACKAGE}"
        hint = f"add {_PACKAGE} to the recipe, then: envbuild lock {name} && envbuild create {name}"
        raise Refused(message, hint=hint)
    if to.exists() and _environment(to) is None:
        message = f"{to} holds a kernel that is not envbuild's"
        raise Refused(message, hint="give another one with --name")
    start = [*envbuild, "run", name, "--", "python", "-m", "ipykernel_launcher"]
    spec = {
        "argv": [*start, "-f", "{connection_file}"],
        "display_name": display_name,
        "language": "python",
        "metadata": {"debugger": True, _MARK: {"environment": name}},
    }
    make_folder(to)
    write_atomic(to / SPEC, json.dumps(spec, indent=1, ensure_ascii=False) + "\n")
    return spec


def remove(name: str, at: Path) -> None:
    """Remove the spec of an environment's kernel.

    Raises:
        InputError: There is none.
        Refused: It is not this environment's.
        OSError: It cannot be removed.
    """
    if not (at / SPEC).exists():
        message = f"there is no kernel in {at}"
        raise InputError(message, source=name, hint="jupyter kernelspec list")
    if _environment(at) != name:
        message = f"{at} holds a kernel that is not {name}'s"
        raise Refused(message, hint="give its name with --name")
    remove_tree(at)


def _environment(at: Path) -> str | None:
    """Return the environment that a spec of ours starts, None where it is not ours."""
    try:
        name = json.loads((at / SPEC).read_bytes())["metadata"][_MARK]["environment"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(name)
