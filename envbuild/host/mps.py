"""CUDA's Multi-Process Service (MPS) at the place that programs look at by default."""

from envbuild.host import processes
from envbuild.host.machine import Mps
from envbuild.host.processes import COMM_BYTES, Processes
from envbuild.host.readings import NoAnswer, NoPermission, Reading, Value, known
from envbuild.host.tree import Tree, then

CONTROL = "nvidia-cuda-mps-control"
SERVER = "nvidia-cuda-mps-server"
DEFAULT = "tmp/nvidia-mps"
"""Where daemon and clients meet without CUDA_MPS_PIPE_DIRECTORY (NVIDIA, MPS guide)."""
COMM = CONTROL[:COMM_BYTES]
"""What /proc calls a daemon, and a server too: `cmdline` tells them apart."""


def read(tree: Tree, found: Reading[Processes]) -> Mps:
    """Return the daemons and servers that run, and what is at the default place.

    Args:
        tree: Where /proc and the default place are.
        found: The processes.
    """
    running = _running(tree, found)
    return Mps(
        controls=then(running, lambda found: _of(found, CONTROL)),
        servers=then(running, lambda found: _of(found, SERVER)),
        socket=tree.has(f"{DEFAULT}/control"),
        listens=_listens(tree, running.value) if isinstance(running, Value) else running,
    )


def _running(tree: Tree, found: Reading[Processes]) -> Reading[dict[int, str]]:
    """Return the programs of MPS that run, by the number of their process."""
    if processes.are_hidden(tree):
        return processes.HIDDEN
    return then(
        found,
        lambda names: {
            int(number): program(tree, number) for number, name in names.items() if name == COMM
        },
    )


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
