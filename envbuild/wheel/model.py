"""`Plan`: what of a lock needs a rebuild, why, and what that takes."""

from dataclasses import dataclass
from typing import Literal

from envbuild.target import Platform

Half = Literal["conda", "pypi"]
Read = Literal["generation", "cache", "fetched", "facts"]
Cause = Literal["compiler", "string-abi", "gpu-code", "links", "always", "absent"]
Abi = Literal["new", "old"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One thing that was read.

    Attributes:
        where: The file within its package, or the row of facts.
        what: What it says, as it was read (`.comment: GCC 9.3.1, GCC 4.8.5`).
        read: Whether it was read in the environment's current `generation`, in a `cache`, was
            `fetched` for it, or stands in the tables of `facts`.
    """

    where: str
    what: str
    read: Read


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """Why a package needs a rebuild.

    Attributes:
        cause: Its compiler, its string ABI, its GPU code, that it links a library of a package
            that is rebuilt, that the recipe says `when: always`, or that the lock has a rebuilt
            wheel which is `absent` from this host's wheelhouse.
        what: One sentence without a full stop at its end.
        evidence: What it follows from.
    """

    cause: Cause
    what: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sdist:
    """The source distribution of a version, as the package's index has it."""

    name: str
    version: str
    index: str | None = None

    def __str__(self) -> str:
        """Return it as a table shows it."""
        return f"sdist {self.name} {self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class GitCommit:
    """A commit of a git repository.

    Attributes:
        url: The repository.
        commit: The commit, in full.
        tag: The tag that has to point to it, or None.
        submodules: Whether its submodules belong to it.
    """

    url: str
    commit: str
    tag: str | None = None
    submodules: bool = True

    def __str__(self) -> str:
        """Return it as a table shows it."""
        with_ = " with submodules" if self.submodules else ""
        return f"git {self.url} {self.tag or ''} {self.commit[:12]}".replace("  ", " ") + with_


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """A source archive or folder on this machine.

    Attributes:
        path: Where it lies, absolute.
        sha256: Its digest, or None where the recipe names none.
    """

    path: str
    sha256: str | None = None

    def __str__(self) -> str:
        """Return it as a table shows it."""
        return f"archive {self.path}"


Source = Sdist | GitCommit | Archive


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolchain:
    """What compiles a package.

    Attributes:
        compiler: The compiler, such as `gcc 12`.
        package: The lock's conda package that has it (`gxx_linux-64 12.4.0`), or None where it has
            to be the machine's.
        cuda: Version of the CUDA toolkit that is needed (`12.4`), or None for no CUDA.
        cuda_package: The lock's package that has nvcc, or None where it has to be the machine's.
        takes: Compilers that its nvcc takes, such as `gcc 6.0 to 13`; None where unknown.
        problem: Why it cannot work, or empty.
    """

    compiler: str
    package: str | None = None
    cuda: str | None = None
    cuda_package: str | None = None
    takes: str | None = None
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a rebuild takes, as far as earlier builds of the package say; None where none does.

    Attributes:
        time_s: How long it took.
        memory_bytes: The most memory that it took.
        disk_bytes: The most disk that it took.
        origin: Which build said so (`kiwisolver 1.4.5, 2026-11-02`), empty for none.
    """

    time_s: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    origin: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebuild:
    """One package that is rebuilt.

    Attributes:
        name: Its normalized name on PyPI (a conda `pytorch` is rebuilt as `torch`).
        version: Its locked version.
        half: Which half of the lock has it now.
        why: All reasons, the first the one that alone would do.
        source: Where its sources come from; None where its index is known to have no sdist and the
            recipe names no other, so that it cannot be built yet.
        toolchain: What compiles it.
        cuda_archs: Compute capabilities to build for, as the recipe writes them; empty for none.
        abi: String ABI to build for; None leaves the compiler's own.
        flags: Compiler flags, in order.
        environment: Variables of its build, as name and value.
        jobs: Most compilers at a time, or None to be worked out.
        memory_per_job_bytes: Memory of one compiler, or None where unknown.
        portable: Whether auditwheel repairs it.
        after: Packages of this plan that are rebuilt before it, since it is built against them.
        replaces: The conda packages whose place it takes.
        dependents: conda packages that depend on those.
        cost: What it takes.
    """

    name: str
    version: str
    half: Half
    why: tuple[Reason, ...]
    source: Source | None
    toolchain: Toolchain
    cuda_archs: tuple[str, ...] = ()
    abi: Abi | None = None
    flags: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    jobs: int | None = None
    memory_per_job_bytes: int | None = None
    portable: bool = False
    after: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    dependents: tuple[str, ...] = ()
    cost: Cost = Cost()


@dataclass(frozen=True, kw_only=True, slots=True)
class Spared:
    """A package that is not rebuilt, though something in it looks as if it had to be.

    Attributes:
        name: Its name in its half.
        version: Its version.
        half: Which half has it.
        looks: What looks so.
        why: Why it is not.
        evidence: What that follows from.
    """

    name: str
    version: str
    half: Half
    looks: str
    why: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """A package of which it cannot be said whether it needs a rebuild.

    Attributes:
        name: Its name in its half.
        version: Its version.
        half: Which half has it.
        what: What is not known.
        hint: What would tell.
    """

    name: str
    version: str
    half: Half
    what: str
    hint: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Instead:
    """What could be had in place of a rebuild: another build that meets the recipe.

    Attributes:
        name: The package.
        what: The other build.
        changes: What would change with it.
        sources: Where it was read.
    """

    name: str
    what: str
    changes: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What of a lock is rebuilt for one platform.

    Attributes:
        name: The recipe's name.
        platform: conda subdir.
        asked: What the recipe asks of wheels, a line each.
        rebuilds: What is rebuilt, in the order of building.
        spared: What only looks as if it had to be.
        unknown: What cannot be said.
        instead: What could be had in place of it.
    """

    name: str
    platform: Platform
    asked: tuple[str, ...] = ()
    rebuilds: tuple[Rebuild, ...] = ()
    spared: tuple[Spared, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    instead: tuple[Instead, ...] = ()
