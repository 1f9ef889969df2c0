"""`tools.http` against a server on localhost: what is checked, tried again, told and hidden."""

import errno
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.channel_server import ChannelServer, make_certificate, serve
from integration.faults import LOGIN_PAGE, Fault

from envbuild.access import Access
from envbuild.errors import FetchError, StoreError
from envbuild.tools.http import Session
from envbuild.tools.http_errors import StatusError, Unreachable

DATA = bytes(range(256)) * 8192  # 2 MiB
SHA256 = hashlib.sha256(DATA).hexdigest()
MD5 = hashlib.md5(DATA, usedforsecurity=False).hexdigest()


@pytest.fixture
def server() -> Iterator[ChannelServer]:
    with serve() as running:
        running.files = {"/file.conda": DATA, "/index.json": b'{"a": [1]}'}
        yield running


def session(environment: dict[str, str] | None = None, **access: object) -> Session:
    settings = Access(environment=environment or {}, **access)  # type: ignore[arg-type]
    return Session(settings, timeout_s=0.5, backoff_s=0.01)


class Told:
    """Progress that remembers."""

    def __init__(self) -> None:
        self.amounts: list[tuple[str, int, int | None]] = []

    def step(self, text: str) -> None:
        raise AssertionError(text)

    def amount(self, what: str, done: int, total: int | None) -> None:
        self.amounts.append((what, done, total))


def test_a_download_is_hashed_as_it_arrives(server: ChannelServer, tmp_path: Path) -> None:
    told = Told()
    to = tmp_path / "file.conda"
    digests = session().download(
        f"{server.url}/file.conda", to, sha256=SHA256, md5=MD5, size=len(DATA), progress=told
    )
    assert (digests.sha256, digests.md5, digests.size) == (SHA256, MD5, len(DATA))
    assert to.read_bytes() == DATA
    assert told.amounts[-1] == ("file.conda", len(DATA), len(DATA))
    assert [path.name for path in tmp_path.iterdir()] == ["file.conda"]
    plain = session().download(f"{server.url}/file.conda", to)
    assert (plain.sha256, plain.md5) == (SHA256, None)


@pytest.mark.parametrize(
    ("promised", "message"),
    [
        ({"sha256": "0" * 64}, "sha256 is"),
        ({"md5": "0" * 32}, "md5 is"),
        ({"size": 1}, "bytes is 2097152, the lock says 1"),
    ],
)
def test_what_is_not_as_promised_is_not_kept(
    server: ChannelServer, tmp_path: Path, promised: dict[str, str], message: str
) -> None:
    with pytest.raises(FetchError, match=message) as info:
        session().download(f"{server.url}/file.conda", tmp_path / "f", **promised)  # type: ignore[arg-type]
    assert info.value.exit_code == 8
    assert "\n" not in info.value.message
    assert not list(tmp_path.iterdir())


def test_a_transfer_that_is_cut_goes_on_where_it_was(server: ChannelServer, tmp_path: Path) -> None:
    server.faults["/file.conda"] = Fault(cut=1_500_000, times=1)
    digests = session().download(f"{server.url}/file.conda", tmp_path / "f", sha256=SHA256)
    assert digests.size == len(DATA)
    first, second = (seen.headers.get("Range") for seen in server.log)
    assert first is None
    assert second is not None
    assert second.startswith("bytes=")
    assert second != "bytes=0-"


def test_a_transfer_that_stalls_is_tried_again(server: ChannelServer, tmp_path: Path) -> None:
    server.faults["/file.conda"] = Fault(stall_s=1.5, times=1)
    session().download(f"{server.url}/file.conda", tmp_path / "f", sha256=SHA256)
    assert len(server.log) == 2


def test_a_server_that_sends_no_parts_starts_anew(server: ChannelServer, tmp_path: Path) -> None:
    server.faults["/file.conda"] = Fault(cut=1_500_000, times=1)
    server.ranges = False
    session().download(f"{server.url}/file.conda", tmp_path / "f", sha256=SHA256)
    assert len(server.log) == 2


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(status=404), "404 Not Found"),
        (Fault(status=503), "503 Service Unavailable"),
        (Fault(cut=10), "cut short after"),
        (Fault(stall_s=1.5), "no answer in time"),
        (Fault(body=LOGIN_PAGE), "a web page came instead of the file"),
        (Fault(redirect="/gone"), r"404 Not Found \(sent on to http"),
        (Fault(redirect="/file.conda"), "too many redirects"),
    ],
)
def test_failures_are_one_line_and_leave_nothing(
    server: ChannelServer, tmp_path: Path, fault: Fault, message: str
) -> None:
    server.faults["/file.conda"] = fault
    url = server.with_login("bob:s3cret") + "/file.conda"
    with pytest.raises(FetchError, match=message) as info:
        session().download(url, tmp_path / "f")
    assert "\n" not in info.value.message
    assert info.value.hint
    assert "s3cret" not in f"{info.value.message} {info.value.hint} {info.value.details}"
    assert server.url in info.value.message
    assert not list(tmp_path.iterdir())


def test_trouble_of_the_server_is_tried_again(server: ChannelServer) -> None:
    for status in (429, 500, 503):
        server.faults["/index.json"] = Fault(status=status, times=2)
        assert session().get_json(f"{server.url}/index.json") == {"a": [1]}


def test_a_status_is_typed(server: ChannelServer) -> None:
    with pytest.raises(StatusError) as info:
        session().get_text(f"{server.url}/none")
    assert info.value.status == 404
    assert isinstance(info.value, Unreachable)


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9/x: connection refused"):
        session().download("http://127.0.0.1:9/x", tmp_path / "x")
    with pytest.raises(Unreachable, match="the host's name is unknown"):
        session().get_text("http://nowhere.invalid/")


def test_text_json_parts_and_sizes(server: ChannelServer) -> None:
    asks = session()
    assert json.loads(asks.get_text(f"{server.url}/index.json")) == {"a": [1]}
    url = f"{server.url}/file.conda"
    assert asks.get_size(url) == len(DATA)
    part = asks.get_part(url, 100, 200)
    assert (part.data, part.start, part.total) == (DATA[100:200], 100, len(DATA))
    end = len(DATA)
    assert asks.get_part(url, end - 5, end + 5).data == DATA[-5:]
    server.ranges = False
    part = asks.get_part(url, 100, 200)
    assert (part.data, part.start, part.total) == (DATA, 0, end)


def test_what_is_no_json_is_said(server: ChannelServer) -> None:
    server.files |= {"/page": LOGIN_PAGE, "/text": b"hello"}
    with pytest.raises(FetchError, match="a web page"):
        session().get_json(f"{server.url}/page")
    with pytest.raises(FetchError, match="not JSON"):
        session().get_json(f"{server.url}/text")


def test_offline_nothing_is_asked(server: ChannelServer, tmp_path: Path) -> None:
    asks = session(offline=True)
    with pytest.raises(FetchError, match="not in the cache"):
        asks.download(f"{server.url}/file.conda", tmp_path / "f")
    with pytest.raises(FetchError, match="not in the cache"):
        asks.get_text(f"{server.url}/index.json")
    assert server.log == []


def test_logins_come_from_the_address_the_mirrors_or_netrc(tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login bob password s3cret\n")
    with serve(login="bob:s3cret") as server:
        server.files["/cf/x"] = b"x"
        url = f"{server.url}/cf/x"
        with pytest.raises(StatusError, match="401") as info:
            session().get_text(url)
        assert "netrc" in str(info.value.hint)
        assert session().get_text(f"{server.with_login('bob:s3cret')}/cf/x") == "x"
        assert session({"NETRC": str(netrc)}).get_text(url) == "x"
        mirrors = {"conda-forge": (f"{server.with_login('bob:s3cret')}/cf",)}
        assert session(channel_mirrors=mirrors).get_text(url) == "x"


def test_a_login_does_not_follow_to_another_host(server: ChannelServer) -> None:
    with serve() as other:
        other.files["/x"] = b"x"
        elsewhere = other.url.replace("127.0.0.1", "localhost")
        server.faults["/x"] = Fault(redirect=f"{elsewhere}/x")
        assert session().get_text(server.with_login("bob:s3cret") + "/x") == "x"
        assert "Authorization" in server.log[0].headers
        assert "Authorization" not in other.log[0].headers


def test_proxies_come_from_the_access_alone(
    server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent")
    url = f"{server.url}/index.json"
    assert session().get_json(url)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        # the server takes what a proxy is asked: a whole address
        assert session({name: server.url}).get_json("http://nowhere.invalid/index.json")
    direct = {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
    assert session(direct).get_json(url)
    with pytest.raises(Unreachable, match="proxy"):
        session({"HTTP_PROXY": "http://127.0.0.1:9"}).get_json(url)


def test_certificates_come_from_the_access(tmp_path: Path) -> None:
    certificate, authority = make_certificate(tmp_path)
    with serve(certificate=certificate) as server:
        server.files["/x"] = b"x"
        for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
            assert session({name: str(authority)}).get_text(f"{server.url}/x") == "x"
        with pytest.raises(Unreachable, match="certificate is not trusted"):
            session().get_text(f"{server.url}/x")
        with pytest.raises(FetchError, match="is not there"):
            session({"SSL_CERT_FILE": str(tmp_path / "gone")}).get_text(f"{server.url}/x")


class Full:
    """Progress that stands for a disk that fills up while a file arrives."""

    def step(self, text: str) -> None:
        raise AssertionError(text)

    def amount(self, what: str, done: int, total: int | None) -> None:  # noqa: ARG002
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_an_error_of_the_store(server: ChannelServer, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no room for file\.conda"):
        session().download(f"{server.url}/file.conda", tmp_path / "file.conda", progress=Full())
    assert not list(tmp_path.iterdir())
