"""Which paths a service sees and writes, where homes are hidden and all else is read-only."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from envbuild.recipe.service import Service
from envbuild.recipe.service_checks import argv
from envbuild.units.model import Origin

_HIDDEN: Final = ("/home", "/root", "/run/user")


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """Paths by what has to be said of them.

    Attributes:
        read: Outside homes, never writable.
        write: Outside homes, writable.
        bind_read: In homes, shown and never writable.
        bind_write: In homes, shown and writable.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    bind_read: tuple[str, ...] = ()
    bind_write: tuple[str, ...] = ()


def seen(service: Service, origin: Origin) -> Seen:
    """Return the paths that a service needs, by what has to be said of them."""
    needed = (origin.prefix, argv(service.exec)[0], service.working_directory or "")
    return _seen(service.read, service.write, needed)


@functools.lru_cache(maxsize=256)
def _seen(reads: tuple[str, ...], writes: tuple[str, ...], paths: tuple[str, ...]) -> Seen:
    write = dict.fromkeys(map(_normal, writes))
    needed = [_normal(path) for path in paths if _is_hidden(path)]
    shown = [path for path in needed if not any(within(path, one) for one in write)]
    read = dict.fromkeys(map(_normal, reads))
    return Seen(
        read=tuple(path for path in read if not _is_hidden(path)),
        write=tuple(path for path in write if not _is_hidden(path)),
        bind_read=_outermost([*shown, *(path for path in read if _is_hidden(path))]),
        bind_write=tuple(path for path in write if _is_hidden(path)),
    )


@functools.lru_cache(maxsize=256)
def _normal(path: str) -> str:
    return "/" + "/".join(part for part in path.split("/") if part not in {"", "."})


@functools.lru_cache(maxsize=256)
def _is_hidden(path: str) -> bool:
    return any(within(_normal(path), home) for home in _HIDDEN) if path[:1] == "/" else False


def within(path: str, folder: str) -> bool:
    """Tell whether a path is a folder or below it."""
    return path == folder or path.startswith(f"{folder}/")


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that lie in none of the others."""
    every = dict.fromkeys(paths)
    return tuple(
        path for path in every if not any(path != other and within(path, other) for other in every)
    )
