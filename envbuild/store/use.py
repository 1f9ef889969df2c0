"""Using a generation: which one, what it sets, and becoming a command in it. A hot path.

Nothing is computed here: `environment.json` says what creation found out.
"""

import errno
import mmap
import os
import signal
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from envbuild.errors import CommandNotFound, InputError, NotExecutable, StoreError
from envbuild.store import leases, moved, present
from envbuild.store.environment import Environment, loads
from envbuild.store.layout import Generation, Place

_SHELL = "/bin/sh"
_REMOVAL_S = 5.0
_LOOK_S = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A generation that nobody removes meanwhile.

    Attributes:
        generation: The generation.
        mapped: What shows in proc(5) that this process uses it, as long as it is referred to.
        said: Whether other hosts could be told, where they share the store.
    """

    generation: Generation
    mapped: mmap.mmap | None
    said: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Activation:
    """A generation and what it sets.

    Attributes:
        generation: The generation.
        environment: What it sets.
        kept: What keeps it from being removed, None for nothing.
    """

    generation: Generation
    environment: Environment
    kept: Kept | None = field(default=None, compare=False)


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
        raise InputError(message, source=place.name, hint=present.to_current(place))
    if not present.complete(generation):
        message = f"generation {generation.identifier}, current of {place.name}, is gone"
        raise StoreError(message, hint=present.whats_there(place))
    return generation


def kept(place: Place, wanted: str | None) -> Kept:
    """Return the generation to use; nobody removes it as long as the answer is referred to.

    Who removes one hides its manifest first, then looks for processes (`collect`). So this
    process first shows that it uses the generation, then looks for the manifest.

    Raises:
        InputError: There is none, or no current one.
        StoreError: It is incomplete or gone.
    """
    end = time.monotonic() + _REMOVAL_S
    while True:
        before = present.current(place)
        try:
            generation = chosen(place, wanted)
            mapped, said = _mapped(generation), leases.hold(generation, os.getpid())
            chosen(place, generation.identifier)
        except (InputError, StoreError):
            if wanted is None and present.current(place) != before:
                continue  # another one became current, and this one was removed
            if _removing(place) and time.monotonic() < end:
                time.sleep(_LOOK_S)
                continue
            raise
        return Kept(generation=generation, mapped=mapped, said=said)


def _removing(place: Place) -> bool:
    """Say whether a process looks just now which generations may go."""
    return any(place.generation(one.name).going.exists() for one in place.generations.glob("*"))


def held(place: Place, wanted: str | None) -> Activation:
    """Return what the generation to use sets; see `kept` and `read` for its errors."""
    keeping = kept(place, wanted)
    return replace(read(keeping.generation), kept=keeping)


def _mapped(generation: Generation) -> mmap.mmap | None:
    try:
        with open(generation.environment, "rb") as file:  # noqa: PTH123 - start-up time
            return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    except (OSError, ValueError):
        return None  # `read` says why


def read(generation: Generation) -> Activation:
    """Return what a generation sets.

    Raises:
        StoreError: It is unknown (the file is missing or damaged), or the generation was moved.
    """
    path = generation.environment
    hint = f"envbuild create {generation.place.name} --reinstall"
    try:
        environment = loads(path.read_bytes())
        made_for = environment.set["CONDA_PREFIX"]
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise StoreError(message, hint=hint) from error
    except (ValueError, KeyError) as error:
        message = f"{path} is damaged"
        raise StoreError(message, hint=hint) from error
    moved.refuse(generation, made_for)
    return Activation(generation=generation, environment=environment)


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
