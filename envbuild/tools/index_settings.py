"""Where the user's settings say that channels and the default index are, and how to get out.

uv and pip differ in what they read; here it is read once and told to each engine in its words. Of
uv's and pip's settings only the default index's address counts: anything else would make a lock
depend on the machine. What our own files say comes before; see `envbuild.config`.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envbuild.errors import InputError, UsageProblem

MIRRORS_VARIABLE = "ENVBUILD_CHANNEL_MIRRORS"

_MIRROR = re.compile(r"(?P<channel>.+?)=(?P<url>https?://[^/\s]+.*)")
_NAMED_URL = re.compile(r"\A[A-Za-z0-9._-]+=(?=[A-Za-z][A-Za-z0-9+.-]*:|/|\.)")
_CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_INDEX_LOGIN = re.compile(r"UV_INDEX_[A-Z0-9_]+_(?:USERNAME|PASSWORD)")


def channel_mirrors(environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return what `ENVBUILD_CHANNEL_MIRRORS` says: channel to addresses, in the order written.

    Raises:
        UsageProblem: An entry is not `CHANNEL=URL` with http or https.
    """
    found: dict[str, tuple[str, ...]] = {}
    for entry in environ.get(MIRRORS_VARIABLE, "").split():
        match = _MIRROR.fullmatch(entry)
        if match is None:
            message = f"{MIRRORS_VARIABLE}: an entry is not CHANNEL=URL with http or https"
            shown = entry if "@" not in entry else entry.partition("=")[0]
            raise UsageProblem(
                message,
                hint="write conda-forge=http://localhost:8000/conda-forge, one after a space",
                details=f"found: {shown}",
            )
        channel = match["channel"]
        found[channel] = (*found.get(channel, ()), match["url"])
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """A value and where it was found: a variable's name or a file's path."""

    value: str
    source: str


def default_index(
    environ: Mapping[str, str], home: Path, *, root: Path = Path("/"), site: Path = Path(sys.prefix)
) -> Told | None:
    """Return the address of the default PyPI index that the user set and where, or None.

    The first of `UV_DEFAULT_INDEX`, `UV_INDEX_URL`, uv's configuration, `PIP_INDEX_URL`, pip's
    configuration that names one; an empty variable names none.

    Args:
        environ: The variables.
        home: The user's home directory.
        root: Where `/etc` is.
        site: The folder of the Python installation, whose `pip.conf` counts.

    Raises:
        InputError: A configuration file on the way cannot be read.
    """
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if url := environ.get(variable, "").strip():
            return Told(value=_NAMED_URL.sub("", url, count=1), source=variable)
    for path in _uv_files(environ, home, root):
        if found := _uv_index(path):
            return Told(value=found, source=str(path))
    if url := environ.get("PIP_INDEX_URL", "").strip():
        return Told(value=url, source="PIP_INDEX_URL")
    return pip_option("index-url", environ, home, root=root, site=site)


def pip_option(
    option: str,
    environ: Mapping[str, str],
    home: Path,
    *,
    root: Path = Path("/"),
    site: Path = Path(sys.prefix),
) -> Told | None:
    """Return what pip's configuration files say for an option (`index-url`), or None.

    Raises:
        InputError: One of them cannot be read.
    """
    last = None
    for path in _pip_files(environ, home, root, site):
        if value := _pip_value(path, option):
            last = Told(value=value, source=str(path))
    return last


def network_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the engines are told about certificates, proxies and logins.

    Each engine reads other variables, so each gets all of them: a bundle of certificates under the
    names of uv (`SSL_CERT_FILE`, `SSL_CERT_DIR`) and of requests, proxies in both spellings (lower
    case wins), and the netrc file by its path, since engines see no home directory.
    """
    found: dict[str, str] = {}
    bundles = [environ[name] for name in _CERTIFICATES if environ.get(name)]
    if bundles:
        own = environ.get("SSL_CERT_FILE") or bundles[0]
        found["SSL_CERT_DIR" if Path(own).is_dir() else "SSL_CERT_FILE"] = own
        found["REQUESTS_CA_BUNDLE"] = environ.get("REQUESTS_CA_BUNDLE") or bundles[0]
    for name in ("SSL_CERT_DIR", "SSL_CLIENT_CERT"):
        if environ.get(name):
            found.setdefault(name, environ[name])
    for name in _PROXIES:
        value = environ.get(name) or environ.get(name.upper())
        if value:
            found[name] = found[name.upper()] = value
    if Path(environ.get("RATTLER_AUTH_FILE") or "/nonexistent").is_file():
        found["RATTLER_AUTH_FILE"] = environ["RATTLER_AUTH_FILE"]
    netrc = environ.get("NETRC") or f"{environ.get('HOME') or '/nonexistent'}/.netrc"
    if Path(netrc).is_file():
        found["NETRC"] = netrc
    found |= {name: environ[name] for name in environ if _INDEX_LOGIN.fullmatch(name)}
    return found


def http_limits(environ: Mapping[str, str]) -> tuple[int, int]:
    """Return how long a server may be silent, in seconds, and how often a request is tried again.

    `ENVBUILD_HTTP_TIMEOUT` and `ENVBUILD_HTTP_RETRIES`, else uv's variables for the same, else
    uv's defaults.

    Raises:
        UsageProblem: One of ours is not a whole number, or the time is none.
    """
    timeout_s = _whole_number(environ, "HTTP_TIMEOUT", default=30, least=1)
    return timeout_s, _whole_number(environ, "HTTP_RETRIES", default=3, least=0)


def _whole_number(environ: Mapping[str, str], name: str, *, default: int, least: int) -> int:
    told = environ.get(f"ENVBUILD_{name}", "").strip()
    if told:
        if told.isascii() and told.isdigit() and int(told) >= least:
            return int(told)
        message = f"ENVBUILD_{name} is {told!r}, not a whole number from {least} on"
        raise UsageProblem(message, hint=f"set it to {default}, or not at all")
    theirs = environ.get(f"UV_{name}", "").strip()
    return int(theirs) if theirs.isdigit() and int(theirs) >= least else default


def _configuration_home(environ: Mapping[str, str], home: Path) -> Path:
    told = environ.get("XDG_CONFIG_HOME", "")
    return Path(told) if told.startswith("/") else home / ".config"


def _configuration_folders(environ: Mapping[str, str], root: Path) -> list[Path]:
    told = [part for part in environ.get("XDG_CONFIG_DIRS", "").split(":") if part]
    return [Path(part) for part in told] or [root / "etc/xdg"]


def _uv_files(environ: Mapping[str, str], home: Path, root: Path) -> Iterator[Path]:
    """Yield uv's files, the one that counts most first."""
    if environ.get("UV_NO_CONFIG", "").lower() in ("1", "true", "yes", "on"):
        return
    if told := environ.get("UV_CONFIG_FILE"):
        yield Path(told)
        return
    yield _configuration_home(environ, home) / "uv/uv.toml"
    for folder in _configuration_folders(environ, root):
        yield folder / "uv/uv.toml"
    yield root / "etc/uv/uv.toml"


def _uv_index(path: Path) -> str | None:
    text = text_of(path)
    if text is None:
        return None
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"{path}: not a TOML file: {error}"
        raise InputError(message, source=str(path)) from error
    pip = settings.get("pip")
    for table in (pip if isinstance(pip, dict) else {}, settings):
        if url := _index_in(table):
            return url
    return None


def _index_in(table: Mapping[str, Any]) -> str | None:
    indexes = table.get("index", [])
    for index in indexes if isinstance(indexes, list) else ():
        if isinstance(index, dict) and index.get("default") is True and index.get("url"):
            return str(index["url"]).strip()
    return str(table.get("index-url") or "").strip() or None


def _pip_files(environ: Mapping[str, str], home: Path, root: Path, site: Path) -> Iterator[Path]:
    """Yield pip's files, the one that counts most last."""
    told = environ.get("PIP_CONFIG_FILE")
    if told == "/dev/null":
        return
    for folder in _configuration_folders(environ, root):
        yield folder / "pip/pip.conf"
    yield root / "etc/pip.conf"
    if not (told and Path(told).exists()):
        yield home / ".pip/pip.conf"
        yield _configuration_home(environ, home) / "pip/pip.conf"
    yield site / "pip.conf"
    if told:
        yield Path(told)


def _pip_value(path: Path, option: str) -> str | None:
    """Return an option of one file of pip's: `[install]` counts more than `[global]`."""
    text = text_of(path)
    if text is None:
        return None
    import configparser

    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text, source=str(path))
    except configparser.Error as error:
        message = f"{path}: not a configuration file of pip: {' '.join(str(error).split())}"
        raise InputError(message, source=str(path)) from error
    for section in ("install", "global"):
        if parser.has_section(section):
            for key, value in parser.items(section):
                if key.replace("_", "-").removeprefix("--") == option and value.strip():
                    return value.strip()
    return None


def text_of(path: Path) -> str | None:
    """Return a file's text, None if it is not there."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise InputError(message, source=str(path)) from error
