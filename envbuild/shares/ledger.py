"""The ledger of instances that were made for jobs: what there shall be, and what was made of it.

It outlives a boot, after which instances are gone and are made anew from it. It is written before
a card is changed and after, so that whoever comes next knows what to finish.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from envbuild.errors import HostError, StoreError
from envbuild.tools.files import make_folder, write_atomic

PLACE: Final = "var/lib/envbuild-shares"
INSTANCES: Final = "run/envbuild/instances.json"
"""What services find their instances in; gone after a boot, as the instances are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """A part that there shall be on a card.

    Attributes:
        owner: The recipe that asked, or `-`.
        job: The job.
        wish: What was asked for, in a form that is compared.
        card: The card's UUID.
        profile: The profile's name.
        number: The profile's number.
        start: Its first memory slice.
        size: How many.
        memory_mib: Its memory.
        sm_percent: Its share of the multiprocessors.
        before: Instances that were on the card before it was to be made: none of them is it.
        instance: The number of its GPU instance; None while it is not made.
        uuid: Its device's UUID, empty while it is not made.
        compute_instance: The number of its compute instance.
    """

    owner: str
    job: str
    wish: str
    card: str
    profile: str
    number: int
    start: int
    size: int
    memory_mib: int
    sm_percent: float
    before: tuple[int, ...] = ()
    instance: int | None = None
    uuid: str = ""
    compute_instance: int = 0

    @property
    def mask(self) -> int:
        """Its memory slices, as bits."""
        return ((1 << self.size) - 1) << self.start


@dataclass(frozen=True, kw_only=True, slots=True)
class Books:
    """All of it.

    Attributes:
        parts: What there shall be.
        switched: Cards that were put into MIG mode for it, by their UUIDs.
    """

    version: int = 1
    parts: tuple[Made, ...] = ()
    switched: tuple[str, ...] = field(default=())

    def without(self, part: Made) -> "Books":
        """Return them without a part."""
        return replace(self, parts=tuple(one for one in self.parts if not same(one, part)))

    def with_(self, part: Made) -> "Books":
        """Return them with a part, in the place of an earlier form of it."""
        kept = self.without(part)
        return replace(kept, parts=(*kept.parts, part))


def same(one: Made, other: Made) -> bool:
    """Tell whether two are forms of one part."""
    return (one.card, one.start, one.owner, one.job) == (
        other.card,
        other.start,
        other.owner,
        other.job,
    )


class Ledger:
    """The ledger of a host, held.

    Attributes:
        books: What it says.
    """

    def __init__(self, folder: Path) -> None:
        """Read it.

        Raises:
            StoreError: It cannot be read, or a later envbuild wrote it.
        """
        self._path = folder / "ledger.json"
        self.books = Books()
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return
        try:
            self.books = msgspec.json.decode(text, type=Books)
        except msgspec.MsgspecError as error:
            message = f"{self._path} is no ledger of shares: {error}"
            raise StoreError(
                message, hint="move it away; instances are then no longer known"
            ) from (error)
        if self.books.version != Books().version:
            message = f"{self._path} was written by a later envbuild"
            raise StoreError(message, hint="use that envbuild")

    def keep(self, books: Books) -> None:
        """Write it, whole or not at all."""
        self.books = books
        write_atomic(self._path, json.dumps(asdict(books), indent=1) + "\n")


@contextlib.contextmanager
def opened(root: Path) -> Iterator[Ledger]:
    """Give the ledger of the host whose root is this; others wait.

    Raises:
        HostError: This user may not change it.
        StoreError: It cannot be read.
    """
    folder = root / PLACE
    try:
        make_folder(folder)
        lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        message = f"{error.filename}: {error.strerror}"
        raise HostError(message, hint="only root shares cards") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Ledger(folder)
    finally:
        os.close(lock)


def read(root: Path) -> Books:
    """Return what the ledger of a host says.

    Raises:
        StoreError: It cannot be read.
    """
    return Ledger(root / PLACE).books


def publish(root: Path, instances: list[Mapping[str, Any]]) -> None:
    """Write where services find their instances."""
    path = root / INSTANCES
    make_folder(path.parent)
    write_atomic(path, json.dumps(instances, indent=1) + "\n")
