"""What a template of a service is given: every value computed, and escaped for its place.

The defaults stand here; `docs/services.md` gives their reasons.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from envbuild.document import Path
from envbuild.recipe import words
from envbuild.recipe.model import Recipe
from envbuild.recipe.service import Limits, Service
from envbuild.recipe.service_checks import argv, gpu_of
from envbuild.units import cards, escape, names, order, times
from envbuild.units.model import Manager, Origin
from envbuild.units.paths import Seen, seen

View = dict[str, Any]

READY_S: Final = 300.0
_STARTED_S: Final = 90.0
_WAIT_S: Final = 30.0
_UNSET: Final = ("PYTHONHOME", "PYTHONPATH")
_CACHES: Final = (
    ("XDG_CACHE_HOME", ""),
    ("TRITON_CACHE_DIR", "/triton"),
    ("TORCHINDUCTOR_CACHE_DIR", "/torchinductor"),
    ("CUDA_CACHE_PATH", "/cuda"),
)
_NO_FILES: Final = {"bind_read": (), "bind_write": (), "read": (), "write": ()}
_LIMITS: Final = (
    ("CPUWeight", "cpu_weight"),
    ("CPUQuota", "cpu_quota"),
    ("AllowedCPUs", "cpus"),
    ("AllowedMemoryNodes", "memory_nodes"),
    ("MemoryHigh", "memory_high"),
    ("MemoryMax", "memory_max"),
    ("MemorySwapMax", "memory_swap_max"),
    ("IOWeight", "io_weight"),
    ("TasksMax", "tasks_max"),
    ("LimitMEMLOCK", "locked_memory"),
)
_BANDWIDTHS: Final = (
    ("IOReadBandwidthMax", "io_read_bandwidth"),
    ("IOWriteBandwidthMax", "io_write_bandwidth"),
)


class Unwritable(Exception):
    """A value of a recipe cannot stand where a unit would have it.

    Attributes:
        path: The field.
        what: What is wrong with it.
    """

    def __init__(self, path: Path, what: str) -> None:
        """Keep both."""
        super().__init__(what)
        self.path = path
        self.what = what


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a service stands.

    Attributes:
        recipe: Its recipe.
        name: Its name.
        origin: What it belongs to.
        manager: What it is rendered for.
    """

    recipe: Recipe
    name: str
    origin: Origin
    manager: Manager

    @property
    def service(self) -> Service:
        """The service as the recipe has it."""
        return self.recipe.services[self.name]


def service(place: Place) -> View:
    """Return what the template of a service is given.

    Raises:
        Unwritable: A value cannot be written.
    """
    wish, name = place.service, place.recipe.name
    path: Path = ("services", place.name)
    if place.manager.scope == "user":
        _refuse_for_user(wish, path)
    text = escape.instance if wish.kind == "template" else str
    user = wish.user or names.dynamic_user(name)
    state = f"envbuild/{name}/{place.name}" + ("/%i" if wish.kind == "template" else "")
    cache = f"envbuild/{name}/{user}"
    files = _at(path, seen, wish, place.origin)
    gpu = gpu_of(wish)
    own = _cards(place, path)
    system = place.manager.scope == "system"
    return {
        **order.of_service(
            place.recipe, place.name, system=system, server=own["server"] if own else None
        ),
        **_times(wish, gpu=gpu is not None),
        "description": _description(wish.description or f"{place.name} of {name}", path, text),
        "type": _type(wish),
        "exec": _command(wish.exec, (*path, "exec"), place.origin, text),
        "condition": _condition(wish, path, place.origin, gpu=gpu is not None),
        "ready": _ready(wish, path, place.origin, text),
        "environment_file": _at(path, escape.path, f"{place.origin.own}/units.env"),
        "environment": _environment(wish, path, cache, state if system else "", text),
        "unset": " ".join(one for one in _UNSET if one not in wish.environment),
        "working_directory": _directory(wish, path, state, text),
        "state_directory": state,
        "cache_directory": cache,
        "credentials": [
            f"{key}:{_at((*path, 'credentials', key), _path, file, text)}"
            for key, file in wish.credentials.items()
        ],
        "slice": names.slice_of(name),
        "limits": [
            *limits(wish.limits, (*path, "limits")),
            *_locked(gpu is not None, wish.limits),
        ],
        "system": system,
        "dynamic": wish.user is None,
        "user": user,
        "group": wish.group,
        **_files(files, path, text),
        "gpu": gpu is not None,
        "cards": own,
        "variables": cards.variables(),
        "network": wish.network or "full",
        "wanted_by": _wanted_by(wish, system=system),
    }


def _cards(place: Place, path: Path) -> View | None:
    """Return what concerns cards; a user's manager can keep none from anybody."""
    if place.manager.scope == "user":
        return None
    found: View | None = _at(
        (*path, "gpu"), cards.of_service, place.recipe, place.name, place.origin
    )
    return found


def limits(wish: Limits | None, path: Path) -> list[tuple[str, str]]:
    """Return the directives of limits with their values."""
    if wish is None:
        return []
    found: list[tuple[str, str]] = []
    for directive, field in _LIMITS:
        value = getattr(wish, field)
        if value is not None:
            found.append((directive, _size(f"{value}")))
    for directive, field in _BANDWIDTHS:
        for where, rate in getattr(wish, field).items():
            shown = _at((*path, field, where), escape.listed, where)
            found.append((directive, f"{shown} {_size(rate)}"))
    return found


def timer(place: Place) -> View:
    """Return what the template of a timer is given."""
    wish = place.service
    return {
        "description": f"When {names.service_unit(place.recipe.name, place.name, wish.kind)} runs",
        "schedule": wish.schedule,
    }


def socket(place: Place) -> View:
    """Return what the template of a socket is given.

    Raises:
        Unwritable: An address cannot be written.
    """
    wish, path = place.service, ("services", place.name)
    return {
        "description": f"What starts {names.service_unit(place.recipe.name, place.name, 'socket')}",
        "listen": [
            _at((*path, "listen", number), escape.line, address)
            for number, address in enumerate(wish.listen)
        ],
    }


def _at(path: Path, function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401
    """Return what a function makes of values; what it refuses is said with the place."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise Unwritable(path, str(error)) from None


def _refuse_for_user(wish: Service, path: Path) -> None:
    for field, value in (("user", wish.user), ("group", wish.group)):
        if value is not None:
            what = "a user's manager runs everything as its own user: leave it out"
            raise Unwritable((*path, field), what)
    for field, others in (("after", wish.after), ("requires", wish.requires)):
        for number, other in enumerate(others):
            if other in {order.ONLINE, "multi-user.target"}:
                what = f"a user's manager has no {other}"
                raise Unwritable((*path, field, number), what)


def _description(text: str, path: Path, finish: Callable[[str], str]) -> str:
    plain = " ".join(text.split())
    return finish(_at((*path, "description"), escape.line, plain))


def _path(text: str, finish: Callable[[str], str]) -> str:
    return finish(escape.path(text))


def _directory(wish: Service, path: Path, state: str, finish: Callable[[str], str]) -> str:
    if wish.working_directory is None:
        return f"%S/{state}"
    return str(_at((*path, "working_directory"), _path, wish.working_directory, finish))


def _type(wish: Service) -> str:
    if wish.kind in {"oneshot", "timer"}:
        return "oneshot"
    ready = wish.readiness
    return "notify" if ready is not None and ready.kind == "notify" else "exec"


def _command(
    command: str | tuple[str, ...], path: Path, origin: Origin, finish: Callable[[str], str]
) -> str:
    """Return a command line; a bare name is a program of the generation."""
    program, *rest = argv(command)
    if not program.startswith("/"):
        program = f"{origin.prefix}/bin/{program}"
    return finish(_at(path, escape.command, program, rest))


def _condition(wish: Service, path: Path, origin: Origin, *, gpu: bool) -> str:
    """Return the check before each start; it leaves what may come half of the time to start.

    With cards it runs outside of the sandbox, as what gives the cards does: to set up one more
    takes longer than the check.
    """
    script = _at((*path, "exec"), escape.word, f"{origin.own}/may_start.sh")
    if not gpu:
        return f"/bin/sh {script} host"
    limit_s = min(2 * _WAIT_S, words.seconds(_start(wish)))
    return f"+/bin/sh {script} cards {int(limit_s / 2)}"


def _ready(wish: Service, path: Path, origin: Origin, finish: Callable[[str], str]) -> str | None:
    """Return the command that ends when the service answers, None where none is needed."""
    ready = wish.readiness
    if ready is None or ready.kind not in {"port", "command"}:
        return None
    script = ["-I", f"{origin.own}/ready.py"]
    if ready.kind == "port":
        words_ = ["python", *script, "port", f"{ready.port}"]
        return _command(tuple(words_), path, origin, finish)
    program, *rest = argv(ready.command or ())
    if not program.startswith("/"):
        program = f"{origin.prefix}/bin/{program}"
    words_ = ["python", *script, "command", program, *rest]
    return _command(tuple(words_), (*path, "readiness", "command"), origin, finish)


def _environment(
    wish: Service, path: Path, cache: str, state: str, finish: Callable[[str], str]
) -> list[str]:
    """Return the assignments: caches and home, and what the recipe says, which wins."""
    told = wish.environment
    found = [f'"HOME=%S/{state}"'] if state and "HOME" not in told else []
    found += [text for name, text in _caches(cache) if name not in told]
    for name, value in told.items():
        try:
            found.append(finish(escape.assignment(name, value)))
        except ValueError as error:
            raise Unwritable((*path, "environment", name), str(error)) from None
    return found


@functools.lru_cache(maxsize=256)
def _caches(cache: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, f'"{name}=%C/{cache}{folder}"') for name, folder in _CACHES)


def _files(files: Seen, path: Path, finish: Callable[[str], str]) -> Mapping[str, Any]:
    found: dict[str, Any] = {
        "home": "tmpfs" if files.bind_read or files.bind_write else "yes",
        **_NO_FILES,
    }
    for key, field, paths in (
        ("bind_read", "read", files.bind_read),
        ("bind_write", "write", files.bind_write),
        ("read", "read", files.read),
        ("write", "write", files.write),
    ):
        if paths:
            place = (*path, field)
            found[key] = [finish(_at(place, escape.listed, one)) for one in paths]
    return found


def _times(wish: Service, *, gpu: bool) -> Mapping[str, Any]:
    return {
        **times.restarts(wish.restart, runs_to_its_end=wish.kind in {"oneshot", "timer"}, gpu=gpu),
        **times.stops(wish.stop),
        "timeout_start": _start(wish),
        "watchdog": wish.watchdog,
    }


def _start(wish: Service) -> str:
    if wish.kind in {"oneshot", "timer"}:
        return "infinity"
    ready = wish.readiness
    if ready is None or ready.kind == "none":
        return times.span(_STARTED_S)
    return ready.timeout or times.span(READY_S)


def _wanted_by(wish: Service, *, system: bool) -> str | None:
    if wish.kind not in {"service", "template"}:
        return None
    return "multi-user.target" if system else "default.target"


def _size(text: str) -> str:
    """Write a size as systemd reads it: `40GB` is `40G` there."""
    return text[:-1] if text.endswith(("KB", "MB", "GB", "TB")) else text


def _locked(gpu: bool, wish: Limits | None) -> list[tuple[str, str]]:  # noqa: FBT001
    """Let a service with cards lock memory: pinned buffers, and what network cards register."""
    if not gpu or (wish is not None and wish.locked_memory is not None):
        return []
    return [("LimitMEMLOCK", "infinity")]
