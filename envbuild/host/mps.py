"""CUDA's Multi-Process Service (MPS) at the place that programs look at by default."""

from collections.abc import Iterator

from envbuild.host.machine import Mps
from envbuild.host.readings import NoAnswer, NoPermission, Reading, Value, known
from envbuild.host.tree import Tree, then

CONTROL = "nvidia-cuda-mps-control"
SERVER = "nvidia-cuda-mps-server"
DEFAULT = "tmp/nvidia-mps"
"""Where daemon and clients meet without CUDA_MPS_PIPE_DIRECTORY (NVIDIA, MPS guide)."""
_COMM = CONTROL[:15]


def read(tree: Tree) -> Mps:
    """Return the daemons and servers that run, and what is at the default place.

    A daemon's name and a server's are the same in `comm` (15 characters), so `cmdline` tells.
    """
    running = _running(tree)
    return Mps(
        controls=then(running, lambda found: _of(found, CONTROL)),
        servers=then(running, lambda found: _of(found, SERVER)),
        socket=tree.has(f"{DEFAULT}/control"),
        listens=_listens(tree, running.value) if isinstance(running, Value) else running,
    )


def _running(tree: Tree) -> Reading[dict[int, str]]:
    """Return the programs of MPS that run, by the number of their process."""
    if not tree.has("proc/1/comm"):
        return NoPermission("processes of others are hidden (hidepid of /proc)")
    return then(tree.names("proc"), lambda names: dict(_programs(tree, names)))


def _programs(tree: Tree, names: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    for number in filter(str.isdigit, names):
        if known(tree.text(f"proc/{number}/comm")) == _COMM:
            yield int(number), program(tree, number)


def program(tree: Tree, number: str) -> str:
    """Return the name of the program that a process was started as."""
    words = (known(tree.text(f"proc/{number}/cmdline")) or "").split("\0")
    return words[0].rpartition("/")[2]


def _of(running: dict[int, str], wanted: str) -> tuple[int, ...]:
    return tuple(sorted(number for number, name in running.items() if name == wanted))


def _listens(tree: Tree, running: dict[int, str]) -> Reading[bool]:
    """Tell whether a daemon listens at the default place: the one of the file with its number."""
    number = tree.text(f"{DEFAULT}/{CONTROL}.pid")
    if isinstance(number, NoPermission | NoAnswer):
        return number
    text = known(number) or ""
    return Value(text.isdigit() and running.get(int(text)) == CONTROL)
