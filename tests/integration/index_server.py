"""A PyPI index on the loopback: small wheels made by the tests, and a proxy of the real index.

What an index may do wrong can be switched on: no upload times, no hashes, missing files, HTML
only, no sidecars, no ranges, a login, an answer with a fault, other bytes than it promised.
"""

import base64
import hashlib
import html
import io
import json
import shutil
import threading
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from integration.faults import Fault, instead, send, shown
from packaging.utils import canonicalize_name, parse_wheel_filename

JSON = "application/vnd.pypi.simple.v1+json"
_HEADERS = ("Content-Type", "Content-Length", "Content-Range", "Accept-Ranges")
LONG_AGO = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class BuiltWheel:
    """A wheel with what an index says of it."""

    filename: str
    data: bytes
    metadata: str
    uploaded: datetime = LONG_AGO
    yanked: str | None = None
    requires_python: str | None = None

    @property
    def project(self) -> str:
        return canonicalize_name(parse_wheel_filename(self.filename)[0])

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def wheel(
    name: str,
    version: str,
    *,
    requires: Sequence[str] = (),
    tag: str = "py3-none-any",
    requires_python: str | None = None,
    uploaded: datetime = LONG_AGO,
    yanked: str | None = None,
    files: Mapping[str, str | bytes] | None = None,
) -> BuiltWheel:
    """Make a wheel, the same bytes each time."""
    stem = f"{name.replace('-', '_')}-{version}"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {one}" for one in requires]
    lines += [f"Requires-Python: {requires_python}"] if requires_python else []
    members: dict[str, str | bytes] = dict(
        files or {f"{name.replace('-', '_')}.py": f"VERSION = {version!r}\n"}
    )
    metadata = "\n".join(lines) + "\n"
    members[f"{stem}.dist-info/METADATA"] = metadata
    tags = "".join(f"Tag: {one}\n" for one in tag.split())
    members[f"{stem}.dist-info/WHEEL"] = f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\n{tags}"
    record = "".join(f"{member},{_digest(text)},{len(text)}\n" for member, text in members.items())
    members[f"{stem}.dist-info/RECORD"] = f"{record}{stem}.dist-info/RECORD,,\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member, text in members.items():
            archive.writestr(zipfile.ZipInfo(member, (1980, 1, 1, 0, 0, 0)), text)
    return BuiltWheel(
        filename=f"{stem}-{tag}.whl",
        data=buffer.getvalue(),
        metadata=metadata,
        uploaded=uploaded,
        yanked=yanked,
        requires_python=requires_python,
    )


def _digest(text: str | bytes) -> str:
    digest = hashlib.sha256(text if isinstance(text, bytes) else text.encode()).digest()
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


@dataclass(kw_only=True)
class Index:
    """One index of the server, and what it does wrong.

    Attributes:
        wheels: What it has.
        only_html: Whether it speaks HTML (PEP 503) only.
        dates: Whether it gives upload times.
        undated: Names of files that it gives none of.
        hashes: Whether it gives SHA-256.
        sidecars: Whether it has METADATA beside the wheels (PEP 658).
        ranges: Whether it answers range requests.
        missing: Names of files that it lacks.
        spoilt: Names of files that come with other bytes than promised.
        faults: Path (as in the log) to what goes wrong with it.
        login: User and password that it asks for, or None.
    """

    wheels: list[BuiltWheel] = field(default_factory=list)
    only_html: bool = False
    dates: bool = True
    undated: set[str] = field(default_factory=set)
    hashes: bool = True
    sidecars: bool = True
    ranges: bool = True
    missing: set[str] = field(default_factory=set)
    spoilt: set[str] = field(default_factory=set)
    faults: dict[str, Fault] = field(default_factory=dict)
    login: tuple[str, str] | None = None

    def shown(self, project: str) -> list[BuiltWheel]:
        return [
            one
            for one in self.wheels
            if one.project == project and one.filename not in self.missing
        ]


@dataclass(kw_only=True)
class Proxy:
    """A proxy of the real default index, which keeps what it fetched in a folder.

    Attributes:
        upstream: Address of the real index.
        folder: What it keeps.
    """

    upstream: str
    folder: Path


@dataclass(kw_only=True)
class IndexServer:
    """The server: indexes by name, and which paths were asked for."""

    port: int
    indexes: dict[str, Index | Proxy] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def url(self, name: str, *, login: str = "") -> str:
        return f"http://{f'{login}@' if login else ''}127.0.0.1:{self.port}/{name}/simple"

    def asked(self, part: str) -> list[str]:
        return [path for path in self.log if part in path]


def default_index() -> str:
    """Return the real default index's address, as pip has it."""
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url)


@contextmanager
def serving(**indexes: Index | Proxy) -> Iterator[IndexServer]:
    """Serve indexes by name until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    state = IndexServer(port=server.server_address[1], indexes=dict(indexes))
    _Handler.states[state.port] = state
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        del _Handler.states[state.port]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    states: dict[int, IndexServer] = {}  # noqa: RUF012 - one table for all servers

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: the log is a list."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        state = self.states[self.connection.getsockname()[1]]
        state.log.append(self.path)
        name, _, rest = unquote(self.path).lstrip("/").partition("/")
        index = state.indexes.get(name)
        if isinstance(index, Proxy):
            self._proxy(index, name, rest)
        elif index is None:
            self._send(404)
        elif (fault := shown(index.faults, self.path)) is not None and instead(self, fault):
            pass
        elif index.login is not None and not self._may(index.login):
            self._send(401, headers={"WWW-Authenticate": "Basic"})
        elif rest.startswith("simple/"):
            self._project(index, rest.removeprefix("simple/").strip("/"), fault)
        else:
            self._file(index, rest.removeprefix("files/"), fault)

    def _may(self, login: tuple[str, str]) -> bool:
        token = base64.b64encode(":".join(login).encode()).decode()
        return self.headers.get("Authorization") == f"Basic {token}"

    def _project(self, index: Index, project: str, fault: Fault | None) -> None:
        wheels = index.shown(project)
        if not project:
            projects = [{"name": name} for name in sorted({one.project for one in index.wheels})]
            page = json.dumps({"meta": {"api-version": "1.1"}, "projects": projects}).encode()
            self._send(200, page, kind=JSON, fault=fault)
        elif not wheels:
            self._send(404)
        elif index.only_html or JSON not in self.headers.get("Accept", ""):
            self._send(200, _html(index, wheels).encode(), kind="text/html", fault=fault)
        else:
            page = json.dumps(_json(index, project, wheels)).encode()
            self._send(200, page, kind=JSON, fault=fault)

    def _file(self, index: Index, filename: str, fault: Fault | None) -> None:
        plain = filename.removesuffix(".metadata")
        found = [one for one in index.wheels if one.filename == plain]
        if not found or plain in index.missing or (plain != filename and not index.sidecars):
            self._send(404)
        elif plain != filename:
            self._send(200, found[0].metadata.encode(), fault=fault)
        elif plain in index.spoilt:
            self._send(200, found[0].data + b"spoilt", ranges=index.ranges)
        else:
            self._send(200, found[0].data, ranges=index.ranges, fault=fault)

    def _proxy(self, proxy: Proxy, name: str, rest: str) -> None:
        """Answer from upstream; file addresses become our own, so that all goes through here."""
        page = rest.startswith("simple/")
        if page:
            url = f"{proxy.upstream.rstrip('/')}/{rest.removeprefix('simple/')}"
            wanted = {"Accept": self.headers.get("Accept", "")}
        else:
            scheme, _, place = rest.removeprefix("files/").partition("/")
            url = f"{scheme}://{quote(place)}"
            wanted = {"Range": self.headers["Range"]} if "Range" in self.headers else {}
        status, headers, body = _upstream(proxy, self.command, url, wanted)
        if page and status == 200:
            self._send(status, _rewritten(body.read_bytes(), name), kind=headers["Content-Type"])
            return
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            with body.open("rb") as file:
                shutil.copyfileobj(file, self.wfile)

    def _send(
        self,
        status: int,
        data: bytes = b"",
        *,
        kind: str = "application/octet-stream",
        ranges: bool = False,
        headers: Mapping[str, str] | None = None,
        fault: Fault | None = None,
    ) -> None:
        extra = {"Content-Type": kind, **(headers or {})}
        wanted = self.headers.get("Range", "") if ranges and status == 200 else ""
        if wanted.startswith("bytes="):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(len(data) - int(last), 0)
            stop = int(last) + 1 if first and last else len(data)
            extra["Content-Range"] = f"bytes {start}-{min(stop, len(data)) - 1}/{len(data)}"
            data, status = data[start:stop], 206
        if ranges:
            extra["Accept-Ranges"] = "bytes"
        send(self, status, data, extra, fault)


def _upstream(
    proxy: Proxy, method: str, url: str, wanted: Mapping[str, str]
) -> tuple[int, dict[str, str], Path]:
    """Return status, headers and content of an upstream address, fetched once."""
    key = hashlib.sha256(json.dumps([method, url, dict(wanted)]).encode()).hexdigest()
    head, body = proxy.folder / f"{key}.head", proxy.folder / f"{key}.body"
    if head.exists():
        status, headers = json.loads(head.read_text())
        return status, headers, body
    request = urllib.request.Request(url, headers=dict(wanted), method=method)  # noqa: S310
    own = f".{threading.get_ident()}"
    with _answer(request) as answer, body.with_suffix(own).open("wb") as file:
        shutil.copyfileobj(answer, file)
        status = answer.status
        headers = {key: answer.headers[key] for key in _HEADERS if key in answer.headers}
    body.with_suffix(own).replace(body)
    head.with_suffix(own).write_text(json.dumps([status, headers]))
    head.with_suffix(own).replace(head)
    return status, headers, body


def _answer(request: urllib.request.Request) -> Any:  # noqa: ANN401
    try:
        return urllib.request.urlopen(request, timeout=60)  # noqa: S310
    except urllib.error.HTTPError as error:
        return error


def _rewritten(data: bytes, name: str) -> bytes:
    """Return a project's page with the files' addresses below the proxy."""
    page = json.loads(data)
    for file in page["files"]:
        file["url"] = f"/{name}/files/{file['url'].replace('://', '/', 1)}"
    return json.dumps(page).encode()


def _json(index: Index, project: str, wheels: Sequence[BuiltWheel]) -> dict[str, object]:
    files: list[dict[str, object]] = []
    for one in wheels:
        row: dict[str, object] = {
            "filename": one.filename,
            "url": f"../../files/{one.filename}",
            "hashes": {"sha256": one.sha256} if index.hashes else {},
            "size": len(one.data),
            "yanked": False if one.yanked is None else one.yanked,
        }
        if one.requires_python:
            row["requires-python"] = one.requires_python
        if index.dates and one.filename not in index.undated:
            row["upload-time"] = one.uploaded.isoformat().replace("+00:00", "Z")
        if index.sidecars:
            row["core-metadata"] = True
        files.append(row)
    versions = sorted({str(parse_wheel_filename(one.filename)[1]) for one in wheels})
    return {
        "meta": {"api-version": "1.1"},
        "name": project,
        "versions": versions,
        "files": files,
    }


def _html(index: Index, wheels: Sequence[BuiltWheel]) -> str:
    links = ""
    for one in wheels:
        fragment = f"#sha256={one.sha256}" if index.hashes else ""
        extra = ' data-core-metadata="true"' if index.sidecars else ""
        if one.requires_python:
            extra += f' data-requires-python="{html.escape(one.requires_python)}"'
        if one.yanked is not None:
            extra += f' data-yanked="{html.escape(one.yanked)}"'
        links += f'<a href="../../files/{one.filename}{fragment}"{extra}>{one.filename}</a><br>\n'
    return f"<!DOCTYPE html><html><body>{links}</body></html>"
