"""`probe`: everything that a host says of itself, read once; nothing is changed."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from envbuild.host import daemons, driver, kernel_log, loader, mps, pci, processes, system
from envbuild.host.machine import Host, Machine
from envbuild.host.model import Nvml
from envbuild.host.readings import known
from envbuild.host.tree import Tree

_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """Where a host's files are.

    Attributes:
        root: The root with `/proc`, `/sys`, `/dev` and `/etc`.
        driver_root: The root of the driver's own files, where a container has them; None for the
            same.
        store: The store, whose disk is looked at.
        variables: The environment of this process.
        may: Says whether this user may open a file.
    """

    root: Path = Path("/")
    driver_root: Path | None = None
    store: Path = Path("/")
    variables: Mapping[str, str] = field(default_factory=dict)
    may: Callable[[Path, int], bool] = os.access


def probe(where: Where, *, ask: Callable[[], Nvml], name: str, taken: str) -> Host:
    """Return what a host says of itself; files are read while NVML is asked.

    Args:
        where: Where its files are.
        ask: Asks NVML; `gpus.read_nvml`. It is called in this thread: what it starts ends with it.
        name: The machine's name.
        taken: This instant (RFC 3339, UTC).
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        files = pool.submit(_machine, where)
        nvml = ask()
        return Host(
            name=name,
            taken=taken,
            root=os.geteuid() == 0,
            driver_root=str(where.driver_root or where.root),
            nvml=nvml,
            machine=files.result(),
        )


def _machine(where: Where) -> Machine:
    tree, driver_tree = Tree(where.root), Tree(where.driver_root or where.root)
    cpu = system.cpu(tree)
    machine = known(cpu.architecture) or "x86_64"
    found = processes.read(tree)
    return Machine(
        driver=driver.read(tree, driver_tree, machine=machine),
        nodes=driver.nodes(tree, where.may),
        pci=pci.read(tree),
        log=kernel_log.read(tree),
        daemons=daemons.read(tree, driver_tree, found),
        mps=mps.read(tree, found),
        system=system.system(tree, machine=machine),
        cpu=cpu,
        memory=system.memory(tree),
        disk=system.disk(where.store),
        loader=loader.read(tree, where.variables, machine=machine),
        variables={name: where.variables[name] for name in _VARIABLES if where.variables.get(name)},
        modprobe=driver.modprobe(driver_tree),
        rdma=tree.names("sys/class/infiniband"),
    )
