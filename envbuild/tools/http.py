"""HTTP: downloads that are checked while they arrive, ranged reads, retries, proxies, logins."""

import contextlib
import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from envbuild.access import Access
from envbuild.errors import FetchError
from envbuild.progress import Progress, Quiet
from envbuild.tools import addresses, http_errors, http_parts
from envbuild.tools.digests import Digests, check
from envbuild.tools.files import NO_ROOM, no_room
from envbuild.tools.network_watch import LEAST_BYTES_PER_S
from envbuild.tools.parts import Part

_CHUNK_BYTES = 1 << 20
_CONNECT_TIMEOUT_S = 10.0
_POOL = 8
_OK, _PARTIAL = 200, 206


class _TooSlow(requests.RequestException):
    """An answer comes so slowly that it would take for ever."""

    def __str__(self) -> str:
        """Say so."""
        return "too slowly"


@dataclass(kw_only=True, slots=True)
class _Arriving:
    """A file while it arrives; it goes on where it was cut."""

    file: IO[bytes]
    sha256: Any
    md5: Any | None
    done: int = 0

    def add(self, chunk: bytes) -> None:
        self.file.write(chunk)
        self.sha256.update(chunk)
        if self.md5 is not None:
            self.md5.update(chunk)
        self.done += len(chunk)

    def restart(self) -> None:
        self.file.seek(0)
        self.file.truncate()
        self.sha256 = hashlib.sha256()
        self.md5 = None if self.md5 is None else hashlib.md5(usedforsecurity=False)
        self.done = 0


class Session:
    """Requests under one access's settings; may be used from several threads."""

    def __init__(
        self,
        access: Access,
        *,
        timeout_s: float | None = None,
        backoff_s: float = 0.3,
    ) -> None:
        """Take every setting from `access`; nothing of the process's environment counts.

        Args:
            access: Proxies, certificates and the netrc file stand in its environment; logins also
                in its mirrors' addresses.
            timeout_s: Seconds without a byte until a server counts as silent; by default what the
                access says.
            backoff_s: Seconds before the second try; it doubles with each.
        """
        self._access = access
        self._logins = (*addresses.mirrors(access).logins, *addresses.file_logins(access))
        self._silence_s = access.timeout_s if timeout_s is None else timeout_s
        self._timeout = (min(_CONNECT_TIMEOUT_S, self._silence_s), self._silence_s)
        self._backoff_s = backoff_s
        self._waker = threading.Event()
        self._session = requests.Session()
        self._session.trust_env = False
        environment = access.environment
        self._session.verify = (
            environment.get("REQUESTS_CA_BUNDLE") or environment.get("SSL_CERT_FILE") or True
        )
        retry = Retry(
            total=access.retries,
            status_forcelist=http_errors.RETRY_STATUS,
            backoff_factor=backoff_s,
            retry_after_max=30,
            raise_on_status=False,
        )
        adapter = HTTPAdapter(max_retries=retry, pool_connections=_POOL, pool_maxsize=_POOL)
        self._session.mount("https://", adapter)
        self._session.mount("http://", adapter)

    def get_text(self, url: str, *, accept: str = "*/*") -> str:
        """Return what an address has, as UTF-8 text.

        Raises:
            FetchError: It cannot be had; `StatusError` where the server said why.
        """
        return self._whole(url, {"Accept": accept}).decode("utf-8", errors="replace")

    def get_json(self, url: str, *, accept: str = "application/json") -> Any:  # noqa: ANN401
        """Return what an address has, as parsed JSON.

        Raises:
            FetchError: It cannot be had or is not JSON (a login page).
        """
        data = self._whole(url, {"Accept": accept})
        try:
            return json.loads(data)
        except ValueError as error:
            what = (
                "a web page (of a login?)"
                if http_errors.is_page(data)
                else "something that is not JSON"
            )
            message = f"{addresses.without_login(url)}: answered with {what}"
            raise FetchError(message, hint="check the address and the proxy settings") from error

    def get_size(self, url: str) -> int:
        """Return how many bytes an address has (HEAD).

        Raises:
            FetchError: It cannot be had, or the server does not say.
        """
        with self._open(url, method="HEAD") as response:
            length = response.headers.get("Content-Length", "")
        if not length.isdigit():
            message = f"{addresses.without_login(url)}: the server does not tell its size"
            raise FetchError(message)
        return int(length)

    def get_part(self, url: str, start: int, stop: int) -> Part:
        """Return the bytes from `start` to before `stop`, or the whole of a small file.

        Raises:
            FetchError: It cannot be had, other bytes came than were asked for, or the server sends
                only whole files and this one has more than 64 MiB.
        """
        for attempt in range(self._access.retries + 1):
            with self._open(url, {"Range": f"bytes={start}-{stop - 1}"}) as response:
                try:
                    return http_parts.received(url, response, start, stop, self._chunks(response))
                except (requests.RequestException, HTTPError) as error:
                    if attempt == self._access.retries:
                        raise http_errors.unreachable(url, error) from error
            self._waker.wait(self._backoff_s * 2**attempt)
        raise AssertionError

    def download(
        self,
        url: str,
        to: Path,
        *,
        sha256: str | None = None,
        md5: str | None = None,
        size: int | None = None,
        progress: Progress | None = None,
        what: str | None = None,
    ) -> Digests:
        """Write what an address has into a file, which is there only if every check held.

        Digests are computed as the bytes arrive; a transfer that is cut goes on where it was.

        Args:
            url: http(s) address, with a login or without.
            to: The file; its folder exists.
            sha256: Hex digest that it must have, or None.
            md5: Hex digest that it must have, or None.
            size: Bytes that it must have, or None.
            progress: Is told how much has arrived.
            what: What it is called there; by default the file's name.

        Raises:
            FetchError: It cannot be had, or is not what it should be.
            StoreError: There is no room for it.
        """
        temporary = to.with_name(f".{to.name}.{secrets.token_hex(4)}")
        shown = progress or Quiet()
        try:
            with temporary.open("w+b") as file:
                os.fchmod(file.fileno(), 0o644)
                arriving = _Arriving(
                    file=file,
                    sha256=hashlib.sha256(),
                    md5=hashlib.md5(usedforsecurity=False) if md5 is not None else None,
                )
                self._receive(url, arriving, shown, what or to.name)
            digests = Digests(
                sha256=arriving.sha256.hexdigest(),
                md5=None if arriving.md5 is None else arriving.md5.hexdigest(),
                size=arriving.done,
            )
            check(digests, addresses.without_login(url), sha256=sha256, md5=md5, size=size)
            temporary.replace(to)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise no_room(to.parent, to.name, error) from error
        finally:
            temporary.unlink(missing_ok=True)
        return digests

    def _whole(self, url: str, headers: Mapping[str, str] | None = None) -> bytes:
        with self._open(url, headers) as response:
            return self._read(url, response)

    def _read(self, url: str, response: requests.Response) -> bytes:
        try:
            return b"".join(self._chunks(response))
        except (requests.RequestException, HTTPError) as error:
            raise http_errors.unreachable(url, error) from error

    def _receive(self, url: str, arriving: _Arriving, progress: Progress, what: str) -> None:
        """Write the body into the file; after a cut or a silence go on from there.

        Raises:
            FetchError: It was cut too often, or a web page came instead.
        """
        for attempt in range(self._access.retries + 1):
            headers = {"Range": f"bytes={arriving.done}-"} if arriving.done else {}
            with self._open(url, headers) as response:
                total = _length(response)
                if response.status_code == _PARTIAL:
                    total = None if total is None else total + arriving.done
                elif arriving.done:
                    arriving.restart()
                try:
                    for chunk in self._chunks(response):
                        if not arriving.done:
                            http_errors.refuse_page(url, response, chunk)
                        arriving.add(chunk)
                        progress.amount(what, arriving.done, total)
                except (requests.RequestException, HTTPError) as error:
                    if attempt == self._access.retries:
                        raise http_errors.cut(url, arriving.done, total, error) from error
                else:
                    return
            self._waker.wait(self._backoff_s * 2**attempt)

    def _chunks(self, response: requests.Response) -> Iterator[bytes]:
        """Yield the body as it arrives.

        Raises:
            RequestException, HTTPError: It ends or stops too early, or comes too slowly: a byte now
                and then would keep every other time limit from ever being reached.
        """
        begun, arrived = time.monotonic(), 0
        while chunk := response.raw.read1(_CHUNK_BYTES, decode_content=True):
            yield chunk
            arrived += len(chunk)
            passed_s = time.monotonic() - begun
            if passed_s >= self._silence_s:
                if arrived < LEAST_BYTES_PER_S * passed_s:
                    raise _TooSlow
                begun, arrived = time.monotonic(), 0

    @contextlib.contextmanager
    def _open(
        self, url: str, headers: Mapping[str, str] | None = None, *, method: str = "GET"
    ) -> Iterator[requests.Response]:
        """Send a request and yield its answer, which is a success.

        Raises:
            StatusError: The server says no.
            FetchError: It cannot be reached, or we are offline.
        """
        bare, own = addresses.split_login(url)
        if self._access.offline:
            message = f"{bare}: not in the cache"
            raise FetchError(message, hint="run it once without --offline")
        login = own or addresses.login_for(bare, self._logins)
        sent = {"Accept-Encoding": "identity", "User-Agent": "envbuild", **(headers or {})}
        if login is not None:
            sent["Authorization"] = login.header
        proxies = self._proxies(bare)
        self._check_certificates(bare)
        try:
            response = self._session.request(
                method,
                bare,
                headers=sent,
                proxies=proxies,
                timeout=self._timeout,
                stream=True,
                allow_redirects=True,
            )
        except (requests.RequestException, HTTPError, OSError) as error:
            raise http_errors.unreachable(bare, error, *proxies.values()) from error
        with response:
            if response.status_code not in (_OK, _PARTIAL):
                raise http_errors.status_error(bare, response)
            yield response

    def _check_certificates(self, url: str) -> None:
        certificates = self._session.verify
        if url.startswith("https:") and isinstance(certificates, str):
            if Path(certificates).exists():
                return
            message = f"{url}: the certificates' file {certificates} is not there"
            raise FetchError(message, hint="check REQUESTS_CA_BUNDLE and SSL_CERT_FILE")

    def _proxies(self, url: str) -> dict[str, str]:
        """Return the proxy for an address, as the variables of the access say."""
        environment = self._access.environment
        parts = urlsplit(url)
        direct = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
        if addresses.bypasses_proxy(parts.hostname or "", direct):
            return {}
        for name in (f"{parts.scheme}_proxy", "all_proxy"):
            proxy = environment.get(name) or environment.get(name.upper())
            if proxy and proxy.startswith("socks"):
                message = f"{addresses.without_login(proxy)}: a SOCKS proxy cannot be used"
                raise FetchError(message, hint="set HTTPS_PROXY and HTTP_PROXY to an http proxy")
            if proxy:
                return {parts.scheme: proxy}
        return {}


def _length(response: requests.Response) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None
