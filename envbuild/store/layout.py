"""Every path in a store.

::

    STORE/envs/NAME/generations/ID/            a generation: the conda prefix itself
    STORE/envs/NAME/generations/ID/.envbuild/  manifest.json, environment.json, needs.json,
                                               order.json, files.json, and for its
                                               services units.env and scripts
    STORE/envs/NAME/current -> generations/ID  a relative link
    STORE/envs/NAME/lock                       held while the environment changes
    STORE/envs/NAME/logs/ID.log                what the programs of a build printed
    STORE/by-name/NAME -> ../envs/NAME/current what conda, VS Code and Jupyter see
    STORE/cache/{pkgs,uv,metadata,host,…}      caches, hard-linked into generations
    STORE/format.json                          the format of the store
    STORE/journal.jsonl                        who changed what, when, from, to
    STORE/journal.lock                         held while a change happens
    STORE/hosts/                               who uses what, of a store that hosts share
    STORE/ledger.sqlite                        what was hashed and has not changed since
    STORE/wheelhouse/                          rebuilt wheels, an index of files
    STORE/channels/                            local channels: host pythons, added archives
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from envbuild.errors import UsageProblem

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")

OWN_FOLDER = ".envbuild"
MANIFEST = "manifest.json"
ENVIRONMENT = "environment.json"
NEEDS = "needs.json"
ORDER = "order.json"
UNIT_ENVIRONMENT = "units.env"
GENERATION_FORMAT = 3
"""How a generation is built; part of its digest, so that another way makes another generation."""
STORE_FORMAT = 2
"""What lies where in a store; see `store.formats`."""


def check_name(name: str) -> str:
    """Return the name of an environment if it is one.

    Raises:
        UsageProblem: It has other characters than letters, digits, `.`, `_`, `-`, starts with
            `.` or `-`, or is longer than 64.
    """
    if _NAME.fullmatch(name):
        return name
    message = f"{name!r} is not a name"
    raise UsageProblem(
        message, hint="use letters, digits, '.', '_' and '-', at most 64, not '.' or '-' first"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Store:
    """The paths of one store.

    Attributes:
        root: The store's folder.
        cache_folder: Where its caches are, None for `ROOT/cache`: elsewhere on the same disk files
            are hard-linked all the same, on another disk they are copied.
    """

    root: Path
    cache_folder: Path | None = None

    @property
    def cache(self) -> Path:
        """Caches of the engines and of ours."""
        return self.cache_folder or self.root / "cache"

    def resolved(self) -> "Store":
        """Return the store by its real path, which is written into what is installed."""
        return replace(self, root=self.root.resolve())

    @property
    def package_cache(self) -> Path:
        """Conda archives, and what was extracted from them."""
        return self.cache / "pkgs"

    @property
    def uv_cache(self) -> Path:
        """The cache of uv."""
        return self.cache / "uv"

    @property
    def metadata_cache(self) -> Path:
        """METADATA of wheels, by the wheel's SHA-256."""
        return self.cache / "metadata"

    @property
    def ledger(self) -> Path:
        """What was hashed, and archives' first digests."""
        return self.root / "ledger.sqlite"

    @property
    def journal(self) -> Path:
        """Who changed what, a JSON object a line."""
        return self.root / "journal.jsonl"

    @property
    def journal_lock(self) -> Path:
        """Held while a change of state happens and is written down."""
        return self.root / "journal.lock"

    @property
    def hosts(self) -> Path:
        """A file per use of a generation; only where several hosts share the store."""
        return self.root / "hosts"

    @property
    def format(self) -> Path:
        """The number of the store's format; stores of the first have no such file."""
        return self.root / "format.json"

    @property
    def channels(self) -> Path:
        """Local channels."""
        return self.root / "channels"

    @property
    def wheelhouse(self) -> Path:
        """Rebuilt wheels."""
        return self.root / "wheelhouse"

    @property
    def rebuild_cache(self) -> Path:
        """Sources, builds that did not end, and compilers' caches of rebuilds."""
        return self.cache / "rebuild"

    @property
    def added_pythons(self) -> Path:
        """The list of interpreters that `channel add-python` added; written by the channel."""
        return self.channels / "host" / "pythons.json"

    @property
    def by_name(self) -> Path:
        """Links by name, for conda's `envs_dirs`."""
        return self.root / "by-name"

    @property
    def environments(self) -> Path:
        """One folder per environment."""
        return self.root / "envs"

    def place(self, name: str) -> "Place":
        """Return the paths of one environment."""
        return Place(store=self, name=check_name(name))


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The paths of one environment in a store."""

    store: Store
    name: str

    @property
    def root(self) -> Path:
        """The environment's own folder."""
        return self.store.environments / self.name

    @property
    def generations(self) -> Path:
        """One folder per generation."""
        return self.root / "generations"

    @property
    def current(self) -> Path:
        """The link that names the current generation."""
        return self.root / "current"

    @property
    def history(self) -> Path:
        """Who moved `current`, as stores kept it before they had a journal."""
        return self.root / "history.jsonl"

    @property
    def lock(self) -> Path:
        """Held while the environment changes."""
        return self.root / "lock"

    @property
    def logs(self) -> Path:
        """What the programs of builds printed, a file per generation; outlives a failed build."""
        return self.root / "logs"

    @property
    def by_name(self) -> Path:
        """The link under which other tools find the environment."""
        return self.store.by_name / self.name

    def generation(self, identifier: str) -> "Generation":
        """Return the paths of one generation."""
        return Generation(place=self, identifier=identifier)


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """The paths of one generation."""

    place: Place
    identifier: str

    @property
    def prefix(self) -> Path:
        """The conda prefix."""
        return self.place.generations / self.identifier

    @property
    def own(self) -> Path:
        """Our own files."""
        return self.prefix / OWN_FOLDER

    @property
    def manifest(self) -> Path:
        """Written last; a generation without it is rubbish."""
        return self.own / MANIFEST

    @property
    def going(self) -> Path:
        """Its manifest while it is looked whether it may be removed."""
        return self.own / f".{MANIFEST}.going"

    @property
    def environment(self) -> Path:
        """What activation sets, computed once."""
        return self.own / ENVIRONMENT

    @property
    def needs(self) -> Path:
        """What a host must have."""
        return self.own / NEEDS

    @property
    def unit_environment(self) -> Path:
        """What activation sets, as systemd reads it: `EnvironmentFile=` of its services."""
        return self.own / UNIT_ENVIRONMENT

    @property
    def order(self) -> Path:
        """What creation was told: enough to make the generation again without recipe and lock."""
        return self.own / ORDER
