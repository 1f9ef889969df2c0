"""What a unit says of cards: who gives them to it when it starts, and the MPS server it shares.

No unit names a card that the recipe does not name: a script in the generation asks the host's
ledger (`store.cards`), lets the unit open the nodes and writes the variables.
"""

from collections.abc import Iterator
from typing import Any, Final

from envbuild.recipe.model import Recipe
from envbuild.recipe.service import Gpu, Service
from envbuild.recipe.service_checks import by_mps, count_of, gpu_of
from envbuild.recipe.words import size_bytes
from envbuild.units import escape, names
from envbuild.units.model import Origin

_OWN: Final = "/run/envbuild/cards"
_MPS: Final = "/run/envbuild-mps"


def of_service(recipe: Recipe, name: str, origin: Origin) -> dict[str, Any] | None:
    """Return what the template of a service is given of cards, None for no card."""
    service = recipe.services[name]
    wish = gpu_of(service)
    if wish is None:
        return None
    limits = service.limits
    told = limits is not None and (limits.cpus is not None or limits.memory_nodes is not None)
    words = ["--job", f"{recipe.name}.{name}", "--mode", _mode(wish)]
    words += ["--affinity", "none" if told else wish.affinity]
    if wish.memory is not None:
        words += ["--memory", _plain(wish.memory)]
    if wish.sm_share is not None:
        words += ["--sm", wish.sm_share]
    if wish.pcie is not None:
        words += ["--pcie", f"{size_bytes(wish.pcie)}"]
    server = names.mps(recipe.name, wish.cards) if by_mps(wish) else None
    words += ["--server", server] if server else _which(wish)
    return {
        "take": _take(origin, *words),
        "give": _command(origin, "cards.py", "give", "--server", server) if server else None,
        "server": server,
        "environment": list(_client(recipe, wish)) if server else [],
        "directory": f"{_MPS}/{_stem(server)}" if server else None,
    }


def servers(recipe: Recipe, origin: Origin) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the MPS servers of a recipe's services, with what the template is given."""
    found: dict[str, list[str]] = {}
    for name, service in recipe.services.items():
        wish = gpu_of(service)
        if wish is not None and by_mps(wish):
            found.setdefault(names.mps(recipe.name, wish.cards), []).append(name)
    for unit, clients in found.items():
        wishes = [wish for name in clients if (wish := gpu_of(recipe.services[name])) is not None]
        user = recipe.services[clients[0]].user
        most = max(wishes, key=count_of)
        yield (
            unit,
            {
                "description": f"MPS server for {', '.join(clients)} of {recipe.name}",
                "take": _take(origin, "--mode", "mps", *_which(most)),
                "exclusive": _command(origin, "compute_mode.py", "exclusive"),
                "back": _command(origin, "compute_mode.py", "back"),
                "variables": variables(),
                "directory": f"{_MPS}/{_stem(unit)}",
                "runtime": f"{_MPS.rpartition('/')[2]}/{_stem(unit)}",
                "nodes": names.NODES,
                "slice": names.slice_of(recipe.name),
                "dynamic": user is None,
                "user": user or names.dynamic_user(recipe.name),
            },
        )


def for_transient(text: str, unit: str) -> str:
    """Return a command for systemd-run, where nothing is a specifier."""
    return text.replace("%n", unit).replace("%%", "%")


def is_cut(service: Service) -> bool:
    """Tell whether a service wants a MIG instance, which has to be there first."""
    wish = gpu_of(service)
    return wish is not None and wish.isolation == "mig"


def is_watched(service: Service) -> bool:
    """Tell whether the PCIe traffic of a service has a limit, which somebody has to watch."""
    wish = gpu_of(service)
    return wish is not None and wish.pcie is not None


def variables() -> str:
    """Return where the script puts the variables of a unit."""
    return f"-{_OWN}/%n.env"


def _client(recipe: Recipe, wish: Gpu) -> Iterator[str]:
    """Give the variables of an MPS client that do not depend on the host."""
    folder = f"{_MPS}/{_stem(names.mps(recipe.name, wish.cards))}"
    yield escape.assignment("CUDA_MPS_PIPE_DIRECTORY", f"{folder}/pipe")
    yield escape.assignment("CUDA_MPS_LOG_DIRECTORY", f"{folder}/log")
    if wish.sm_share is not None:
        share = wish.sm_share.removesuffix("%")
        yield escape.assignment("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", share)


def _stem(unit: str) -> str:
    return unit.removeprefix("envbuild-").removesuffix(".service")


def _mode(wish: Gpu) -> str:
    if by_mps(wish):
        return "mps"
    return wish.isolation or "whole"


def _which(wish: Gpu) -> list[str]:
    return [
        "--count",
        f"{count_of(wish)}",
        *(word for card in wish.cards for word in ("--card", card)),
    ]


def _plain(size: str) -> str:
    """Return a size as CUDA and the script read it: `40GB` is `40G`."""
    return size[:-1] if size.endswith(("KB", "MB", "GB", "TB")) else size


def _take(origin: Origin, *words: str) -> str:
    """Return the command that gives a unit its cards, run as `_command` does."""
    script, program = f"{origin.own}/cards.sh", f"{origin.prefix}/bin/python"
    own = " ".join(escape.word(word) for word in (script, program))
    return " ".join(["+/bin/sh", own, "%n", *map(escape.word, words)])


def _command(origin: Origin, script: str, what: str, *words: str) -> str:
    """Return a command that runs as root, outside of the unit's sandbox but inside its cgroup.

    `-S`: nothing of the environment's packages runs with it, and it starts faster.
    """
    program = escape.program(f"{origin.prefix}/bin/python")
    own = escape.word(f"{origin.own}/{script}")
    return " ".join([f"+{program}", "-I", "-S", own, what, "%n", *map(escape.word, words)])
