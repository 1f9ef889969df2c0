"""The settings that there are: their names, kinds and variables. Imported on hot paths."""

from dataclasses import dataclass
from enum import Enum, auto

Value = str | bool | float | tuple[str, ...]
"""A path, text or address; a switch; a number; a list of paths or addresses."""


class Kind(Enum):
    """What a setting may be."""

    PATH = auto()
    PATHS = auto()
    SWITCH = auto()
    COUNT = auto()
    SECONDS = auto()
    TEXT = auto()
    COLOR = auto()
    ADDRESS = auto()
    ADDRESSES = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A setting.

    Attributes:
        name: As files have it; `index.*` is every name in the table `index`.
        kind: What it may be.
        variable: The variable that says the same.
        also: Other variables that stand for it and win over files, first one first.
        about: What it sets, a few words.
        default: What holds where nothing is set, as it is shown.
        least: The smallest number that it may be.
    """

    name: str
    kind: Kind
    variable: str
    also: tuple[str, ...] = ()
    about: str
    default: str = ""
    least: int = 0


def _proxy(name: str, about: str, kind: Kind = Kind.ADDRESS) -> Key:
    variable = f"{'no' if name == 'bypass' else name}_proxy"
    return Key(
        name=f"proxy.{name}", kind=kind, variable=variable, also=(variable.upper(),), about=about
    )


KEYS: tuple[Key, ...] = (
    Key(name="store", kind=Kind.PATH, variable="ENVBUILD_STORE", about="your store"),
    Key(
        name="cache",
        kind=Kind.PATH,
        variable="ENVBUILD_CACHE",
        about="caches of your store; on its disk files are linked, else copied",
        default="cache in the store",
    ),
    Key(
        name="system-store",
        kind=Kind.PATH,
        variable="ENVBUILD_SYSTEM_STORE",
        about="root's store, where others look second",
        default="/var/lib/envbuild",
    ),
    Key(
        name="recipes",
        kind=Kind.PATHS,
        variable="ENVBUILD_RECIPES",
        about="folders of recipes, looked at after ./recipes",
        default="./recipes, then those that ship",
    ),
    Key(
        name="lockfiles",
        kind=Kind.PATHS,
        variable="ENVBUILD_LOCKFILES",
        about="folders of locks, looked at after ./lockfiles",
        default="./lockfiles, then those that ship",
    ),
    Key(
        name="facts",
        kind=Kind.PATH,
        variable="ENVBUILD_FACTS",
        about="a folder of the site's own facts",
    ),
    Key(
        name="templates",
        kind=Kind.PATH,
        variable="ENVBUILD_TEMPLATES",
        about="a folder of the site's own templates for units",
    ),
    Key(
        name="python",
        kind=Kind.PATH,
        variable="ENVBUILD_PYTHON",
        about="the interpreter of recipes on the host's Python",
    ),
    Key(
        name="compile",
        kind=Kind.SWITCH,
        variable="ENVBUILD_COMPILE",
        about="whether create compiles bytecode",
        default="true for root, else false",
    ),
    Key(
        name="keep",
        kind=Kind.COUNT,
        variable="ENVBUILD_KEEP",
        about="how many of the newest generations gc leaves",
        default="3",
    ),
    Key(
        name="color",
        kind=Kind.COLOR,
        variable="ENVBUILD_COLOR",
        also=("NO_COLOR", "FORCE_COLOR"),
        about="auto, always or never",
        default="auto",
    ),
    Key(
        name="no-progress",
        kind=Kind.SWITCH,
        variable="ENVBUILD_NO_PROGRESS",
        about="no moving bars",
        default="false",
    ),
    Key(
        name="offline",
        kind=Kind.SWITCH,
        variable="ENVBUILD_OFFLINE",
        about="use caches only",
        default="false",
    ),
    Key(
        name="lock-timeout",
        kind=Kind.SECONDS,
        variable="ENVBUILD_LOCK_TIMEOUT",
        about="seconds to wait for another process",
        default="60; create: 3600",
    ),
    Key(
        name="http-timeout",
        kind=Kind.COUNT,
        variable="ENVBUILD_HTTP_TIMEOUT",
        about="seconds until a silent server is given up",
        least=1,
        default="30",
    ),
    Key(
        name="http-retries",
        kind=Kind.COUNT,
        variable="ENVBUILD_HTTP_RETRIES",
        about="how often a request is tried again",
        default="3",
    ),
    _proxy("http", "the proxy for http"),
    _proxy("https", "the proxy for https"),
    _proxy("all", "the proxy for all else"),
    _proxy("bypass", "hosts that are reached directly, with commas", Kind.TEXT),
    Key(
        name="certificates",
        kind=Kind.PATH,
        variable="SSL_CERT_FILE",
        also=("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR"),
        about="file or folder of trusted certificates",
        default="those of the engines",
    ),
    Key(
        name="client-certificate",
        kind=Kind.PATH,
        variable="SSL_CLIENT_CERT",
        about="certificate and key that servers are shown, one file",
    ),
    Key(
        name="netrc",
        kind=Kind.PATH,
        variable="NETRC",
        about="file of logins",
        default="~/.netrc",
    ),
    Key(
        name="credentials",
        kind=Kind.PATH,
        variable="RATTLER_AUTH_FILE",
        about="file of logins as rattler and pixi write it",
        default="~/.rattler/credentials.json",
    ),
    Key(
        name="index.default",
        kind=Kind.ADDRESS,
        variable="ENVBUILD_DEFAULT_INDEX",
        about="the default PyPI index",
        default="the engine's",
    ),
    Key(
        name="index.*",
        kind=Kind.ADDRESS,
        variable="ENVBUILD_INDEXES",
        about="where the recipes' index of that name is reached",
    ),
    Key(
        name="mirrors.*",
        kind=Kind.ADDRESSES,
        variable="ENVBUILD_CHANNEL_MIRRORS",
        about="where the conda channel of that name is reached; * is every plain name",
    ),
)

BY_NAME: dict[str, Key] = {key.name: key for key in KEYS}
TABLES = ("proxy", "index", "mirrors")


def key_of(name: str) -> Key | None:
    """Return what a setting's full name means (`mirrors.conda-forge`), or None."""
    if found := BY_NAME.get(name):
        return found if "*" not in name or name == "mirrors.*" else None
    table, _, rest = name.partition(".")
    return BY_NAME.get(f"{table}.*") if rest else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A value and where it was said.

    Attributes:
        key: Its full name.
        value: What was said; a path from a file is absolute.
        source: A file's path, a variable, an option, or `default`.
        line: Line in the file, or None.
        tool: The tool whose setting it is, empty for ours.
    """

    key: str
    value: Value
    source: str
    line: int | None = None
    tool: str = ""

    @property
    def origin(self) -> str:
        """Where it was said, for a person: `FILE:LINE`."""
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{place} ({self.tool})" if self.tool else place
