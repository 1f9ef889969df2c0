"""Every fault of a network, against every engine: one line, nothing changed, and no trace left.

Where a test makes environments, faults that an engine cannot tell from another one (`_LIKE`) are
tried where ENVBUILD_TEST_FAULTS is "all", as in `nox -s integration`.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from integration import packed_python
from integration.faults import LOGIN_PAGE, Fault
from integration.networking import BOTH, CONDA, INDEXES, WHEELS, Network, network

from envbuild.store.layout import Store

pytestmark = pytest.mark.slow

LEAF = "leaf-1-py3-none-any.whl"
ALPHA = "/linux-64/alpha-1.0-0.conda"
PAGE = "/elsewhere/login"
HERE = "HERE"
TRANSPORT = {
    "never answers": Fault(hold="start"),
    "stops in the body": Fault(hold="body"),
    "trickles": Fault(trickle_s=0.1),
    "reset before": Fault(reset="start"),
    "reset after headers": Fault(reset="headers"),
    "reset in the body": Fault(reset="body"),
    "cut short": Fault(cut=40),
    "cut in a chunk": Fault(chunked_cut=40),
    "500": Fault(status=500),
    "502": Fault(status=502),
    "503": Fault(status=503),
    "403": Fault(status=403),
    "401": Fault(status=401),
    "login page": Fault(body=LOGIN_PAGE),
    "sent on to a login page": Fault(redirect=PAGE),
    "sent round in a circle": Fault(redirect=HERE),
}
CONTENT = {
    "404": Fault(status=404),
    "damaged": Fault(body=b"\x28\xb5\x2f\xfd damaged"),
    "not an index": Fault(body=b"hello"),
    "half of an index": Fault(body=b'{"packages": {"a-1-0.tar.bz2": {"name": "a"'),
    "empty": Fault(body=b""),
}
PAGES = {
    **TRANSPORT,
    "not an index": CONTENT["not an index"],
    "empty": CONTENT["empty"],
    "half of an index": Fault(
        body=b'{"meta": {"api-version": "1.1"}, "name": "le',
        kind="application/vnd.pypi.simple.v1+json",
    ),
}
_LIKE = {
    "reset before": "reset in the body",
    "reset after headers": "reset in the body",
    "cut short": "cut in a chunk",
    "500": "503",
    "502": "503",
    "403": "401",
    "sent on to a login page": "login page",
}
_ALL = os.environ.get("ENVBUILD_TEST_FAULTS") == "all"


def skip_like(name: str) -> None:
    """Skip a fault that is like another one, where time is short."""
    if name in _LIKE and not _ALL:
        pytest.skip(f"like {_LIKE[name]!r}, and takes long: nox -s integration")


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path) as running:
        yield running


@pytest.fixture
def packed(net: Network, warm: Store) -> Network:
    """A network whose project has the interpreter packed."""
    packed_python.give(warm, Store(root=net.root / "store"))
    return net


def break_channel(net: Network, fault: Fault, *paths: str) -> None:
    net.channel.files[PAGE] = LOGIN_PAGE
    for path in paths:
        net.channel.faults[path] = at(fault, net, path)


def break_index(net: Network, fault: Fault, *paths: str) -> None:
    net.channel.files[PAGE] = LOGIN_PAGE
    for path in paths:
        net.wheels.faults[path] = at(fault, net, path)


def at(fault: Fault, net: Network, path: str) -> Fault:
    """Return a fault whose redirect goes where it has to for a path."""
    if fault.redirect == PAGE:
        return replace(fault, redirect=f"{net.channel.url}{PAGE}")
    return replace(fault, redirect=path) if fault.redirect == HERE else fault


def repair(net: Network) -> None:
    net.channel.faults.clear()
    net.wheels.faults.clear()


def lock_survives(net: Network, spoil: Callable[[], None]) -> None:
    """Lock, spoil the network, see that nothing changes, and lock when it is good again."""
    net.write(CONDA)
    net.good("lock", "net", variables={"ENVBUILD_STORE": f"{net.root / 'other'}"})
    before = net.lock_files
    net.write(BOTH)
    spoil()
    net.refused("lock", "net")
    assert net.lock_files == before
    repair(net)
    net.good("lock", "net")
    assert net.lock_files != before


@pytest.mark.parametrize("name", [*TRANSPORT, *CONTENT])
def test_a_channel_while_locking(net: Network, name: str) -> None:
    fault = (TRANSPORT | CONTENT)[name]
    paths = [f"/{subdir}/{index}" for subdir in ("linux-64", "noarch") for index in INDEXES]
    lock_survives(net, lambda: break_channel(net, fault, *paths))


@pytest.mark.parametrize("name", PAGES)
def test_an_index_while_locking(net: Network, name: str) -> None:
    lock_survives(net, lambda: break_index(net, PAGES[name], "/main/simple/leaf/"))


def test_an_index_that_is_not_at_its_address_while_locking(net: Network) -> None:
    for recipe in (BOTH, WHEELS):
        net.write(recipe)
        told = net.refused("lock", "net", variables={"UV_DEFAULT_INDEX": net.index.url("gone")})
        assert told.startswith("error: the default index is not at its address")
        assert net.lock_files == {}
    own = f"{{name: own, url: '{net.index.url('gone')}', packages: [app]}}"
    net.write(f"{WHEELS}indexes: [{own}]\n")
    assert "index own is not at its address" in net.refused("lock", "net")


@pytest.mark.parametrize("root", [200, 404])
def test_a_package_that_an_index_does_not_have(net: Network, root: int) -> None:
    """Whether or not the index lists its projects (PEP 503 wants it, not all do)."""
    if root == 404:
        break_index(net, Fault(status=404), "/main/simple/")
    net.write(WHEELS.replace("[app]", "[app, ap-p]"))
    done = net.run("lock", "net")
    assert done.returncode == 4, done.stderr
    assert "ap-p was not found" in done.stderr
    assert "hint: see whether the name is right, and whether its index" in done.stderr


def create_survives(net: Network, recipe: str, spoil: Callable[[], None]) -> None:
    """Create a generation, fail at the next one, see that nothing changed, and create it."""
    net.write(recipe.replace("alpha", "gamma").replace("[app]", "[other]"))
    net.good("lock", "net")
    net.good("create", "net")
    before = (net.place / "current").readlink()
    generations = sorted((net.place / "generations").iterdir())
    net.write(recipe)
    net.good("lock", "net")
    lock = net.lock_files
    spoil()
    net.refused("create", "net")
    assert (net.place / "current").readlink() == before
    assert sorted((net.place / "generations").iterdir()) == generations
    assert net.lock_files == lock
    repair(net)
    net.good("create", "net")
    assert (net.place / "current").readlink() != before
    net.good("verify", "net")


@pytest.mark.parametrize("name", [*TRANSPORT, "404", "damaged", "empty"])
def test_a_channel_while_creating(net: Network, name: str) -> None:
    skip_like(name)
    fault = (TRANSPORT | CONTENT)[name]
    create_survives(net, CONDA, lambda: break_channel(net, fault, ALPHA))


@pytest.mark.parametrize("name", [*TRANSPORT, "404", "damaged", "empty"])
def test_an_index_while_creating(packed: Network, name: str) -> None:
    skip_like(name)
    fault = (TRANSPORT | CONTENT)[name]
    create_survives(packed, WHEELS, lambda: break_index(packed, fault, f"/main/files/{LEAF}"))


def without_uvs_cache(net: Network) -> None:
    shutil.rmtree(net.root / "store/cache/uv")


@pytest.mark.parametrize("name", [*PAGES, "404"])
def test_an_index_s_pages_while_creating(packed: Network, name: str) -> None:
    skip_like(name)
    fault = (PAGES | CONTENT)[name]

    def spoil() -> None:
        without_uvs_cache(packed)
        break_index(packed, fault, "/main/simple/leaf/")

    create_survives(packed, WHEELS, spoil)


def test_an_index_that_is_not_at_its_address_while_creating(packed: Network) -> None:
    packed.write(WHEELS)
    packed.good("lock", "net")
    without_uvs_cache(packed)
    gone = {"UV_DEFAULT_INDEX": packed.index.url("gone")}
    told = packed.refused("create", "net", "--locked", variables=gone)
    assert told.startswith("error: the default index is not at its address")
    assert not list(packed.place.glob("generations/*"))
    packed.good("create", "net")


@pytest.mark.parametrize("name", ["500", "503", "reset in the body", "cut short", "never answers"])
def test_what_goes_wrong_once_is_tried_again(net: Network, name: str) -> None:
    once = replace(TRANSPORT[name], times=1)
    net.write(BOTH)
    break_channel(net, once, "/linux-64/repodata.json")
    break_index(net, once, "/main/simple/leaf/")
    net.good("lock", "net")
    net.write(CONDA)
    net.good("lock", "net")
    break_channel(net, once, ALPHA)
    net.good("create", "net")
