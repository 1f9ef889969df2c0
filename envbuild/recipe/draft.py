"""The text of a new recipe: commented, and such that it locks as it is."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envbuild.recipe import requirements
from envbuild.recipe.foreign import Foreign
from envbuild.recipe.living import Living, comments
from envbuild.target import Platform

DEFAULT_PYTHON: Final = "3.12"

_PLAIN: Final = re.compile(
    r"[A-Za-z_][A-Za-z0-9_ .,<>=!~*+/\[\]-]*(::?[A-Za-z0-9_.][^:#'\"{}&|%@`]*)?"
)
_TYPED: Final = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_FRAMEWORKS: Final = {
    "pytorch": ("torch", ""),
    "jax": ("jax", "cuda{major}"),
    "tensorflow": ("tensorflow", "and-cuda"),
}
_SAME_NAME: Final = {
    "accelerate", "datasets", "diffusers", "jax", "jaxlib", "keras", "matplotlib", "numpy",
    "pandas", "polars", "safetensors", "scipy", "tensorflow", "tokenizers", "torch", "torchaudio",
    "torchvision", "transformers", "triton", "vllm",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """What a new recipe is to say.

    Attributes:
        name: Its name.
        host: Whether it takes the machine's Python instead of conda's.
        python: A version or range, or None where the conda packages bring one.
        platforms: conda subdirs.
        gpus: GPUs it must run on.
        cuda: CUDA version, or None.
        framework: `pytorch ==2.4.0`, or None; it comes from PyPI.
        channels: conda channels.
        conda: Match specs.
        pypi: Requirements with their hashes.
        origin: The file or folder that it was made from, or None.
        left_out: What that has and the recipe has not, a line each.
    """

    name: str
    host: bool = False
    python: str | None = DEFAULT_PYTHON
    platforms: tuple[Platform, ...] = ("linux-64",)
    gpus: tuple[str, ...] = ()
    cuda: str | None = None
    framework: str | None = None
    channels: tuple[str, ...] = ("conda-forge",)
    conda: tuple[str, ...] = ()
    pypi: tuple[str, ...] = ()
    origin: str | None = None
    left_out: tuple[str, ...] = ()


def moved_over(draft: Draft, living: Living, *, origin: str) -> Draft:
    """Return the draft with what a living environment holds.

    Args:
        draft: What is said already.
        living: What the environment holds.
        origin: Its folder, for a comment.
    """
    return replace(
        draft,
        host=living.host,
        python=living.python,
        cuda=living.cuda or draft.cuda,
        channels=tuple(living.channels),
        conda=tuple(living.conda),
        pypi=tuple(living.pypi),
        origin=origin,
        left_out=tuple(comments(living)),
    )


def taken_over(draft: Draft, foreign: Foreign, *, origin: str) -> Draft:
    """Return the draft with what another tool's file asks for.

    Args:
        draft: What is said already.
        foreign: What the file asks for.
        origin: The file's name, for a comment.
    """
    python = foreign.python or (draft.python if foreign.wants_python else None)
    return replace(
        draft,
        python=python,
        platforms=tuple(foreign.platforms) or draft.platforms,
        channels=tuple(foreign.channels) or draft.channels,
        conda=tuple(foreign.conda),
        pypi=tuple(foreign.pypi),
        origin=origin,
    )


def write(draft: Draft) -> str:
    """Return the recipe's text."""
    pypi = (*_framework_requirement(draft), *draft.pypi)
    sections = (
        _head(draft),
        _target(draft),
        _triangle(draft),
        _python(draft),
        _list("conda", draft.conda, _conda_comment(draft)),
        _list("pypi", pypi, _PYPI_COMMENT),
        _smoke(draft, pypi),
        _END,
    )
    return "\n".join(section for section in sections if section)


def scalar(text: str) -> str:
    """Write a text as a YAML scalar that every reader takes for text, variables not replaced."""
    text = text.replace("${", "$${")
    if (
        _PLAIN.fullmatch(text)
        and text.lower() not in _TYPED
        and text == text.strip()
        and not text.endswith(":")
    ):
        return text
    return "".join(
        character if character.isprintable() else f"\\U{ord(character):08X}"
        for character in json.dumps(text, ensure_ascii=False)
    )


def _framework_requirement(draft: Draft) -> tuple[str, ...]:
    if draft.framework is None:
        return ()
    wish = Requirement(draft.framework)
    name, extra = _FRAMEWORKS.get(canonicalize_name(wish.name), (wish.name, ""))
    if any(requirements.name_of(text) == name for text in draft.pypi):
        return ()
    major = (draft.cuda or "12").split(".")[0]
    extras = f"[{extra.format(major=major)}]" if extra and (draft.gpus or draft.cuda) else ""
    return (f"{name}{extras} {wish.specifier}".strip(),)


def _head(draft: Draft) -> str:
    origin = f"# Made from {_one_line(draft.origin)}.\n" if draft.origin else ""
    if draft.left_out:
        origin += "# What it has and this recipe has not:\n"
        origin += "".join(f"#   {_one_line(line)}\n" for line in draft.left_out)
    what = [draft.framework] if draft.framework else []
    what += [f"for {', '.join(gpu.upper() for gpu in draft.gpus)}"] if draft.gpus else []
    what += ["on"] if what else []
    what += ["the machine's Python" if draft.host else "conda's Python", draft.python or ""]
    description = " ".join(what).strip()
    return (
        f"# A recipe of envbuild: what an environment must hold and run on.\n"
        f"# `envbuild lock {draft.name}` writes its lock, `envbuild create {draft.name}`\n"
        f"# makes the environment.\n"
        f"{origin}"
        f"name: {draft.name}\n"
        f"description: {scalar(description)}\n"
    )


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def _target(draft: Draft) -> str:
    lines = [
        "# What it must run on; the lock follows from this, never from the machine that makes it.",
        "target:",
        f"  platforms: [{', '.join(draft.platforms)}]",
    ]
    if draft.gpus:
        lines.append(f"  gpus: [{', '.join(scalar(gpu) for gpu in draft.gpus)}]")
    else:
        lines.append("  # gpus: [h100]")
    lines += [
        "  # Driver versions it may run on, with exclusions:",
        '  # driver: ">=550.54.14,!=550.90.07"',
        "  # The oldest glibc it must run on:",
        '  glibc: "2.28"',
    ]
    return "\n".join(lines) + "\n"


def _triangle(draft: Draft) -> str:
    comment = "# What has to agree: CUDA (the solver sees it as __cuda), cuDNN and the framework."
    lines = [comment]
    if draft.cuda is None and draft.framework is None:
        return f'{comment}\n# triangle:\n#   cuda: "12.4"\n#   cudnn: "9.1"\n'
    lines.append("triangle:")
    lines.append(f"  cuda: {scalar(draft.cuda)}" if draft.cuda else '  # cuda: "12.4"')
    lines.append('  # cudnn: "9.1"')
    if draft.framework:
        lines.append(f"  framework: {scalar(draft.framework)}")
    return "\n".join(lines) + "\n"


def _python(draft: Draft) -> str:
    if draft.host:
        comment = "# The Python of the machine (channel `host`) in these versions."
        return f"{comment}\npython: {scalar(draft.python or DEFAULT_PYTHON)}\nchannels: [host]\n"
    lines = []
    if draft.python:
        lines += ['# 3.12 is any 3.12.x; a range such as ">=3.11,<3.13" works as well.']
        lines += [f"python: {scalar(draft.python)}"]
    lines += ["# conda channels, highest priority first.", "channels:"]
    lines += [f"  - {scalar(channel)}" for channel in draft.channels]
    return "\n".join(lines) + "\n"


def _conda_comment(draft: Draft) -> str:
    if draft.host:
        return ""
    return "# conda packages: `name`, `name 1.2.*`, `name >=1.2,<2`, `channel::name 1.2 build*`.\n"


def _list(key: str, items: Sequence[str], comment: str) -> str:
    if not items:
        return f"{comment}# {key}: []\n" if comment else ""
    return "\n".join([f"{comment}{key}:", *(f"  - {scalar(item)}" for item in items)]) + "\n"


def _smoke(draft: Draft, pypi: Sequence[str]) -> str:
    imports = sorted({name for text in pypi for name in _modules(text)})
    comment = "# What must work before the environment becomes current.\n"
    listed = f"  imports: [{', '.join(imports)}]\n" if imports else ""
    if draft.python is None and not draft.host:
        return f"{comment}# smoke:\n#   commands: []\n"
    command = "  commands:\n    - python -c \"print('ready')\"\n"
    return f"{comment}smoke:\n{listed}{command}"


def _modules(requirement: str) -> tuple[str, ...]:
    """Return the module of a requirement where it is known and no marker leaves it out."""
    name = requirements.name_of(requirement)
    return (name,) if name in _SAME_NAME and ";" not in requirement else ()


_PYPI_COMMENT: Final = (
    "# PyPI requirements with extras, markers and --hash=sha256:…; wheels only.\n"
)
_END: Final = """\
# More that a recipe may say (`envbuild schema` has it all):
# build:                      # torch.compile finds this compiler; CC, CXX, CUDAHOSTCXX are set
#   compiler: gcc 12
#   cuda_archs: ["9.0"]
# cutoff: 14d                 # only what was uploaded before: an instant, a date, an age
# allow:                      # findings that are let through until a date
#   - {code: weak-hash, reason: no SHA-256 in that channel, until: 2027-12-31}
"""
