"""The processes of a host, and whether those of others can be seen."""

from typing import Final

from envbuild.host.readings import NoPermission, Reading, known
from envbuild.host.tree import Tree, then

COMM_BYTES: Final = 15
"""A process's name in /proc is cut to so many (proc(5), `comm`)."""
HIDDEN: Final = NoPermission("processes of others are hidden (hidepid of /proc)")
Processes = dict[str, str]
"""Names of processes, by their numbers."""


def read(tree: Tree) -> Reading[Processes]:
    """Return the processes that can be seen."""
    return then(
        tree.names("proc"),
        lambda names: {
            name: known(tree.text(f"proc/{name}/comm")) or "" for name in names if name.isdigit()
        },
    )


def are_hidden(tree: Tree) -> bool:
    """Tell whether the processes of other users cannot be seen."""
    return not tree.has("proc/1/comm")
