"""Facts that are told in words: what fails, what people say and ask, what the kernel's log says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from envbuild.compat.row import Row

Verdict = Literal["true", "partly", "false", "not verified"]


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownBad(Row):
    """A combination that is known to fail or to compute wrong results.

    Attributes:
        id: What it is called.
        packages: PyPI name to the versions that are affected; all have to be there. A CUDA
            library's name goes without the suffix of its CUDA version.
        when: What triggers it.
        effect: What happens.
        cure: What to do.
        capabilities: Compute capabilities that are affected; empty for all.
    """

    id: str
    packages: Mapping[str, str]
    when: str
    effect: str
    cure: str
    capabilities: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`known-bad ID`."""
        return f"known-bad {self.id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class BadDriver(Row):
    """Releases of a driver that are known to fail.

    Attributes:
        id: What it is called.
        first: The first release that has it.
        fixed: The first one that does not any more.
        when: What triggers it.
        effect: What happens.
        cure: What to do.
        capabilities: Compute capabilities that are affected; empty for all.
    """

    id: str
    first: str
    fixed: str
    when: str
    effect: str
    cure: str
    capabilities: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`bad-driver ID`."""
        return f"bad-driver {self.id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim(Row):
    """Something that people repeat, and what was found.

    Attributes:
        id: What it is called.
        claim: What is said.
        verdict: Whether it is true.
        truth: What is true.
    """

    id: str
    claim: str
    verdict: Verdict
    truth: str

    @property
    def name(self) -> str:
        """`claim ID`."""
        return f"claim {self.id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Xid(Row):
    """A number that the driver writes into the kernel's log.

    Attributes:
        number: The number.
        title: What NVIDIA's catalog calls it.
        what: What it says, in plain words.
        action: The catalog's immediate action, in its own word (`RESET_GPU`).
        cure: What to do, in plain words.
    """

    number: int
    title: str
    what: str
    action: str
    cure: str

    @property
    def name(self) -> str:
        """`xid 79`."""
        return f"xid {self.number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic(Row):
    """Something that people ask about.

    Attributes:
        id: What it is called.
        title: The same in words.
        text: What is known, a few sentences.
        also: Other names.
        see: What to ask next, as `envbuild explain` takes it.
    """

    id: str
    title: str
    text: str
    also: tuple[str, ...] = ()
    see: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`topic ID`."""
        return f"topic {self.id}"
