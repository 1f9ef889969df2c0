"""Bytes and modes of everything in a store do not depend on the umask of who made it."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.networking import WHEELS, Network, network

_MASKS = (0o022, 0o077, 0o000)
"""The usual one, and the two between which every bit is once taken and once left."""
_LOCK_OF_UV = re.compile(r"cache/uv/.*\.lock")
_CACHE_OF_UV = re.compile(r"cache/uv/")


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path) as running:
        yield running


def look(store: Path) -> dict[str, tuple[int, str]]:
    """Return mode and digest of everything in a store; what differs each time has no digest."""
    found: dict[str, tuple[int, str]] = {}
    for folder, folders, files in os.walk(store):
        for name in (*folders, *files):
            path = Path(folder, name)
            relative = f"{path.relative_to(store)}"
            if _CACHE_OF_UV.match(relative):  # names of its own, new each time
                assert stat.S_IMODE(path.lstat().st_mode) in (
                    (0o666,) if _LOCK_OF_UV.fullmatch(relative) else (0o644, 0o755, 0o777)
                ), relative
                continue
            content = b""
            if path.is_symlink():
                content = os.fsencode(path.readlink())
            elif path.is_file() and "generations" in path.parts:
                content = path.read_bytes()
            found[relative] = (stat.S_IMODE(path.lstat().st_mode), _digest(relative, content))
    return found


def _digest(relative: str, content: bytes) -> str:
    """Leave out the time of creation, and what holds a digest of it."""
    if relative.endswith(("/manifest.json", "/files.json", "conda-meta/history")):
        return ""
    return hashlib.sha256(content).hexdigest()


@pytest.mark.slow
def test_everything_is_the_same_under_any_umask(net: Network) -> None:
    net.write(WHEELS)
    net.good("lock", "net", variables={"ENVBUILD_STORE": f"{net.root / 'other'}"})
    store = net.root / "store"
    seen: dict[int, dict[str, tuple[int, str]]] = {}
    for mask in _MASKS:
        before = os.umask(mask)
        try:
            compiled = {"ENVBUILD_COMPILE": "1"}
            net.good("create", "net", "--locked", variables=compiled)
            net.good("create", "net", "--locked", "--reinstall", variables=compiled)
            net.good("rollback", "net")
            net.good("run", "net", "--", "python", "-c", "import app")
        finally:
            os.umask(before)
        net.good("verify", "net")
        seen[mask] = look(store)
        store.rename(net.root / f"store-{mask:o}")
    usual = seen[0o022]
    for mask, found in seen.items():
        paths = usual.keys() | found.keys()
        assert [path for path in paths if usual.get(path) != found.get(path)] == [], f"{mask:o}"
    for path, (mode, _) in usual.items():
        assert mode in (0o644, 0o755, 0o777), path
    assert {"ledger.sqlite", "journal.jsonl", "journal.lock", "envs/net/lock"} <= usual.keys()
