"""Fixtures that several integration tests share because they are slow to make."""

import os
from pathlib import Path

import pytest
from integration import packed_python, stub_channel

from envbuild.store.layout import Store


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with the running interpreter in its caches, the same for all processes."""
    base = tmp_path_factory.getbasetemp()
    return packed_python.packed(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


@pytest.fixture(scope="session")
def stub_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a channel tree of stubs for both h100-pt24 recipes, or skip the test.

    Serve it with `channel_server.serve` and reach it by `stub_channel.mirrors`.
    """
    pythons = stub_channel.pythons()
    missing = [minor for minor in stub_channel.NEEDED if minor not in pythons]
    if missing:
        pytest.skip(f"no CPython {' or '.join(missing)} on this machine")
    records = stub_channel.records(*stub_channel.DRIVEN, cache=tmp_path_factory.mktemp("snapshot"))
    root = tmp_path_factory.mktemp("stubs")
    stub_channel.build(records, root, pythons=pythons)
    return root
