"""What a recipe may say: frozen pydantic models, which also give the JSON Schema.

Every scalar of a recipe is read as text; pydantic turns it into what the field says.
"""

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from envbuild.target import Platform

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Part(BaseModel):
    """Base of every part of a recipe: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TargetWish(Part):
    """What the environment must run on."""

    platforms: tuple[Platform, ...] = ("linux-64",)
    gpus: tuple[Text, ...] = ()
    driver: Text | None = None
    driver_branches: tuple[Text, ...] = ()
    firmware: Text | None = None
    glibc: Text = "2.28"
    cuda: Text | None = None
    archspec: Text | None = None


class Triangle(Part):
    """The set that has to agree: CUDA, cuDNN and the framework."""

    cuda: Text | None = None
    cudnn: Text | None = None
    framework: Text | None = None


class Index(Part):
    """A PyPI index besides the default one."""

    name: Text
    url: Text
    packages: tuple[Text, ...] = Field(min_length=1)
    cutoff: Text | None = None


class Build(Part):
    """How wheels are rebuilt, and the compiler that torch.compile finds at run time."""

    compiler: Text | None = None
    cxx_abi: Literal["new", "old"] | None = None
    cuda_archs: tuple[Text, ...] = ()
    flags: tuple[Text, ...] = ()
    when: Literal["auto", "always", "never"] = "auto"


class Smoke(Part):
    """What must work before a generation may become current."""

    imports: tuple[Text, ...] = ()
    commands: tuple[Text, ...] = ()


class Allow(Part):
    """A finding that is let through, with the reason and the last day on which it is."""

    code: Text
    reason: Text
    until: date
    where: Text | None = None


class Limits(Part):
    """cgroup limits of a service or a slice, in systemd's words."""

    cpu_weight: int | None = Field(default=None, ge=1, le=10000)
    cpu_quota: Text | None = None
    cpus: Text | None = None
    memory_nodes: Text | None = None
    memory_high: Text | None = None
    memory_max: Text | None = None
    memory_swap_max: Text | None = None
    io_weight: int | None = Field(default=None, ge=1, le=10000)
    io_read_bandwidth: dict[str, str] = Field(default_factory=dict)
    io_write_bandwidth: dict[str, str] = Field(default_factory=dict)
    tasks_max: Text | None = None
    locked_memory: Text | None = None


class Gpu(Part):
    """Which cards a service gets, and how much of them."""

    count: int | None = Field(default=None, ge=0)
    cards: tuple[Text, ...] = ()
    memory: Text | None = None
    sm_share: Text | None = None
    pcie: Text | None = None
    affinity: Literal["auto", "none"] = "auto"
    isolation: Literal["none", "mps", "mig"] | None = None


class Readiness(Part):
    """How a service says that it is ready."""

    kind: Literal["notify", "port", "command", "none"] = "none"
    port: int | None = Field(default=None, ge=1, le=65535)
    command: Text | tuple[Text, ...] | None = None
    timeout: Text | None = None


class Restart(Part):
    """When and how often a service is started again."""

    policy: Literal["no", "on-failure", "always", "on-abnormal"] = "on-failure"
    delay: Text | None = None
    max_delay: Text | None = None
    steps: int | None = Field(default=None, ge=1)
    limit: int | None = Field(default=None, ge=1)
    interval: Text | None = None
    not_on: tuple[int, ...] = ()


class Stop(Part):
    """How a service ends."""

    signal: Text = "SIGTERM"
    checkpoint_time: Text | None = None


class Service(Part):
    """One service of the environment."""

    description: Text | None = None
    exec: Text | tuple[Text, ...]
    kind: Literal["service", "oneshot", "timer", "socket", "template"] = "service"
    schedule: Text | None = None
    listen: tuple[Text, ...] = ()
    user: Text | None = None
    group: Text | None = None
    working_directory: Text | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    credentials: dict[str, str] = Field(default_factory=dict)
    readiness: Readiness | None = None
    restart: Restart | None = None
    stop: Stop | None = None
    limits: Limits | None = None
    gpu: Gpu | int | None = None
    network: Literal["none", "loopback", "full"] | None = None
    read: tuple[Text, ...] = ()
    write: tuple[Text, ...] = ()
    after: tuple[Text, ...] = ()
    requires: tuple[Text, ...] = ()
    watchdog: Text | None = None


class Recipe(Part):
    """A recipe as written, with `extends` and variables already worked in."""

    name: Text
    description: str = ""
    target: TargetWish = TargetWish()
    triangle: Triangle = Triangle()
    python: Text | None = None
    channels: tuple[Text, ...] = ("conda-forge",)
    conda: tuple[Text, ...] = ()
    link_scripts: tuple[Text, ...] = ()
    indexes: tuple[Index, ...] = ()
    pypi: tuple[Text, ...] = ()
    build: Build = Build()
    services: dict[str, Service] = Field(default_factory=dict)
    slice: Limits | None = None
    smoke: Smoke = Smoke()
    allow: tuple[Allow, ...] = ()
    cutoff: Text | None = None

    @property
    def on_host_python(self) -> bool:
        """Whether the interpreter comes from the machine (`channels: [host]`)."""
        return self.channels == ("host",)
