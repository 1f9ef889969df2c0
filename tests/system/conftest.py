"""Machines for tests: each gets its own, forked from one that is prepared once a run."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from system import image, machine, marks, payload

_SUITE = os.environ.get("ENVBUILD_SYSTEM_SUITE", image.SUITES[0])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what stands in this folder."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("system")


@pytest.fixture(scope="session")
def booted() -> machine.Snapshot:
    """A machine that has just booted, and nothing more."""
    lacking = image.missing()
    if lacking is not None:
        pytest.skip(f"no machine can be made here without {lacking}")
    return machine.booted(_SUITE)


@pytest.fixture(scope="session")
def disk(booted: machine.Snapshot, run_folder: Path) -> Path:
    """The second disk: envbuild, environments, units."""
    path = run_folder / "payload.raw"
    with image.locked(run_folder):
        if not path.exists():
            payload.make_payload(booted.image, path, moves=marks.LONG or marks.CUTS > 0)
    return path


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run, the same for all its processes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "system"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def prepared(booted: machine.Snapshot, disk: Path, run_folder: Path) -> machine.Snapshot:
    """A machine with envbuild, the store, and the units of its recipes, none of which runs."""
    folder = run_folder / "prepared"
    with image.locked(run_folder):
        if not folder.exists():
            folder.mkdir()
            with booted.fork(disk) as made:
                made.put("/etc/credentials/token", "hidden", mode="600")
                payload.bring(made)
                made.save(folder)
    return machine.Snapshot(
        image=booted.image, disk=folder / "disk.qcow2", memory=folder / "memory"
    )


@pytest.fixture
def guest(prepared: machine.Snapshot, disk: Path) -> Iterator[machine.Machine]:
    """A machine of a test's own."""
    with prepared.fork(disk) as forked:
        yield forked
