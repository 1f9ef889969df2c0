"""What there is to say about services that can be rendered: `Finding`s, all of them."""

import re
from collections.abc import Iterator
from typing import Final

from envbuild.document import Path
from envbuild.findings import Finding, Findings, Severity
from envbuild.recipe import words
from envbuild.recipe.load import LoadedRecipe
from envbuild.recipe.service import Restart, Service
from envbuild.recipe.service_checks import argv
from envbuild.store.environment import Environment
from envbuild.units import times, versions
from envbuild.units.model import Manager

_TORCHRUN_S: Final = 30.0
_SECRET: Final = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_KEY)($|_)")


def judge(loaded: LoadedRecipe, manager: Manager, *, activation: Environment | None) -> Findings:
    """Return what there is to say, in the order of the recipe.

    Args:
        loaded: The recipe.
        manager: The systemd that its units are for.
        activation: What activation sets, None where the generation is not there.
    """
    found: list[Finding] = []
    for name, service in loaded.recipe.services.items():
        path: Path = ("services", name)
        for checked in (_restarts(service, path, loaded), _torchrun(service, path, loaded)):
            found += checked
        found += _variables(service, path, loaded, activation)
        found += _lacking(service, path, loaded, manager)
    return tuple(found)


def _restarts(service: Service, path: Path, loaded: LoadedRecipe) -> Iterator[Finding]:
    wish = service.restart
    if wish is None or wish.interval is None or wish.policy == "no":
        return
    burst = times.burst_s(wish)
    if burst > words.seconds(wish.interval):
        yield Finding(
            code="never-gives-up",
            severity=Severity.WARNING,
            where=loaded.where(*path, "restart", "interval"),
            what=f"{wish.limit or times.LIMIT} starts take {times.span(burst)} of waiting alone, "
            f"more than the interval of {wish.interval}: the limit is never reached",
            why="a service that cannot start is started again for ever",
            hint=f"interval: {times.span(times.interval_s(wish))}",
        )


def _torchrun(service: Service, path: Path, loaded: LoadedRecipe) -> Iterator[Finding]:
    stop = service.stop
    if stop is None or stop.checkpoint_time is None:
        return
    command = argv(service.exec)
    program = command[0].rpartition("/")[2]
    is_torchrun = program == "torchrun" or "torch.distributed.run" in command
    if is_torchrun and words.seconds(stop.checkpoint_time) > _TORCHRUN_S:
        yield Finding(
            code="torchrun-kills",
            severity=Severity.WARNING,
            where=loaded.where(*path, "stop", "checkpoint_time"),
            what=f"torchrun kills its workers {_TORCHRUN_S:.0f} s after it was asked to stop, and "
            f"the checkpoint takes {stop.checkpoint_time}",
            why="its time between SIGTERM and SIGKILL is its own, whatever the unit allows "
            "(torch/distributed/elastic/multiprocessing/api.py, close(timeout=30))",
            hint="write the checkpoint before, or start the workers without torchrun",
        )


def _variables(
    service: Service, path: Path, loaded: LoadedRecipe, activation: Environment | None
) -> Iterator[Finding]:
    for name, value in service.environment.items():
        where = loaded.where(*path, "environment", name)
        if _SECRET.search(name.upper()) and value:
            yield Finding(
                code="secret-in-unit",
                severity=Severity.WARNING,
                where=where,
                what=f"{name} looks like a secret, and every user can read a unit",
                why="systemd hands out variables of a unit to whoever asks (systemd.exec(5))",
                hint="name a file under credentials; the program reads $CREDENTIALS_DIRECTORY/NAME",
            )
        there = {} if activation is None else activation.apply({})
        if name in there and there[name] != value:
            yield Finding(
                code="variable-of-activation",
                severity=Severity.WARNING,
                where=where,
                what=f"activation sets {name} as well, and its value wins",
                why="systemd lets EnvironmentFile= win over Environment= (systemd.exec(5))",
                hint="leave it out, or give the program an option",
            )


def _lacking(
    service: Service, path: Path, loaded: LoadedRecipe, manager: Manager
) -> Iterator[Finding]:
    lacks = versions.missing(manager.version)
    restart = service.restart or Restart()
    for field, directive, told in (
        (("restart", "max_delay"), "RestartMaxDelaySec", restart.max_delay),
        (("credentials",), "LoadCredential", service.credentials),
    ):
        if told and directive in lacks:
            since, lost = versions.SINCE[directive]
            yield Finding(
                code="systemd-lacks",
                severity=Severity.NOTE,
                where=loaded.where(*path, *field),
                what=f"systemd {manager.version} has no {directive}=: {lost}",
                why=f"it came with systemd {since}",
            )
