"""When a service is started again, and how it is stopped: the values, and their defaults."""

import functools
import math
from collections.abc import Mapping
from typing import Any, Final

from envbuild.recipe import signals, words
from envbuild.recipe.service import Restart, Stop
from envbuild.recipe.service_checks import MARGIN_S

DELAY: Final = "5s"
LIMIT: Final = 5
INTERVAL_S: Final = 3600.0
_LONGEST_DELAY: Final = "2min"
_AS_STATUS: Final = 128
_CLEAN: Final = ("SIGHUP", "SIGINT", "SIGTERM", "SIGPIPE")


@functools.lru_cache(maxsize=256)
def restarts(wish: Restart | None, *, runs_to_its_end: bool, gpu: bool) -> Mapping[str, Any]:
    """Return what a template is given of restarts."""
    restart = restart_of(wish, gpu=gpu)
    limit = restart.limit or LIMIT
    return {
        "restart": "no" if wish is None and runs_to_its_end else restart.policy,
        "restart_delay": restart.delay or DELAY,
        "restart_steps": (restart.steps or limit) if restart.max_delay else None,
        "restart_max_delay": restart.max_delay,
        "restart_prevent": " ".join(map(str, restart.not_on)),
        "start_limit_interval": restart.interval or span(interval_s(restart)),
        "start_limit_burst": limit,
    }


@functools.lru_cache(maxsize=256)
def stops(wish: Stop | None) -> Mapping[str, Any]:
    """Return what a template is given of stopping."""
    stop = wish or Stop()
    return {
        "kill_signal": stop.signal if stop.signal != "SIGTERM" else None,
        "success": _success(stop.signal),
        "timeout_stop": stop.timeout or span(stop_s(stop)),
    }


def restart_of(wish: Restart | None, *, gpu: bool) -> Restart:
    """Return how a service is restarted: with cards the delay grows, since drivers come late."""
    found = wish or Restart()
    if not gpu or found.max_delay is not None:
        return found
    grown = found.model_copy(update={"max_delay": _LONGEST_DELAY})
    grows = words.seconds(found.delay or DELAY) < words.seconds(_LONGEST_DELAY)
    ends = found.interval is None or burst_s(grown) <= words.seconds(found.interval)
    return grown if grows and ends else found


def _success(signal: str) -> str:
    """Return how an orderly stop ends: the code of a shell, and a signal systemd takes for none."""
    code = f"{_AS_STATUS + (signals.number(signal) or 0)}"
    return code if signal in _CLEAN else f"{code} {signal}"


def stop_s(stop: Stop) -> float:
    """Return how long a service has to stop where the recipe does not say."""
    return MARGIN_S + (words.seconds(stop.checkpoint_time) if stop.checkpoint_time else 0.0)


def burst_s(restart: Restart) -> float:
    """Return the least time in which as many starts fall as the limit allows."""
    longest = words.seconds(restart.max_delay or restart.delay or DELAY)
    return longest * (restart.limit or LIMIT)


def interval_s(restart: Restart) -> float:
    """Return the interval of the start limit where the recipe does not say: it is reached."""
    return max(INTERVAL_S, 2 * burst_s(restart))


def span(seconds: float) -> str:
    """Write a time as systemd reads it."""
    if math.isinf(seconds):
        return "infinity"
    whole = math.ceil(seconds)
    return f"{whole}s"
