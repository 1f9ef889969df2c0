"""A static HTTP server on localhost for tests: access log, ranges, logins, faults."""

import base64
import contextlib
import re
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from envbuild.tools.run import base_environment, run

SNAPSHOT = Path(__file__).parents[1] / "data" / "channel"
"""Records of conda-forge, pytorch and nvidia, as `CHANNEL/SUBDIR/repodata.json.zst`."""

LOGIN_PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>...</body></html>\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What goes wrong with one path.

    Attributes:
        status: Answer this status instead of the file.
        stall_s: Send half of the body, then wait so long.
        cut: Close after so many bytes of the body, with the whole length announced.
        body: Send these bytes instead.
        redirect: Send the client there.
        times: How often the fault shows before the file is served; None is always.
    """

    status: int | None = None
    stall_s: float = 0
    cut: int | None = None
    body: bytes | None = None
    redirect: str | None = None
    times: int | None = None


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

    def fault(self, path: str) -> Fault | None:
        """Return the fault to show now, and count it."""
        fault = self.faults.get(path)
        if fault is None or fault.times is None:
            return fault
        if fault.times <= 0:
            return None
        self.faults[path] = Fault(
            status=fault.status,
            stall_s=fault.stall_s,
            cut=fault.cut,
            body=fault.body,
            redirect=fault.redirect,
            times=fault.times - 1,
        )
        return fault


def _handler(state: ChannelServer) -> type[BaseHTTPRequestHandler]:  # noqa: C901
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(body=True)

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401
            pass

        def answer(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            state.log.append(
                Seen(method=self.command, path=path, headers=dict(self.headers.items()))
            )
            if state.login is not None:
                wanted = "Basic " + base64.b64encode(state.login.encode()).decode()
                if self.headers.get("Authorization") != wanted:
                    self.reply(401, b"login please\n", body=body)
                    return
            fault = state.fault(path)
            if fault is not None and fault.redirect is not None:
                self.send_response(302)
                self.send_header("Location", fault.redirect)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if fault is not None and fault.status is not None:
                self.reply(fault.status, b"fault\n", body=body)
                return
            content = state.content(path)
            if fault is not None and fault.body is not None:
                content = fault.body
            if content is None:
                self.reply(404, b"no such file\n", body=body)
                return
            self.send_file(content, fault, body=body)

        def send_file(self, content: bytes, fault: Fault | None, *, body: bool) -> None:
            status, part, extra = 200, content, {}
            wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
            if state.ranges and wanted and any(wanted.groups()):
                first, last = wanted.groups()
                start = int(first) if first else max(0, len(content) - int(last))
                end = min(int(last), len(content) - 1) if first and last else len(content) - 1
                status, part = 206, content[start : end + 1]
                extra = {"Content-Range": f"bytes {start}-{end}/{len(content)}"}
            self.send_response(status)
            for name, value in extra.items():
                self.send_header(name, value)
            kind = "text/html" if part.startswith(b"<!") else "application/octet-stream"
            self.send_header("Content-Type", kind)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            if not body:
                return
            if fault is not None and fault.cut is not None:
                self.wfile.write(part[: fault.cut])
                self.close_connection = True
                return
            if fault is not None and fault.stall_s:
                self.wfile.write(part[: len(part) // 2])
                self.wfile.flush()
                time.sleep(fault.stall_s)
                self.close_connection = True
                return
            self.wfile.write(part)

        def reply(self, status: int, content: bytes, *, body: bool) -> None:
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="channel"')
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)

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
    extensions.write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    ca_only = ("-addext", "basicConstraints=critical,CA:TRUE", "-days", "3650")
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
