"""Facts: rows of tables, each with where it was read, when, and how sure it is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from envbuild.compat.row import Row
from envbuild.compat.words import BadDriver, Claim, KnownBad, Topic, Xid
from envbuild.target import Platform


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolkit(Row):
    """A release of the CUDA toolkit.

    Attributes:
        version: Its version with the update as third number (`12.4.1`).
        driver: The oldest driver with which all of it works, or None where unknown.
        minor_driver: The oldest driver that runs its programs within the major version, without
            compiling its PTX; None where unknown.
        branch: The driver branch that it came with, where `driver` is unknown.
    """

    version: str
    driver: str | None = None
    minor_driver: str | None = None
    branch: int | None = None

    @property
    def name(self) -> str:
        """`cuda 12.4.1`."""
        return f"cuda {self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Branch(Row):
    """A branch of the Linux driver.

    Attributes:
        branch: Its number.
        cuda: The newest CUDA that it runs.
        kind: How long it is kept.
        end_of_life: Month or day after which it gets no updates, or None where unknown.
        latest: Its newest release that was seen, or None.
    """

    branch: int
    cuda: str
    kind: Literal["long-term", "production", "new-feature"]
    end_of_life: str | None = None
    latest: str | None = None

    @property
    def name(self) -> str:
        """`driver 550`."""
        return f"driver {self.branch}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture(Row):
    """A compute capability.

    Attributes:
        capability: Such as `9.0`.
        title: What NVIDIA calls it.
        first_cuda: The first toolkit that makes code for it.
        last_cuda: The last one, or None while they still do.
        last_branch: The last driver branch that runs it, or None.
        fp8: Whether it computes in FP8.
        fp4: Whether it computes in FP4.
    """

    capability: str
    title: str
    first_cuda: str
    last_cuda: str | None = None
    last_branch: int | None = None
    fp8: bool = False
    fp4: bool = False

    @property
    def name(self) -> str:
        """`capability 9.0`."""
        return f"capability {self.capability}"


@dataclass(frozen=True, kw_only=True, slots=True)
class MigProfile:
    """One way to cut a card.

    Attributes:
        profile: Its name (`1g.10gb`).
        count: How many an otherwise empty card holds.
        memory_gib: Memory of one (GiB), or None where unknown.
    """

    profile: str
    count: int
    memory_gib: int | float | None = None

    @property
    def compute(self) -> int:
        """Its compute slices: 3 of `3g.40gb`; 0 where the name does not say."""
        number, _, _ = self.profile.partition("g.")
        return int(number) if number.isdecimal() else 0

    def __str__(self) -> str:
        """Return it as a list of profiles shows it: `7 x 1g.10gb`."""
        return f"{self.count} x {self.profile}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu(Row):
    """A card.

    Attributes:
        id: What recipes call it (`h100`).
        title: What it is sold as.
        capability: Its compute capability.
        memory_gb: Nominal memory (10^9 bytes), or None where unknown.
        memory_type: Such as `HBM3`.
        machine: The host's machine where it is not a card for any (`aarch64`).
        nvlink: Generation of NVLink, or None without or where unknown.
        nvlink_gb_per_s: Both directions together (10^9 bytes per second), or None.
        mig_driver: The oldest driver that cuts it, or None.
        mig: How it can be cut.
        temperatures_c: Limits by name (degrees Celsius), as far as real ones were seen.
        pci_ids: PCI device ids, hexadecimal.
    """

    id: str
    title: str
    capability: str
    memory_gb: int | None = None
    memory_type: str | None = None
    machine: str | None = None
    nvlink: int | None = None
    nvlink_gb_per_s: int | None = None
    mig_driver: str | None = None
    mig: tuple[MigProfile, ...] = ()
    temperatures_c: Mapping[str, int] = field(default_factory=dict)
    pci_ids: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`gpu h100`."""
        return f"gpu {self.id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Placements:
    """Where instances of one size may lie on a card in MIG mode.

    Attributes:
        compute: Their compute slices, the number before `g` in a profile's name.
        memory: Their memory slices.
        starts: The memory slices at which one may begin.
    """

    compute: int
    memory: int
    starts: tuple[int, ...]

    def __str__(self) -> str:
        """Return it in few words: `3g 4 wide from 0 4`."""
        return f"{self.compute}g {self.memory} wide from {' '.join(map(str, self.starts))}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout(Row):
    """How cards of a number of compute slices are divided in MIG mode.

    Attributes:
        compute: Compute slices of the whole card.
        memory: Its memory slices.
        placements: Where instances may lie, one row for each size.
    """

    compute: int
    memory: int
    placements: tuple[Placements, ...]

    @property
    def name(self) -> str:
        """`layout of 7 compute slices`."""
        return f"layout of {self.compute} compute slices"


@dataclass(frozen=True, kw_only=True, slots=True)
class Nvcc(Row):
    """Host compilers that an nvcc takes, and what changed in the code that it makes.

    Attributes:
        cuda: The toolkit's major and minor version.
        gcc_min: The oldest GCC.
        gcc_max: The newest major version of GCC.
        clang_min: The oldest clang.
        clang_max: The newest major version of clang.
        new_codes: Targets that it has and the one before had not.
        dropped_codes: Targets that it lost.
    """

    cuda: str
    gcc_min: str
    gcc_max: int
    clang_min: str
    clang_max: int
    new_codes: tuple[str, ...] = ()
    dropped_codes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`nvcc 12.4`."""
        return f"nvcc {self.cuda}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cudnn(Row):
    """A release of cuDNN for one major version of CUDA, and some cards.

    Attributes:
        version: Its version.
        cuda: The major version of CUDA.
        capabilities: Compute capabilities that it supports under `driver`.
        driver: The oldest driver for those, or None where unknown.
        package: Its exact requirement on PyPI, or None.
        codes: Targets found in the wheel; empty where it was not read.
    """

    version: str
    cuda: str
    capabilities: tuple[str, ...]
    driver: str | None = None
    package: str | None = None
    codes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`cudnn 9.1.0 cuda12`, with the driver where two rows differ in it only."""
        return f"cudnn {self.version} cuda{self.cuda} driver{self.driver or '-unknown'}"


@dataclass(frozen=True, kw_only=True, slots=True)
class FrameworkBuild(Row):
    """A build of PyTorch or JAX that can be had.

    Attributes:
        framework: `pytorch` or `jax`.
        version: Its version.
        origin: `pypi`, a variant of PyTorch's own wheel index (`cu124`), or an extra of JAX
            (`cuda12`); of a conda build its channel.
        build_string: What picks a conda build (`cuda129*`); None for a wheel.
        platform: conda subdir.
        cuda: The CUDA that it was built with, None for a build without or where unknown.
        cuda_major: The major version of CUDA that it runs with, where `cuda` is unknown.
        cudnn: The cuDNN that it pins or the range that it requires, or None.
        nccl: The same for NCCL.
        triton: The same for Triton.
        nvcc: The range of nvcc that it requires at run time, or None.
        driver: The oldest driver that it requires itself, or None.
        pythons: Versions of Python that it has wheels for (`3.13t` is free-threaded).
        requires_python: Its Requires-Python.
        codes: Targets that it was told to make; empty where unknown.
        all_codes: Every target found in the library of its kernels; empty where the whole of it was
            not read.
        compiler: The compiler that its libraries name, or None.
        cxx11_abi: Whether it has the newer ABI of libstdc++, or None where unknown.
        glibc: The oldest glibc that its wheel's tag admits and its libraries run on, or None.
        wheel: File name of the wheel that was read, or None.
        sha256: Its digest, or None.
    """

    framework: Literal["pytorch", "jax"]
    version: str
    origin: str
    platform: Platform
    build_string: str | None = None
    cuda: str | None = None
    cuda_major: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    triton: str | None = None
    nvcc: str | None = None
    driver: str | None = None
    pythons: tuple[str, ...] = ()
    requires_python: str | None = None
    codes: tuple[str, ...] = ()
    all_codes: tuple[str, ...] = ()
    compiler: str | None = None
    cxx11_abi: bool | None = None
    glibc: str | None = None
    wheel: str | None = None
    sha256: str | None = None

    @property
    def name(self) -> str:
        """`pytorch 2.4.0 cu124`, with conda's build, and the platform where it is not linux-64."""
        parts = [self.framework, self.version, self.origin, self.build_string or ""]
        parts += [] if self.platform == "linux-64" else [self.platform]
        return " ".join(filter(None, parts))


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """All tables."""

    toolkits: tuple[Toolkit, ...] = ()
    branches: tuple[Branch, ...] = ()
    bad_drivers: tuple[BadDriver, ...] = ()
    architectures: tuple[Architecture, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    layouts: tuple[Layout, ...] = ()
    nvccs: tuple[Nvcc, ...] = ()
    cudnns: tuple[Cudnn, ...] = ()
    builds: tuple[FrameworkBuild, ...] = ()
    known_bad: tuple[KnownBad, ...] = ()
    claims: tuple[Claim, ...] = ()
    xids: tuple[Xid, ...] = ()
    topics: tuple[Topic, ...] = ()

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all tables."""
        for each in fields(self):
            yield from getattr(self, each.name)
