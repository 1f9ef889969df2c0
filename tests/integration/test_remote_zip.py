"""Zip files behind http, read in parts: what is fetched, and what a server does wrong."""

import io
import random
import struct
import zipfile
from collections.abc import Iterator

import pytest
from integration.channel_server import ChannelServer, serve
from integration.faults import LOGIN_PAGE, Fault

from envbuild.access import Access
from envbuild.errors import FetchError
from envbuild.tools import remote_zip
from envbuild.tools.http import Session

PATH = "/big-1-py3-none-any.whl"
SMALL = b"VERSION = 1\n"
LARGE = random.Random(1).randbytes(9 << 20)  # noqa: S311 - does not compress


@pytest.fixture
def server() -> Iterator[ChannelServer]:
    with serve() as running:
        yield running


def archive(*, zip64: bool = False, comment: bytes = b"") -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in (("a.py", SMALL), ("large.so", LARGE), ("b.py", SMALL * 1000)):
            with file.open(zipfile.ZipInfo(name), "w", force_zip64=zip64) as member:
                member.write(data)
        file.comment = comment
    return content.getvalue()


def read(
    server: ChannelServer, name: str = "a.py", *, size: int | None = None, most_bytes: int = 1 << 30
) -> tuple[bytes, int]:
    """Return a member, and how many bytes were fetched for it."""
    settings = Access(retries=1)
    session = Session(settings, timeout_s=2, backoff_s=0.01)
    url = server.with_login("bob:s3cret") + PATH
    to = io.BytesIO()
    with remote_zip.opened(session, url, size, "big-1") as opened:
        opened.copy(name, to, most_bytes=most_bytes)
        return to.getvalue(), opened.fetched_bytes


def refused(server: ChannelServer, message: str, name: str = "a.py", **settings: int) -> None:
    with pytest.raises(FetchError, match=message) as info:
        read(server, name, **settings)
    told = f"{info.value.message} {info.value.hint}"
    assert info.value.hint
    assert "\n" not in told
    assert "s3cret" not in told


@pytest.mark.parametrize("zip64", [False, True])
def test_only_what_is_asked_for_is_fetched(server: ChannelServer, zip64: bool) -> None:  # noqa: FBT001
    server.files[PATH] = archive(zip64=zip64, comment=b"about")
    content, fetched = read(server)
    assert content == SMALL
    assert fetched < 200_000
    assert read(server, "b.py", size=len(server.files[PATH]))[0] == SMALL * 1000
    content, fetched = read(server, "large.so")
    assert content == LARGE
    assert fetched < len(server.files[PATH]) + 200_000


def test_a_server_without_parts(server: ChannelServer) -> None:
    server.ranges = False
    server.files[PATH] = archive()
    content, fetched = read(server)
    assert (content, fetched) == (SMALL, len(server.files[PATH]))
    server.files[PATH] = bytes(65 << 20)
    refused(server, "the server sends no parts of files")


@pytest.mark.parametrize(
    "told",
    [
        "",
        "bytes 0-{end}/{total}",
        "bytes {start}-{start}/{total}",
        "bytes {start}-{end}/*",
        "bytes {start}-{end}/{total}",
        "bytes {start}-{end}/1",
        "bytes */{total}",
        "items {start}-{end}/{total}",
        "bytes {start}-99999999999999999999/{total}",
    ],
)
def test_other_bytes_than_asked_for(server: ChannelServer, told: str) -> None:
    server.files[PATH] = archive()
    server.faults[PATH] = Fault(content_range=told)
    refused(server, "the server sent others", size=len(server.files[PATH]))


def test_a_part_that_is_cut_is_asked_for_again(server: ChannelServer) -> None:
    server.files[PATH] = archive()
    size = len(server.files[PATH])
    server.faults[PATH] = Fault(cut=100, times=1)
    assert read(server, size=size)[0] == SMALL
    server.faults[PATH] = Fault(cut=100)
    refused(server, "the connection was closed", size=size)
    server.faults[PATH] = Fault(reset="body")
    refused(server, "the connection was reset", size=size)


def test_a_file_that_changes_meanwhile(server: ChannelServer) -> None:
    server.files[PATH] = archive()
    settings = Access(retries=0)
    url = f"{server.url}{PATH}"
    opening = remote_zip.opened(Session(settings), url, None, "big-1")
    with opening as opened:
        server.files[PATH] = server.files[PATH][:-1] + b"x"
        with pytest.raises(FetchError, match="another file now"):
            opened.copy("a.py", io.BytesIO(), most_bytes=100)
    refused(server, r"another file now.*: \d+ bytes, not 5", size=5)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(body=LOGIN_PAGE), "a web page came instead"),
        (Fault(status=403), "403 Forbidden"),
        (Fault(status=416), "416 "),
    ],
)
def test_other_answers(server: ChannelServer, fault: Fault, message: str) -> None:
    server.files[PATH] = archive()
    server.faults[PATH] = fault
    refused(server, message, size=len(server.files[PATH]))


def changed(data: bytes, old: bytes, new: bytes) -> bytes:
    """Return a zip file with something else in the last place of some bytes."""
    at = data.rindex(old)
    return data[:at] + new + data[at + len(new) :]


@pytest.mark.parametrize("damage", ["empty", "short", "end", "list", "place", "crc", "method"])
def test_what_is_no_zip_file(server: ChannelServer, damage: str) -> None:
    data = archive()
    entry = data.index(b"PK\x01\x02")
    server.files[PATH] = {
        "empty": b"PK",
        "short": data[: len(data) // 2],
        "end": changed(data, b"PK\x05\x06", b"PK\x05\x07"),
        "list": changed(data, b"PK\x01\x02", b"PK\x01\x03"),
        "place": data[: entry + 42] + struct.pack("<I", 77) + data[entry + 46 :],
        "crc": data[: entry + 16] + struct.pack("<I", 77) + data[entry + 20 :],
        "method": data[: entry + 10] + struct.pack("<H", 97) + data[entry + 12 :],
    }[damage]
    refused(server, "big-1: no zip file that can be read")


def test_sizes_that_a_zip_file_claims_are_bounded(server: ChannelServer) -> None:
    data = archive()
    server.files[PATH] = data
    refused(server, "more than 1000", "large.so", most_bytes=1000)
    end = data.rindex(b"PK\x05\x06")
    long = struct.pack("<I", 40 << 20)
    server.files[PATH] = bytes(32 << 20) + data[: end + 12] + long + data[end + 16 :]
    refused(server, "big-1: no zip file that can be read")
    server.files[PATH] = (
        bytes(32 << 20) + data[: end + 12] + struct.pack("<II", 20 << 20, 0) + data[end + 20 :]
    )
    refused(server, "its list of files is too long")
