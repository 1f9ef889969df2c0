"""What can be wrong with an answer from the network, in words that hold no login."""

import requests

from envbuild.errors import FetchError
from envbuild.tools import addresses

RETRY_STATUS = (429, 500, 502, 503, 504)
"""Trouble of the server that may be over a moment later."""

_LOGIN_STATUS = (401, 403)


class Unreachable(FetchError):
    """A server does not answer, or not to its end: another mirror may."""


class StatusError(Unreachable):
    """A server answered with a status that is no success.

    Attributes:
        status: The HTTP status.
    """

    def __init__(self, message: str, *, status: int, hint: str | None = None) -> None:
        """Keep the status beside the message."""
        super().__init__(message, hint=hint)
        self.status = status


def is_page(start: bytes) -> bool:
    """Say whether what comes begins as a web page does."""
    return start.lstrip()[:5].lower() in (b"<!doc", b"<html")


def refuse_page(url: str, response: requests.Response, chunk: bytes) -> None:
    """Refuse a web page where a file is expected.

    Raises:
        FetchError: It is one.
    """
    if is_page(chunk):
        kind = response.headers.get("Content-Type", "no content type")
        message = (
            f"{addresses.without_login(url)}: a web page came instead of the file ({kind};"
            " a login page?)"
        )
        raise FetchError(message, hint="check the address, the proxy settings and the login")


def status_error(url: str, response: requests.Response) -> StatusError:
    """Return the error for an answer that is no success."""
    status = response.status_code
    hint = "check the address; the file may be gone from there"
    if status in _LOGIN_STATUS:
        hint = "put a login into the mirror's address, or into a netrc file"
    elif status in RETRY_STATUS:
        hint = "the server has trouble: try again later"
    final = addresses.without_login(response.url)
    moved = "" if final == url else f" (sent on to {final})"
    message = f"{url}: {status} {response.reason}{moved}"
    return StatusError(message, status=status, hint=hint)


def unreachable(url: str, error: Exception, *proxies: str) -> Unreachable:
    """Return the error for a server that cannot be asked."""
    through = f" (through the proxy {addresses.without_login(proxies[0])})" if proxies else ""
    message = f"{addresses.without_login(url)}: {_reason(error)}{through}"
    return Unreachable(message, hint="check the network, the proxy settings and the certificates")


def cut(url: str, done: int, total: int | None, error: Exception) -> Unreachable:
    """Return the error for an answer that ended, or stopped, too early."""
    expected = "" if total is None else f" of {total}"
    message = (
        f"{addresses.without_login(url)}: cut short after {done}{expected} bytes ({_reason(error)})"
    )
    return Unreachable(message, hint="try again; what has been fetched stays in the cache")


def _reason(error: BaseException) -> str:
    """Return the innermost cause in words, without addresses (which may hold a login)."""
    text = str(error)
    known = (
        ("CERTIFICATE_VERIFY_FAILED", "the server's certificate is not trusted"),
        ("NameResolutionError", "the host's name is unknown"),
        ("Connection refused", "connection refused"),
        ("ProxyError", "the proxy does not answer"),
        ("timed out", "no answer in time"),
        ("too slowly", "the answer comes too slowly"),
        ("Connection reset", "the connection was reset"),
        ("RemoteDisconnected", "the connection was closed"),
        ("IncompleteRead", "the connection was closed"),
        ("Exceeded", "too many redirects"),
        ("Invalid URL", "not an address"),
    )
    return next((words for mark, words in known if mark in text), type(error).__name__)
