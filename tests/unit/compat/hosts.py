"""Hosts for judges: a root folder's files, and what NVML says beside them."""

from dataclasses import replace
from functools import cache

from host_trees import HostTree, everyone

from envbuild.compat.model import Facts
from envbuild.compat.tables import load
from envbuild.host.machine import Host
from envbuild.host.model import Gpu, Nvml, NvmlState
from envbuild.host.probe import Where, probe
from envbuild.host.readings import Value

TAKEN = "2026-12-01T00:00:00Z"


@cache
def facts() -> Facts:
    return load(only=("cuda", "gpus", "xids"))


def gpu(index: int = 0, capability: str = "9.0", **more: object) -> Gpu:
    """A card that says its number, its name and what it can do."""
    found = Gpu(
        index=index,
        name=Value("NVIDIA H100 80GB HBM3"),
        compute_capability=Value(capability),
    )
    return replace(found, **more)  # type: ignore[arg-type]


def nvml(*gpus: Gpu, driver: str = "580.95.05") -> Nvml:
    return Nvml(
        state=NvmlState.ANSWERED,
        library=Value(f"13.{driver}"),
        driver=Value(driver),
        cuda=Value("13.0"),
        gpus=gpus,
    )


def host(tree: HostTree, said: Nvml | None = None, **variables: str) -> Host:
    answer = said or Nvml(state=NvmlState.NO_LIBRARY)
    where = Where(root=tree.root, store=tree.root, variables=variables, may=everyone)
    return probe(where, ask=lambda: answer, name="node1", taken=TAKEN)
