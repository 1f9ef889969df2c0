"""Using a generation: which one, what it sets, and becoming a command in it. A hot path.

`environment.json` is read as `store.activation` computed it; that module, which can also run
activation scripts, takes too long to load here.
"""

import errno
import json
import os
import re
import signal
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envbuild.errors import CommandNotFound, InputError, NotExecutable, StoreError
from envbuild.store import present
from envbuild.store.layout import Generation, Place

ENVIRONMENT_VERSION = 1
ALWAYS_UNSET = ("PYTHONHOME", "PYTHONPATH")

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELL = "/bin/sh"


@dataclass(frozen=True, kw_only=True, slots=True)
class Activation:
    """What a generation sets.

    Attributes:
        generation: Whose it is.
        assign: Variables that get a value.
        prepend: Folders put before what a variable has, first one first.
        unset: Variables that go.
    """

    generation: Generation
    assign: Mapping[str, str]
    prepend: Mapping[str, tuple[str, ...]]
    unset: tuple[str, ...]


def chosen(place: Place, wanted: str | None) -> Generation:
    """Return the generation to use: the one wanted (ID or its beginning), else the current one.

    Raises:
        InputError: There is none, or no current one.
        StoreError: It is incomplete or gone.
    """
    if wanted is not None:
        return present.find(place, wanted)
    generation = present.current(place)
    if generation is None:
        message = f"{place.name} has no current generation"
        raise InputError(
            message, source=place.name, hint=f"envbuild switch {place.name} GENERATION"
        )
    if not present.complete(generation):
        message = f"generation {generation.identifier}, current of {place.name}, is gone"
        raise StoreError(message, hint=present.whats_there(place))
    return generation


def read(generation: Generation) -> Activation:
    """Return what a generation sets.

    Raises:
        StoreError: It is unknown (the file is missing or damaged), or the generation was moved.
    """
    path = generation.environment
    try:
        data = json.loads(path.read_bytes())
        activation = _parse(generation, data)
        made_for = os.path.realpath(data["set"]["CONDA_PREFIX"])
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise StoreError(message, hint=_reinstall(generation)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path} is damaged"
        raise StoreError(message, hint=_reinstall(generation)) from error
    here = os.path.realpath(generation.prefix)
    if made_for != here:
        message = f"generation {generation.identifier} was made for {made_for}, lies in {here}"
        raise StoreError(message, hint=_reinstall(generation))
    return activation


def activated(activation: Activation, base: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with the generation's in it.

    Args:
        activation: What the generation sets.
        base: The environment to start from.
    """
    result = dict(base)
    for name in (*ALWAYS_UNSET, *activation.unset):
        result.pop(name, None)
    result.update(activation.assign)
    for name, folders in activation.prepend.items():
        kept = [part for part in (result.get(name),) if part]
        result[name] = ":".join((*folders, *kept))
    return result


def execute(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Become a command; this returns only by raising.

    A bare name is looked for in the environment's `PATH`. A text file without `#!` goes to
    `/bin/sh`, as execvp(3) does it.

    Raises:
        CommandNotFound: There is no such command.
        NotExecutable: It is there and cannot be executed.
    """
    path = _program(words[0], environment.get("PATH", os.defpath))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores both, and exec keeps that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(path, list(words), environment)  # noqa: S606 - that is the point
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            os.execve(_SHELL, [_SHELL, path, *words[1:]], environment)  # noqa: S606
        message = f"{path}: {error.strerror}"
        if error.errno == errno.ENOENT:
            message = f"{path}: the interpreter in its first line does not exist"
        raise NotExecutable(message) from error


def _program(name: str, search: str) -> str:
    """Return the path of a command."""
    candidates = [name] if "/" in name else [f"{part or '.'}/{name}" for part in search.split(":")]
    unusable = ""
    for path in candidates if name else ():
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116 - start-up time
        except (OSError, ValueError):
            continue
        if not stat.S_ISDIR(mode) and os.access(path, os.X_OK):
            return path
        unusable = unusable or path
    if unusable:
        message = f"{unusable} cannot be executed"
        raise NotExecutable(message)
    message = f"there is no command {name!r}"
    where = None if "/" in name else "it is neither in the environment nor in PATH"
    raise CommandNotFound(message, hint=where)


def _parse(generation: Generation, data: Any) -> Activation:  # noqa: ANN401 - what json gives
    """Return what a file says.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: It is not what we write.
    """
    if data["version"] != ENVIRONMENT_VERSION:
        raise ValueError(data["version"])
    prepend = {name: tuple(folders) for name, folders in data["prepend"].items()}
    names = [*data["set"], *prepend, *data["unset"]]
    texts = [*data["set"].values(), *(folder for folders in prepend.values() for folder in folders)]
    if not all(map(_VARIABLE.fullmatch, names)) or any("\0" in text for text in texts):
        raise ValueError(names)
    return Activation(
        generation=generation,
        assign=dict(data["set"]),
        prepend=prepend,
        unset=tuple(data["unset"]),
    )


def _reinstall(generation: Generation) -> str:
    return f"envbuild create {generation.place.name} --reinstall"
