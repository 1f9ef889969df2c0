"""systemd: the manager of a machine or of a user, asked and told through its own programs.

Only output that is made for programs is read: properties of `systemctl show`, JSON of journalctl.
"""

import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from envbuild.errors import HostError, ToolFailed
from envbuild.tools.run import Runner, base_environment, run

Scope = Literal["system", "user"]
Properties = Mapping[str, str]

BOOTED = Path("/run/systemd/system")
"""There where systemd runs the machine, and only there (sd_booted(3))."""
RUNTIME = Path("/run/user")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_VERSION = re.compile(r"systemd (\d+)")
_UNKNOWN = {"", "[not set]", f"{(1 << 64) - 1}"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Systemd:
    """A manager.

    Attributes:
        scope: The machine's, or this user's.
        runtime: What XDG_RUNTIME_DIR is to be for a user's manager.
        runner: What starts programs.
    """

    scope: Scope = "system"
    runtime: Path | None = None
    runner: Runner = run

    def verify(self, files: Sequence[Path]) -> str:
        """Return what systemd says against units, empty where it takes them.

        What it says of units of the host that these only follow is left out.
        """
        done = self._run(["systemd-analyze", *self._to(), "verify", *map(str, files)], check=False)
        own = {file.name for file in files}
        lines = [line for line in done.stderr.splitlines() if any(name in line for name in own)]
        if done.status and not lines:
            lines = done.stderr.splitlines() or [f"systemd-analyze ended with {done.status}"]
        return "\n".join(lines)

    def version(self) -> int:
        """Return its version.

        Raises:
            HostError: It does not say.
        """
        told = self._run(["systemctl", "--version"]).stdout
        found = _VERSION.match(told)
        if found is None:
            message = f"systemctl does not say its version: {told[:60]!r}"
            raise HostError(message)
        return int(found[1])

    def reload(self) -> None:
        """Let it read every unit anew; what runs gets the limits that stand there now."""
        self._told("daemon-reload", ())

    def enable(self, units: Iterable[str]) -> None:
        """Have units started at boot; it must be reloaded afterwards."""
        self._told("enable", units, "--no-reload")

    def disable(self, units: Iterable[str]) -> None:
        """Have units not started at boot; it must be reloaded afterwards."""
        self._told("disable", units, "--no-reload")

    def start(self, units: Iterable[str]) -> None:
        """Start units and wait until each is up or has failed, which `show` tells."""
        self._told("start", units, check=False)

    def restart(self, units: Iterable[str]) -> None:
        """Stop and start units and wait, as `start` does."""
        self._told("restart", units, check=False)

    def stop(self, units: Iterable[str]) -> None:
        """Stop units and wait until each has ended."""
        self._told("stop", units, check=False)

    def forget(self, units: Iterable[str]) -> None:
        """Let it forget that units failed, and how often they were started."""
        self._told("reset-failed", units, check=False)

    def show(self, units: Iterable[str], properties: Sequence[str]) -> tuple[Properties, ...]:
        """Return properties of units, in the order of the units; `Id` is always there.

        A name with `*` means every unit of that kind that is loaded; none is none. What a property
        has several times is joined by line ends.
        """
        sought = tuple(units)
        if not sought:
            return ()
        asked = ",".join(dict.fromkeys(("Id", *properties)))
        done = self._run(["systemctl", *self._to(), "show", f"--property={asked}", "--", *sought])
        return tuple(map(_properties, filter(str.strip, done.stdout.split("\n\n"))))

    def read_at(self) -> float | None:
        """Return when it read its units last (Unix time), None where it does not say."""
        done = self._run(
            ["systemctl", *self._to(), "show", "--property=UnitsLoadTimestampMonotonic"]
        )
        ago = seconds_since(_properties(done.stdout), "UnitsLoadTimestampMonotonic")
        return None if ago is None else time.time() - ago

    def last_words(
        self, unit: str, invocation: str = "", *, lines: int, own: bool = False
    ) -> tuple[str, ...]:
        """Return the last lines that the journal has of a unit.

        None where there is no journal, or this user may not read it.

        Args:
            unit: The unit.
            invocation: The run that is meant (`InvocationID`); empty for any.
            lines: How many at most.
            own: What systemd itself said of the unit, not what its programs wrote.
        """
        kind = "USER_UNIT" if self.scope == "user" else "UNIT"
        field = kind if own else f"_SYSTEMD_{kind}"
        run_ = "INVOCATION_ID" if own else "_SYSTEMD_INVOCATION_ID"
        words = [f"{field}={unit}", *([f"{run_}={invocation}"] if invocation else [])]
        done = self._run(
            ["journalctl", "--quiet", "--no-pager", "--output=json", f"--lines={lines}", *words],
            check=False,
        )
        return tuple(
            message
            for line in done.stdout.splitlines()
            if (message := _message(line)) is not None and message.strip()
        )

    def log_command(self, units: Iterable[str], *, follow: bool, lines: int | None) -> list[str]:
        """Return the command that shows what units wrote, and what systemd said of them."""
        words = ["journalctl"]
        for unit in units:
            words += ["--unit" if self.scope == "system" else "--user-unit", unit]
        words += ["--follow"] if follow else []
        words += [] if lines is None else [f"--lines={lines}"]
        return words

    def _to(self) -> list[str]:
        return ["--user"] if self.scope == "user" else []

    def _told(self, verb: str, units: Iterable[str], *options: str, check: bool = True) -> None:
        named = tuple(units)
        if named or verb == "daemon-reload":
            words = ["systemctl", *self._to(), "--no-ask-password", "--quiet"]
            self._run([*words, verb, *options, *named], check=check)

    def _run(self, argv: Sequence[str], *, check: bool = True) -> "_Done":
        done = self.runner(argv, env=self.environment, check=False)
        if check and done.status:
            message = f"{' '.join(argv[:4])} failed with exit status {done.status}"
            details = done.stderr.strip()
            raise ToolFailed(message, argv=tuple(argv), status=done.status, details=details)
        return _Done(status=done.status, stdout=done.stdout, stderr=done.stderr)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its programs."""
        found = {**base_environment(_PATH), "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": ""}
        if self.runtime is not None:
            found["XDG_RUNTIME_DIR"] = f"{self.runtime}"
            found["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={self.runtime}/bus"
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class _Done:
    status: int
    stdout: str
    stderr: str


def connect(scope: Scope, *, runner: Runner = run) -> Systemd:
    """Return the manager that runs here.

    Raises:
        HostError: systemd does not run this machine, or the user has no manager.
    """
    if not BOOTED.is_dir():
        message = f"systemd does not run this machine: there is no {BOOTED}"
        hint = "envbuild units NAME --output DIR writes them for another machine"
        raise HostError(message, hint=hint)
    if scope == "system":
        return Systemd(runner=runner)
    runtime = RUNTIME / f"{os.geteuid()}"
    if not (runtime / "bus").exists():
        message = f"this user's systemd does not run: there is no {runtime}/bus"
        hint = f"let it run without a login: loginctl enable-linger {os.geteuid()}"
        raise HostError(message, hint=hint)
    return Systemd(scope="user", runtime=runtime, runner=runner)


def number(properties: Properties, name: str) -> int | None:
    """Return a property that is a number, None where it is not known."""
    value = properties.get(name, "")
    return int(value) if value not in _UNKNOWN and value.isdigit() else None


def seconds_since(properties: Properties, name: str) -> float | None:
    """Return how long ago a time of a unit was, from its `…Monotonic` property."""
    found = number(properties, name)
    return None if not found else max(0.0, time.monotonic() - found / 1e6)


def _properties(block: str) -> Properties:
    found: dict[str, str] = {}
    for line in block.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            found[name] = f"{found[name]}\n{value}" if name in found else value
    return found


def _message(line: str) -> str | None:
    try:
        found = json.loads(line)["MESSAGE"]
    except (ValueError, KeyError, TypeError):
        return None
    if isinstance(found, list):  # bytes that are not UTF-8
        return bytes(found).decode(errors="replace")
    return found if isinstance(found, str) else None
