"""What the fields of services say to each other, and services to other services."""

import functools
import math
import re
from collections.abc import Iterator
from typing import Final

from envbuild.document import Path
from envbuild.recipe import command_line, words
from envbuild.recipe.complaints import nearest
from envbuild.recipe.model import Recipe
from envbuild.recipe.service import Gpu, Service

Complaint = tuple[Path, str]

SUFFIXES: Final = (
    ".service",
    ".target",
    ".mount",
    ".socket",
    ".timer",
    ".path",
    ".device",
    ".slice",
    ".automount",
    ".swap",
)
MARGIN_S: Final = 30.0
"""How much longer than its checkpoint a service has to stop: it ends its own work meanwhile."""
ACTIVATION: Final = ("PATH", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "CONDA_SHLVL")
"""What activation always sets."""
_ALL: Final = 100.0
_RUNS_TO_ITS_END: Final = ("oneshot", "timer")


def complaints(recipe: Recipe, known: tuple[str, ...]) -> Iterator[Complaint]:
    """Give the paths of what is wrong, each with the reason.

    Args:
        recipe: The recipe, without the parts that are wrong in themselves.
        known: Names of all services that are written, wrong ones among them.
    """
    for name, service in recipe.services.items():
        path: Path = ("services", name)
        yield from _kind(service, path)
        yield from _exec(service, path)
        yield from _readiness(service, path)
        yield from _restart(service, path)
        yield from _stop(service, path)
        yield from _gpu(service, path)
        yield from _order(recipe, name, known)
        for variable in ACTIVATION:
            if variable in service.environment:
                what = "is what activation sets; the generation's own value would win"
                yield (*path, "environment", variable), what
    if recipe.slice is not None and recipe.slice.locked_memory is not None:
        what = "is a limit of each process: say it in the limits of a service"
        yield ("slice", "locked_memory"), what
    yield from _circles(recipe)
    yield from _shared_cards(recipe)


def _order(recipe: Recipe, name: str, known: tuple[str, ...]) -> Iterator[Complaint]:
    service = recipe.services[name]
    for field, others in (("after", service.after), ("requires", service.requires)):
        for place, other in enumerate(others):
            path: Path = ("services", name, field, place)
            if other == name:
                yield path, "a service cannot wait for itself"
            elif other in recipe.services and recipe.services[other].kind == "template":
                yield path, f"{other} is a template: only its instances can be waited for"
            elif other not in known and not other.endswith(SUFFIXES):
                what = f"there is no service {other!r}{nearest(other, known)}"
                yield path, what


def _kind(service: Service, path: Path) -> Iterator[Complaint]:
    for field, kind, value in (
        ("schedule", "timer", service.schedule),
        ("listen", "socket", service.listen),
    ):
        if value and service.kind != kind:
            yield (*path, field), f"is only for kind {kind}; this is kind {service.kind}"
        if not value and service.kind == kind:
            yield (*path, field), f"is missing: a {kind} needs it"
    if service.watchdog is not None and service.kind in _RUNS_TO_ITS_END:
        yield (*path, "watchdog"), f"is not for kind {service.kind}: it runs to its end"


def argv(command: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a command as a recipe has it."""
    return command_line.split(command) if isinstance(command, str) else command


def _exec(service: Service, path: Path) -> Iterator[Complaint]:
    yield from _program(argv(service.exec)[0], (*path, "exec"))
    if service.readiness is not None and service.readiness.command is not None:
        program = argv(service.readiness.command)[0]
        yield from _program(program, (*path, "readiness", "command"))


def _program(program: str, path: Path) -> Iterator[Complaint]:
    """Complain of a program that systemd would not start (`config_parse_exec`)."""
    if not program.strip():
        yield path, "the command is empty"
    elif "/" in program and not program.startswith("/"):
        what = f"{program!r} is neither a program's name nor an absolute path"
        yield path, what
    elif re.search(r"[\x00-\x1f\x7f\"'\\$]|(^|/)\.\.?(/|$)", program) or program.endswith("/"):
        what = f"{program!r}: systemd takes no such path of a program"
        yield path, what


def _readiness(service: Service, path: Path) -> Iterator[Complaint]:
    ready = service.readiness
    if ready is None:
        return
    for kind, value in (("port", ready.port), ("command", ready.command)):
        place: Path = (*path, "readiness", kind)
        if value is not None and ready.kind != kind:
            yield place, f"is only for kind {kind}; this is kind {ready.kind}"
        if value is None and ready.kind == kind:
            yield place, f"is missing: readiness of kind {kind} needs it"
    if service.kind in _RUNS_TO_ITS_END and ready.kind != "none":
        what = f"is not for kind {service.kind}: it is ready when it has ended"
        yield (*path, "readiness", "kind"), what


def _restart(service: Service, path: Path) -> Iterator[Complaint]:
    wish = service.restart
    if wish is None:
        return
    if wish.policy == "always" and service.kind in _RUNS_TO_ITS_END:
        what = f"a {service.kind} ends by itself: on-failure, on-abnormal or no"
        yield (*path, "restart", "policy"), what
    if wish.steps is not None and wish.max_delay is None:
        yield (*path, "restart", "steps"), "needs max_delay, up to which the delay grows"
    if wish.delay and wish.max_delay and _seconds(wish.delay) > _seconds(wish.max_delay):
        yield (*path, "restart", "max_delay"), f"is shorter than the delay, {wish.delay}"
    for field, span in (("delay", wish.delay), ("max_delay", wish.max_delay)):
        if span and math.isinf(_seconds(span)):
            yield (*path, "restart", field), "a restart that never comes is policy: no"


def _stop(service: Service, path: Path) -> Iterator[Complaint]:
    wish = service.stop
    if wish is None or wish.timeout is None or wish.checkpoint_time is None:
        return
    least = _seconds(wish.checkpoint_time) + MARGIN_S
    if _seconds(wish.timeout) < least:
        what = (
            f"is shorter than the checkpoint, {wish.checkpoint_time}, and {MARGIN_S:.0f} s: "
            "it would be killed while it writes"
        )
        yield (*path, "stop", "timeout"), what


def _seconds(span: str) -> float:
    return words.seconds(span)


def gpu_of(service: Service) -> Gpu | None:
    """Return what a service wants of cards, None for no card."""
    wish = service.gpu
    if isinstance(wish, int):
        return _whole(wish) if wish else None
    if wish is None or (wish.count == 0 and not wish.cards):
        return None
    return wish


@functools.cache
def _whole(count: int) -> Gpu:
    return Gpu(count=count)


def count_of(wish: Gpu) -> int:
    """Return how many cards are wanted."""
    if wish.cards:
        return len(wish.cards)
    return 1 if wish.count is None else wish.count


def by_mps(wish: Gpu) -> bool:
    """Tell whether a share is kept apart by MPS: what is usual for a part of a card."""
    shared = wish.memory is not None or wish.sm_share is not None
    return wish.isolation == "mps" or (wish.isolation is None and shared)


def _gpu(service: Service, path: Path) -> Iterator[Complaint]:
    wish = gpu_of(service)
    if wish is None:
        return
    if wish.cards and wish.count not in {None, len(wish.cards)}:
        what = f"{len(wish.cards)} cards are named; leave it out or say as many"
        yield (*path, "gpu", "count"), what
    for place, card in enumerate(wish.cards):
        if card in wish.cards[:place]:
            yield (*path, "gpu", "cards", place), f"the card {card} stands twice"
    if wish.isolation == "mig" and count_of(wish) > 1:
        what = "a CUDA process uses one MIG instance: ask for one"
        yield (*path, "gpu", "cards" if wish.cards else "count"), what
    if by_mps(wish) and wish.memory is not None and wish.memory.endswith("%"):
        what = "a limit under MPS is an amount, such as 8G; a share of the memory needs MIG"
        yield (*path, "gpu", "memory"), what
    if wish.sm_share is not None and float(wish.sm_share[:-1]) > _ALL:
        yield (*path, "gpu", "sm_share"), "is more than the card has: at most 100%"
    if wish.memory == "infinity":
        yield (*path, "gpu", "memory"), "no card has that much: leave it out for a whole card"
    instances = [card for card in wish.cards if card.startswith("MIG-")]
    if len(instances) > 1 and wish.isolation != "mig":
        yield (*path, "gpu", "cards"), "a CUDA process uses one MIG instance: name one"


def _shared_cards(recipe: Recipe) -> Iterator[Complaint]:
    """Complain of services of two users on one MPS server; it serves one user at a time."""
    sharing = [
        (name, service, wish)
        for name, service in recipe.services.items()
        if (wish := gpu_of(service)) is not None and by_mps(wish)
    ]
    for place, (name, service, wish) in enumerate(sharing):
        for other, earlier, theirs in sharing[:place]:
            apart = wish.cards and theirs.cards and not set(wish.cards) & set(theirs.cards)
            if service.user != earlier.user and not apart:
                what = (
                    f"{other} and {name} would share a card through MPS as two users: its server "
                    "serves one user at a time, and the other one waits without an error"
                )
                yield ("services", name, "user"), what
                break


def _circles(recipe: Recipe) -> Iterator[Complaint]:
    """Complain of services that wait for each other in a circle, once per circle."""
    done: set[str] = set()
    for start in recipe.services:
        trail: list[str] = []
        name = start
        stack = [(name, _waits_for(recipe, name))]
        while stack and start not in done:
            name, others = stack[-1]
            if name not in trail:
                trail.append(name)
            other = next((one for one in others if one in recipe.services), None)
            if other is None:
                stack.pop()
                trail.remove(name)
                done.add(name)
            elif other in trail and other != name:
                circle = " after ".join([*trail[trail.index(other) :], other])
                yield ("services", name, "after"), f"a circle: {circle}"
            elif other not in done and other != name:
                stack.append((other, _waits_for(recipe, other)))


def _waits_for(recipe: Recipe, name: str) -> Iterator[str]:
    service = recipe.services[name]
    return iter((*service.after, *service.requires))
