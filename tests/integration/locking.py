"""Locking in tests: the snapshot of real channels and an index of small wheels, on localhost."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from integration.channel_server import SNAPSHOT, ChannelServer, serve, snapshot_mirrors
from integration.index_server import Index, IndexServer, serving, wheel

from envbuild.access import Access
from envbuild.cli.main import main
from envbuild.lock.model import Lock
from envbuild.pipeline.lock import LockOptions, LockResult, make_lock
from envbuild.progress import Quiet
from envbuild.recipe.load import LoadedRecipe, loads
from envbuild.solve.solution import Upgrade
from envbuild.store.layout import Store

NOW = datetime(2026, 12, 1, 12, 30, 15, 123456, tzinfo=UTC)

SMALL = """\
name: small
python: "3.11"
channels: [conda-forge]
conda:
  - libzlib
pypi:
  - app
"""
HOST = """\
name: onhost
target: {platforms: [linux-64, linux-aarch64]}
python: ">=3.11,<3.15"
channels: [host]
pypi: [app]
"""


def wheels() -> Index:
    """Return an index: app 1 and, from June 2026 on, app 2; both need leaf."""
    june = datetime(2026, 6, 1, tzinfo=UTC)
    return Index(
        wheels=[
            wheel("app", "1", requires=["leaf"]),
            wheel("app", "2", requires=["leaf"], uploaded=june),
            wheel("leaf", "1"),
            wheel("leaf", "2", uploaded=june),
        ]
    )


@dataclass(kw_only=True)
class Locker:
    """A project folder with everything that locking reaches.

    Attributes:
        root: The project: `recipes`, `lockfiles`.
        channels: The server of the channels.
        server: The server of the index.
        index: The index.
        environment: What the command line sees.
    """

    root: Path
    channels: ChannelServer
    server: IndexServer
    index: Index
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def access(self) -> Access:
        return Access(
            channel_mirrors=snapshot_mirrors(self.channels), default_index=self.server.url("main")
        )

    @property
    def store(self) -> Store:
        return Store(root=self.root / "store")

    def make(
        self,
        recipe: str | LoadedRecipe,
        *,
        old: Lock | None = None,
        newer: str | None = None,
        upgrade: Upgrade = Upgrade(),  # noqa: B008
        now: datetime = NOW,
        access: Access | None = None,
    ) -> LockResult:
        """Lock a recipe; nothing is written."""
        loaded = self.load(recipe) if isinstance(recipe, str) else recipe
        return make_lock(
            loaded,
            LockOptions(old=old, exclude_newer=newer, upgrade=upgrade),
            access=access or self.access,
            store=self.store,
            now=now,
            progress=Quiet(),
        )

    def load(self, text: str) -> LoadedRecipe:
        name = text.partition("\n")[0].removeprefix("name: ")
        return loads(text, source=f"recipes/{name}.yaml")

    def write(self, text: str) -> str:
        """Write a recipe into the project and return its name."""
        name = text.partition("\n")[0].removeprefix("name: ")
        (self.root / "recipes").mkdir(exist_ok=True)
        (self.root / "recipes" / f"{name}.yaml").write_text(text)
        return name

    def variables(self) -> dict[str, str]:
        """Return the variables under which the command line reaches the servers."""
        mirrors = [f"{name}={urls[0]}" for name, urls in snapshot_mirrors(self.channels).items()]
        return {
            "ENVBUILD_STORE": str(self.root / "store"),
            "ENVBUILD_CHANNEL_MIRRORS": " ".join(mirrors),
            "UV_DEFAULT_INDEX": self.server.url("main"),
            "HOME": str(self.root / "home"),
        }

    def files(self, name: str) -> dict[str, bytes]:
        """Return the files of a lock of the project, hidden ones included."""
        folder = self.root / "lockfiles" / name
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@contextlib.contextmanager
def locker(root: Path) -> Iterator[Locker]:
    """Serve channels and an index, and yield what locks against them."""
    index = wheels()
    with serve(SNAPSHOT) as channels, serving(main=index) as server:
        yield Locker(root=root, channels=channels, server=server, index=index)


def envbuild(*words: str) -> int:
    """Run a command line in this process and return its exit code."""
    return main(list(words))
