"""Addresses and logins: a login leaves an address as soon as it comes in."""

import base64
import json
import netrc
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from envbuild.access import Access
from envbuild.errors import InputError


@dataclass(frozen=True, kw_only=True, slots=True)
class Login:
    """Name and password for what lies below an address.

    Attributes:
        address: Address without a login; every address that starts with it is meant. A host that
            begins with `*.` is every host that ends like it.
        user: User name.
        password: Password or token; never shown.
        bearer: Whether it is a token that stands alone.
    """

    address: str
    user: str
    password: str
    bearer: bool = False

    @property
    def header(self) -> str:
        """The value of an `Authorization` header (RFC 7617; RFC 6750 for a token)."""
        if self.bearer:
            return f"Bearer {self.password}"
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def __repr__(self) -> str:
        """Show no password, wherever this is printed."""
        return f"Login(address={self.address!r})"


def split_login(url: str) -> tuple[str, Login | None]:
    """Return an address without its login, and the login."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url, None
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    login = Login(
        address=bare, user=unquote(parts.username or ""), password=unquote(parts.password or "")
    )
    return bare, login


def without_login(url: str) -> str:
    """Return an address without its login, fit for messages and files."""
    return split_login(url)[0]


def with_login(url: str, known: Iterable[str]) -> str:
    """Return an address with the login of one of the known addresses on its host, if one has it."""
    parts = urlsplit(url)
    for each in known:
        netloc = urlsplit(each).netloc
        login, _, host = netloc.rpartition("@")
        if login and (urlsplit(each).scheme, host) == (parts.scheme, parts.netloc):
            return urlunsplit(parts._replace(netloc=netloc))
    return url


def join(base: str, path: str) -> str:
    """Return the address of a path below a base address."""
    return f"{base.rstrip('/')}/{path.lstrip('/')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirrors:
    """Where channels are read instead of their canonical addresses.

    Attributes:
        places: Channel name or canonical address (no slash at its end) to the addresses, without
            logins, to try in order.
        logins: The logins that stood in those addresses.
    """

    places: Mapping[str, tuple[str, ...]]
    logins: tuple[Login, ...]


def mirrors(access: Access) -> Mirrors:
    """Take the logins out of the mirrors' addresses."""
    places: dict[str, tuple[str, ...]] = {}
    logins: list[Login] = []
    for channel, urls in access.channel_mirrors.items():
        split = [split_login(url.rstrip("/")) for url in urls]
        places[without_login(channel.rstrip("/"))] = tuple(bare for bare, _ in split)
        logins += [login for _, login in split if login is not None]
    return Mirrors(places=places, logins=tuple(logins))


def netrc_logins(access: Access) -> tuple[Login, ...]:
    """Return the logins of the netrc file that `NETRC` names, one per host; none without it.

    Raises:
        InputError: The file cannot be parsed.
    """
    name = access.environment.get("NETRC")
    if not name or not Path(name).is_file():
        return ()
    try:
        hosts = netrc.netrc(name).hosts
    except (netrc.NetrcParseError, OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "msg", None) or type(error).__name__
        line = getattr(error, "lineno", None)
        message = f"{name}: not a netrc file: {reason}"
        raise InputError(message, source=name, where=str(line or "")) from error
    return tuple(
        Login(address=f"{scheme}://{host}", user=user, password=password or "")
        for host, (user, _, password) in hosts.items()
        if host != "default"
        for scheme in ("https", "http")
    )


def file_logins(access: Access) -> tuple[Login, ...]:
    """Return the logins of the files that `NETRC` and `RATTLER_AUTH_FILE` name.

    Raises:
        InputError: One of them cannot be read.
    """
    return (*netrc_logins(access), *_credentials(access))


def _credentials(access: Access) -> tuple[Login, ...]:
    """Return the logins of a file that rattler or pixi wrote; a conda token is none.

    Its form is that of rattler_networking's `Authentication`: by host, `BasicHTTP` with user name
    and password, or `BearerToken`.
    """
    name = access.environment.get("RATTLER_AUTH_FILE")
    if not name:
        return ()
    found: list[Login] = []
    try:
        for host, told in json.loads(Path(name).read_bytes()).items():
            basic = told.get("BasicHTTP") or told.get("BasicHttp")
            user, password = "", told.get("BearerToken")
            if basic:
                user, password = basic["username"], basic["password"]
            if isinstance(password, str):
                found += [
                    Login(
                        address=f"{scheme}://{host}",
                        user=str(user),
                        password=password,
                        bearer=not basic,
                    )
                    for scheme in ("https", "http")
                ]
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        message = f"{name}: not a file of logins as rattler writes it"
        raise InputError(message, source=name) from error
    return tuple(found)


def login_for(url: str, logins: tuple[Login, ...]) -> Login | None:
    """Return the login whose address is the longest that covers this one."""
    covering = [login for login in logins if _covers(login.address, url)]
    return max(covering, key=lambda login: len(login.address), default=None)


def bypasses_proxy(host: str, no_proxy: str) -> bool:
    """Say whether a host is reached directly under a `NO_PROXY` list (names, suffixes, `*`)."""
    for entry in no_proxy.replace(",", " ").split():
        name = entry.rpartition(":")[0] if entry.rpartition(":")[2].isdigit() else entry
        bare = (name or entry).lstrip("*").lstrip(".").lower()
        if entry == "*" or host.lower() == bare or (bare and host.lower().endswith("." + bare)):
            return True
    return False


def is_host(wanted: str | None, asked: str | None) -> bool:
    """Say whether a host is the one that is meant, or one of those (`*.example.org`)."""
    if wanted and asked and wanted.startswith("*."):
        return asked.endswith(wanted[1:])
    return wanted == asked


def _covers(address: str, url: str) -> bool:
    wanted, asked = urlsplit(address), urlsplit(url)
    if wanted.scheme != asked.scheme or not is_host(wanted.hostname, asked.hostname):
        return False
    if wanted.port is not None and wanted.port != asked.port:
        return False
    folder = wanted.path.rstrip("/")
    return not folder or asked.path == folder or asked.path.startswith(folder + "/")
