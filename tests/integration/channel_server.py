"""A static HTTP server on localhost for tests: access log, ranges, logins, faults."""

import base64
import contextlib
import re
import ssl
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from integration.faults import Fault, content_type, instead, send, shown

from envbuild.tools.run import base_environment, run

SNAPSHOT = Path(__file__).parents[1] / "data" / "channel"
"""Records of conda-forge, pytorch and nvidia, as `CHANNEL/SUBDIR/repodata.json.zst`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass(kw_only=True)
class ChannelServer:
    """A running server.

    Attributes:
        url: Its address without a slash at the end.
        roots: Folders served below `/`; the first that has the file wins.
        files: Path (`/conda-forge/noarch/repodata.json`) to content; before the folders.
        faults: Path to what goes wrong with it.
        login: `user:password` that every request must bring, or None.
        ranges: Whether parts of files are sent.
        log: Every request in order of arrival.
    """

    url: str = ""
    roots: list[Path] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    login: str | None = None
    ranges: bool = True
    log: list[Seen] = field(default_factory=list)

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def with_login(self, login: str) -> str:
        """Return the address with a login in it."""
        return self.url.replace("://", f"://{login}@")

    def paths(self, method: str = "GET") -> list[str]:
        """Return the paths asked for so far."""
        return [seen.path for seen in self.log if seen.method == method]

    def content(self, path: str) -> bytes | None:
        """Return what is served under a path."""
        if path in self.files:
            return self.files[path]
        for root in self.roots:
            file = root / path.lstrip("/")
            if file.is_file():
                return file.read_bytes()
        return None


def _handler(state: ChannelServer) -> type[BaseHTTPRequestHandler]:  # noqa: C901
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer()

        def do_HEAD(self) -> None:
            self.answer()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401
            pass

        def answer(self) -> None:
            path = unquote(urlsplit(self.path).path)
            state.log.append(
                Seen(method=self.command, path=path, headers=dict(self.headers.items()))
            )
            if state.login is not None:
                wanted = "Basic " + base64.b64encode(state.login.encode()).decode()
                if self.headers.get("Authorization") != wanted:
                    asked = {"WWW-Authenticate": 'Basic realm="channel"'}
                    send(self, 401, b"login please\n", asked)
                    return
            fault = shown(state.faults, path)
            if fault is not None and instead(self, fault):
                return
            content = state.content(path)
            if content is None:
                send(self, 404, b"no such file\n", {})
                return
            self.send_file(content, fault)

        def send_file(self, content: bytes, fault: Fault | None) -> None:
            status, part, extra = 200, content, {}
            wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
            if state.ranges and wanted and any(wanted.groups()):
                first, last = wanted.groups()
                start = int(first) if first else max(0, len(content) - int(last))
                end = min(int(last), len(content) - 1) if first and last else len(content) - 1
                status, part = 206, content[start : end + 1]
                told = "bytes {start}-{end}/{total}"
                if fault is not None and fault.content_range is not None:
                    told, part = fault.content_range, content
                right = told.format(start=start, end=end, total=len(content))
                extra = {"Content-Range": right} if right else {}
            headers = {**extra, "Content-Type": content_type(part), "Accept-Ranges": "bytes"}
            headers["ETag"] = f'"{zlib.crc32(content)}"'
            send(self, status, part, headers, fault)

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are part of the tests."""


@contextlib.contextmanager
def serve(
    *roots: Path, login: str | None = None, certificate: Path | None = None
) -> Iterator[ChannelServer]:
    """Serve folders on a free port of localhost until the block ends.

    Args:
        roots: Folders; the first that has a file wins.
        login: `user:password` that every request must bring.
        certificate: PEM file with key and certificate for 127.0.0.1: https instead of http.
    """
    state = ChannelServer(roots=list(roots), login=login)
    server = _Server(("127.0.0.1", 0), _handler(state))
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    state.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Return a PEM file with key and certificate for 127.0.0.1, and its authority's certificate.

    Raises:
        ToolMissing: There is no openssl.
    """

    def openssl(*words: str | Path) -> None:
        run(["openssl", *words], env=base_environment())

    authority, key, both = folder / "authority.pem", folder / "key.pem", folder / "both.pem"
    authority_key, asked, leaf = folder / "ca.key", folder / "asked.pem", folder / "leaf.pem"
    extensions = folder / "extensions"
    # Python 3.13 checks strictly (VERIFY_X509_STRICT): an authority says what its key is for, and a
    # certificate which key signed it.
    extensions.write_text(
        "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\nauthorityKeyIdentifier=keyid\n"
    )
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    ca_only = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext",
               "keyUsage=critical,keyCertSign,cRLSign", "-days", "3650")  # fmt: skip
    openssl("req", "-x509", *new, "-keyout", authority_key, "-out", authority, "-subj",
            "/CN=authority of a test", *ca_only)  # fmt: skip
    openssl("req", *new, "-keyout", key, "-out", asked, "-subj", "/CN=127.0.0.1")
    openssl("x509", "-req", "-in", asked, "-CA", authority, "-CAkey", authority_key,
            "-set_serial", "2", "-days", "3650", "-extfile", extensions, "-out", leaf)  # fmt: skip
    both.write_text(key.read_text() + leaf.read_text())
    return both, authority


def snapshot_mirrors(server: ChannelServer) -> dict[str, tuple[str, ...]]:
    """Return the mirror setting that serves the snapshot's channels from this server."""
    names = ("conda-forge", "pytorch", "nvidia", "nvidia/label/cuda-12.4.0")
    return {name: (f"{server.url}/{name}",) for name in names}
