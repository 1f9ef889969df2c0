"""A file system that refuses hard links although store and cache are both on it."""

import json
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration import no_links
from integration.networking import CONDA, WHEELS, Network, network

_BEFORE = (sys.executable, no_links.__file__)


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    if platform.machine() not in {"x86_64", "aarch64"}:
        pytest.skip(f"the numbers of system calls of {platform.machine()} are not known")
    with network(tmp_path) as running:
        yield running


def content(prefix: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and bytes of what packages installed, without the prefix in them."""
    return {
        f"{path.relative_to(prefix)}": (
            path.lstat().st_mode,
            path.read_bytes().replace(bytes(prefix), b"PREFIX"),
        )
        for path in prefix.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and path.parent.name not in {".envbuild", "conda-meta"}
    }


@pytest.mark.parametrize("recipe", [CONDA, WHEELS], ids=["conda", "wheels"])
def test_files_are_copied_and_the_same(net: Network, recipe: str) -> None:
    net.write(recipe)
    net.good("lock", "net")
    done = net.run("create", "net", "--json", before=_BEFORE)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (note,) = [one for one in told["findings"] if one["code"] == "files-copied"]
    assert f"{net.root / 'store/cache'}" in note["what"]
    copied = Path(told["prefix"])
    linked = json.loads(net.run("create", "net", "--reinstall", "--json").stdout)
    assert [one["code"] for one in linked["findings"] if one["code"] == "files-copied"] == []
    assert content(copied) == content(Path(linked["prefix"]))
    net.good("verify", "net")
    net.good("rollback", "net")
    net.good("verify", "net")
