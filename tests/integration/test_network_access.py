"""The network as hosts have it: mirrors, logins, proxies and certificates, for every engine."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.channel_server import make_certificate, serve
from integration.faults import LOGIN_PAGE, Fault
from integration.networking import BOTH, CHANNEL, CONDA, WHEELS, Network, network

ALPHA = "/linux-64/alpha-1.0-0.conda"
CHANNEL_SECRET, INDEX_SECRET = "s3cret-of-channel", "s3cret-of-index"


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path) as running:
        yield running


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(body=b"other bytes"), "sha256"),
        (Fault(body=LOGIN_PAGE), "web page"),
        (Fault(cut=40), "cut short"),
        (Fault(status=404), "404"),
    ],
)
def test_the_next_mirror_makes_good_what_one_has_wrongly(
    net: Network, fault: Fault, said: str
) -> None:
    net.write(CONDA)
    net.good("lock", "net")
    with serve(*net.channel.roots) as second:
        net.channel.faults[ALPHA] = fault
        both = f"{CHANNEL}={net.channel.url} {CHANNEL}={second.url}"
        text = net.good("create", "net", variables={"ENVBUILD_CHANNEL_MIRRORS": both})
        assert second.paths() == [ALPHA]
    assert said in text
    assert "trying the next mirror" in text
    net.good("verify", "net")


def test_the_next_mirror_of_an_index_of_a_channel(net: Network) -> None:
    net.write(CONDA)
    with serve(*net.channel.roots) as second:
        for subdir in ("linux-64", "noarch"):
            net.channel.faults[f"/{subdir}/repodata.json"] = Fault(hold="start")
        both = f"{CHANNEL}={net.channel.url} {CHANNEL}={second.url}"
        net.good("lock", "net", variables={"ENVBUILD_CHANNEL_MIRRORS": both})


@contextlib.contextmanager
def command_lines() -> Iterator[set[bytes]]:
    """Collect the command lines of all processes while the block runs."""
    seen: set[bytes] = set()
    left = threading.Event()

    def look() -> None:
        while not left.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    seen.add(path.read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        left.set()
        thread.join()


def test_logins_show_nowhere(net: Network) -> None:
    net.channel.login = f"bob:{CHANNEL_SECRET}"
    net.wheels.login = ("bob", INDEX_SECRET)
    (net.root / "tmp").mkdir()
    net.variables = {
        "TMPDIR": f"{net.root / 'tmp'}",
        "ENVBUILD_CHANNEL_MIRRORS": f"{CHANNEL}={net.channel.with_login(net.channel.login)}",
        "UV_DEFAULT_INDEX": net.index.url("main", login=f"bob:{INDEX_SECRET}"),
    }
    said: list[str] = []

    def run(*words: str, expected: int = 0) -> None:
        done = net.run(*words)
        said.append(done.stdout + done.stderr)
        assert done.returncode == expected, done.stderr

    with command_lines() as seen:
        net.write(BOTH)
        run("-v", "lock", "net")
        for recipe, broken in ((CONDA, ALPHA), (WHEELS, "/main/files/app-1-py3-none-any.whl")):
            net.write(recipe)
            run("-vv", "lock", "--json", "net")
            net.channel.faults[broken] = net.wheels.faults[broken] = Fault(cut=40)
            run("-vv", "create", "net", expected=8)
            run("create", "--json", "net", expected=8)
            net.channel.faults.clear()
            net.wheels.faults.clear()
            run("-vv", "create", "net")
        net.channel.login = "bob:changed"
        net.write(BOTH)
        run("-v", "lock", "--upgrade", "net", expected=8)
    assert any(b"envbuild" in line for line in seen)
    for secret in (CHANNEL_SECRET, INDEX_SECRET):
        assert secret not in "".join(said)
        assert not [line for line in seen if secret.encode() in line]
        files = [path for path in net.root.rglob("*") if path.is_file()]
        assert files
        assert not [path for path in files if secret.encode() in path.read_bytes()]


def test_certificates_of_the_site(net: Network) -> None:
    certificate, authority = make_certificate(net.root)
    net.write(CONDA)
    with serve(*net.channel.roots, certificate=certificate) as secure:
        mirror = {"ENVBUILD_CHANNEL_MIRRORS": f"{CHANNEL}={secure.url}"}
        assert "certificate is not trusted" in net.refused("lock", "net", variables=mirror)
        trusted = {**mirror, "REQUESTS_CA_BUNDLE": f"{authority}"}
        net.good("lock", "net", variables=trusted)
        assert "certificate is not trusted" in net.refused("create", "net", variables=mirror)
        net.good("create", "net", variables={**mirror, "SSL_CERT_FILE": f"{authority}"})


def test_a_proxy_for_every_engine(net: Network) -> None:
    """The server takes what a proxy is asked, a whole address."""
    net.write(CONDA)
    through = {
        "ENVBUILD_CHANNEL_MIRRORS": f"{CHANNEL}=http://nowhere.invalid",
        "HTTP_PROXY": net.channel.url,
    }
    net.good("lock", "net", variables=through)
    net.good("create", "net", variables=through)
    nobody = {"HTTP_PROXY": "http://127.0.0.1:9"}
    net.write(BOTH)
    net.good("lock", "net", variables={**nobody, "NO_PROXY": "127.0.0.1"})


def test_a_proxy_of_another_kind_is_named(net: Network) -> None:
    net.write(CONDA)
    net.good("lock", "net")
    error = net.refused("create", "net", variables={"ALL_PROXY": "socks5://bob:pw@127.0.0.1:9"})
    assert "SOCKS" in error
    assert "pw" not in error
