"""What a recipe may say about services and their limits; `envbuild.units` renders it."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
)

from envbuild.recipe import words

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Size = Annotated[Text, AfterValidator(words.size)]
Bytes = Annotated[Text, AfterValidator(words.byte_size)]
Rate = Annotated[Text, AfterValidator(words.rate)]
Count = Annotated[Text, AfterValidator(words.count)]
Percent = Annotated[Text, AfterValidator(words.percent)]
CpuList = Annotated[Text, AfterValidator(words.cpu_list)]
Span = Annotated[Text, AfterValidator(words.time_span)]
AbsolutePath = Annotated[Text, AfterValidator(words.absolute_path)]
Account = Annotated[Text, AfterValidator(words.account)]
Variable = Annotated[Text, AfterValidator(words.variable)]
Command = Annotated[Text, AfterValidator(words.service_command)]
Unit = Annotated[Text, AfterValidator(words.unit)]


def _kind(kinds: dict[type, str]) -> Callable[[Any], str | None]:
    """Return the function that says which branch of a union a value belongs to."""

    def choose(value: object) -> str | None:
        found = [tag for kind, tag in kinds.items() if isinstance(value, kind)]
        return found[0] if found else next(iter(kinds.values()))

    return choose


CommandLine = Annotated[
    Annotated[Command, Tag("text")]
    | Annotated[Annotated[tuple[str, ...], Field(min_length=1)], Tag("list")],
    Discriminator(_kind({str: "text", list: "list", tuple: "list"})),
]


class Part(BaseModel):
    """Base of every part of a recipe: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Limits(Part):
    """cgroup limits of a service or a slice, in systemd's words."""

    cpu_weight: int | None = Field(
        default=None,
        ge=1,
        le=10000,
        description="Share of CPU time among siblings, 1 to 10000.",
        examples=[100],
    )
    cpu_quota: Percent | None = Field(
        default=None,
        description="Most CPU time, in percent of one CPU: `400%` is four CPUs.",
        examples=["400%"],
    )
    cpus: CpuList | None = Field(
        default=None,
        description="CPUs it may run on: `0-15,32`.",
        examples=["0-15,32"],
    )
    memory_nodes: CpuList | None = Field(
        default=None,
        description="NUMA nodes it may take memory from: `0-1`.",
        examples=["0-1"],
    )
    memory_high: Size | None = Field(
        default=None,
        description="Memory above which it is slowed down: bytes with K, M, G, T, or percent.",
        examples=["200G"],
    )
    memory_max: Size | None = Field(
        default=None,
        description="Memory above which it is killed: bytes with K, M, G, T, or percent.",
        examples=["240G"],
    )
    memory_swap_max: Size | None = Field(
        default=None,
        description="Most swap: bytes with K, M, G, T, or percent.",
        examples=["0"],
    )
    io_weight: int | None = Field(
        default=None,
        ge=1,
        le=10000,
        description="Share of I/O among siblings, 1 to 10000.",
        examples=[100],
    )
    io_read_bandwidth: dict[AbsolutePath, Rate] = Field(
        default_factory=dict,
        description="Path or device to bytes read per second: `/data: 2G`.",
        examples=[{"/data": "2G"}],
    )
    io_write_bandwidth: dict[AbsolutePath, Rate] = Field(
        default_factory=dict,
        description="Path or device to bytes written per second.",
        examples=[{"/data": "500M"}],
    )
    tasks_max: Count | None = Field(
        default=None,
        description="Most processes and threads: a number, percent or `infinity`.",
        examples=["4096"],
    )
    locked_memory: Bytes | None = Field(
        default=None,
        description="Memory it may lock (pinned buffers): bytes, or `infinity`.",
        examples=["infinity"],
    )


class Gpu(Part):
    """Which cards a service gets, and how much of them."""

    count: int | None = Field(
        default=None,
        ge=0,
        description="How many cards; 1 where neither this nor cards are said.",
        examples=[2],
    )
    cards: tuple[Annotated[Text, AfterValidator(words.card)], ...] = Field(
        default=(),
        description="Cards by index, UUID or PCI address, instead of a count.",
        examples=[["0", "1"]],
    )
    memory: Size | None = Field(
        default=None,
        description="Memory of each card: bytes with M or G, or percent.",
        examples=["40G"],
    )
    sm_share: Percent | None = Field(
        default=None,
        description="Share of each card's multiprocessors, in percent.",
        examples=["50%"],
    )
    pcie: Rate | None = Field(
        default=None,
        description="Most PCIe traffic, bytes per second; watched, not enforced.",
        examples=["10G"],
    )
    affinity: Literal["auto", "none"] = Field(
        default="auto",
        description="Whether CPUs and memory near the cards are taken.",
        examples=["auto"],
    )
    isolation: Literal["none", "mps", "mig"] | None = Field(
        default=None,
        description="How a share of a card is kept apart.",
        examples=["mps"],
    )


class Readiness(Part):
    """How a service says that it is ready."""

    kind: Literal["notify", "port", "command", "none"] = Field(
        default="none",
        description="sd_notify, an open port, a command that succeeds, or nothing.",
        examples=["port"],
    )
    port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="TCP port, for kind port.",
        examples=[8000],
    )
    command: CommandLine | None = Field(
        default=None,
        description="Command whose success means ready, for kind command.",
        examples=["curl -sf localhost:8000/ready"],
    )
    timeout: Span | None = Field(
        default=None,
        description="Longest wait: `90s`. Without: 5 minutes, enough to load a large model.",
        examples=["90s"],
    )


class Restart(Part):
    """When and how often a service is started again."""

    policy: Literal["no", "on-failure", "always", "on-abnormal"] = Field(
        default="on-failure",
        description="After which ends it is started again; a oneshot or timer without `restart`: "
        "never.",
        examples=["on-failure"],
    )
    delay: Span | None = Field(
        default=None,
        description="Wait before a restart: `10s`. Without: 5 s.",
        examples=["10s"],
    )
    max_delay: Span | None = Field(
        default=None,
        description="Longest wait when the delay grows with each restart (systemd 254).",
        examples=["5min"],
    )
    steps: int | None = Field(
        default=None,
        ge=1,
        description="Number of restarts over which the delay grows. Without: the limit.",
        examples=[5],
    )
    limit: int | None = Field(
        default=None,
        ge=1,
        description="Most starts within the interval, then it stays down. Without: 5.",
        examples=[5],
    )
    interval: Span | None = Field(
        default=None,
        description="The interval of the limit: `1h`. Without: an hour, or as much longer as the "
        "delays of all starts need.",
        examples=["1h"],
    )
    not_on: tuple[Annotated[int, Field(ge=0, le=255)], ...] = Field(
        default=(),
        description="Exit codes (0 to 255) after which it is not started again.",
        examples=[[2]],
    )


class Stop(Part):
    """How a service ends."""

    signal: Annotated[Text, AfterValidator(words.signal)] = Field(
        default="SIGTERM",
        description="Signal that asks the main process to end.",
        examples=["SIGTERM"],
    )
    checkpoint_time: Span | None = Field(
        default=None,
        description="Time it may take to write its checkpoint: `120s`.",
        examples=["120s"],
    )
    timeout: Span | None = Field(
        default=None,
        description="Time until it is killed; at least 30 s more than the checkpoint takes. "
        "Without: the checkpoint's time and 30 s, or 30 s.",
        examples=["150s"],
    )


class Service(Part):
    """One service of the environment."""

    description: Text | None = Field(
        default=None,
        description="One line for people.",
        examples=["Serves the model"],
    )
    exec: CommandLine = Field(
        description="The command, as one line (split as systemd does) or as a list of words; never "
        "run by a shell. A bare name is a program of the environment.",
        examples=["python -m server --port 8000"],
    )
    kind: Literal["service", "oneshot", "timer", "socket", "template"] = Field(
        default="service",
        description="What sort of unit it becomes: a service, one that runs to its end (oneshot), "
        "the same at a calendar time, one that a connection starts (socket), or one for any number "
        "of instances (template: `%i` is the instance's name in exec, paths and values).",
        examples=["service"],
    )
    schedule: Annotated[Text, AfterValidator(words.schedule)] | None = Field(
        default=None,
        description="Calendar time of a timer: `daily`, `Mon *-*-* 03:00`.",
        examples=["Mon *-*-* 03:00"],
    )
    listen: tuple[Annotated[Text, AfterValidator(words.listen)], ...] = Field(
        default=(),
        description="Ports, addresses with ports, or paths that a socket listens on.",
        examples=[["8000"]],
    )
    user: Account | None = Field(
        default=None,
        description="User it runs as. Without: one that exists while it runs (DynamicUser).",
        examples=["trainer"],
    )
    group: Account | None = Field(
        default=None,
        description="Group it runs as.",
        examples=["trainer"],
    )
    working_directory: AbsolutePath | None = Field(
        default=None,
        description="Absolute path it starts in. Without: its state directory, which it may write.",
        examples=["/srv/model"],
    )
    environment: dict[Variable, str] = Field(
        default_factory=dict,
        description="Environment variables; never secrets.",
        examples=[{"OMP_NUM_THREADS": "8"}],
    )
    credentials: dict[Annotated[Text, AfterValidator(words.name)], AbsolutePath] = Field(
        default_factory=dict,
        description="Name to file of a secret; the program finds it as "
        "`$CREDENTIALS_DIRECTORY/NAME`.",
        examples=[{"token": "/etc/credentials/token"}],
    )
    readiness: Readiness | None = Field(default=None, description="How it says that it is ready.")
    restart: Restart | None = Field(default=None, description="When it is started again.")
    stop: Stop | None = Field(default=None, description="How it ends.")
    limits: Limits | None = Field(default=None, description="Its cgroup limits.")
    gpu: (
        Annotated[
            Annotated[Gpu, Tag("mapping")] | Annotated[Annotated[int, Field(ge=0)], Tag("number")],
            Discriminator(_kind({str: "number", int: "number", dict: "mapping", Gpu: "mapping"})),
        ]
        | None
    ) = Field(
        default=None,
        description="A number of cards, or which cards and how much of them.",
        examples=[2],
    )
    network: Literal["none", "loopback", "full"] | None = Field(
        default=None,
        description="How much network it sees. Without: full.",
        examples=["loopback"],
    )
    read: tuple[AbsolutePath, ...] = Field(
        default=(),
        description="Paths it reads: never writable, and visible where they lie in a home.",
        examples=[["/data"]],
    )
    write: tuple[AbsolutePath, ...] = Field(
        default=(),
        description="Paths it may write, besides its state and its caches; all else is read-only.",
        examples=[["/var/lib/model"]],
    )
    after: tuple[Unit, ...] = Field(
        default=(),
        description="Services of this recipe, or units with their suffix, to start after.",
        examples=[["network-online.target"]],
    )
    requires: tuple[Unit, ...] = Field(
        default=(),
        description="Services of this recipe, or units, without which it does not run; it starts "
        "after them.",
        examples=[["cache"]],
    )
    watchdog: Span | None = Field(
        default=None,
        description="Longest silence before it is restarted: `30s`. Without: none is waited for.",
        examples=["30s"],
    )
