"""What the tests of creation share: orders of small packages, and creating them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from integration.packages import Made

from envbuild.access import Access
from envbuild.packages import CondaPackage, PipPackage
from envbuild.progress import Progress, Quiet
from envbuild.store import verify
from envbuild.store.create import Created, Host, Options, create
from envbuild.store.journal import Who
from envbuild.store.layout import Place, Store
from envbuild.store.manifest import Inputs
from envbuild.store.order import Order
from envbuild.target import Need, Needs

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
WHO = Who(user="anna", host="node1")
_UNKNOWN = Need(value=None, origin=None)
NEEDS = Needs(driver=_UNKNOWN, gpus=_UNKNOWN, glibc=_UNKNOWN, cuda=_UNKNOWN)
PLACEHOLDER = "/opt/placeholder" + "_placehold" * 20


def order(
    conda: Sequence[Made | CondaPackage] = (),
    pip: Sequence[PipPackage] = (),
    **more: Any,  # noqa: ANN401
) -> Order:
    """Return an order; packages made by the tests come from where they lie."""
    packages = tuple(
        one.package(one.archive.parents[1].as_uri()) if isinstance(one, Made) else one
        for one in conda
    )
    text = repr([[(one.filename, one.sha256, one.md5) for one in packages], pip])
    settings: dict[str, Any] = {
        "name": "demo",
        "platform": "linux-64",
        "glibc": "2.28",
        "environment_digest": sha256(text.encode()).hexdigest(),
        "solve_digest": "0" * 64,
        "conda": packages,
        "pip": tuple(pip),
        "needs": NEEDS,
        "inputs": Inputs(recipe=(), lock=()),
    }
    return Order(**settings | more)


@dataclass(kw_only=True)
class Creator:
    """A store, and how environments are created in it.

    Attributes:
        root: The store's folder.
        access: How the network is reached.
        home: The user's home.
        cache: Where the caches are, None for the store.
        progress: Is told what begins.
    """

    root: Path
    access: Access = field(default_factory=lambda: Access(offline=True))
    home: Path | None = None
    cache: Path | None = None
    progress: Progress = field(default_factory=Quiet)

    @property
    def store(self) -> Store:
        """The store as the user names it."""
        return Store(root=self.root, cache_folder=self.cache)

    @property
    def place(self) -> Place:
        """The place of `demo`."""
        return self.store.resolved().place("demo")

    def create(
        self,
        order: Order,
        *,
        host: Host | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Created:
        """Create what is ordered."""
        return create(
            order,
            self.store.place(order.name),
            Options(home=self.home, **options),
            host=host,
            access=self.access,
            progress=self.progress,
            who=WHO,
            now=NOW,
        )

    def nothing_left(self) -> bool:
        """Whether no generation, complete or not, is there."""
        return not self.place.generations.exists() and not self.place.current.is_symlink()


def codes(created: Created) -> list[str]:
    """Return the codes of what creation had to say."""
    return [finding.code for finding in created.manifest.findings]


def damage(created: Created) -> list[tuple[str, str]]:
    """Return what verify says of a generation, code and place."""
    return [(finding.code, finding.where) for finding in verify.verify(created.generation)]
