"""Installing an environment's units: verified, written, read once, started, or all put back."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from envbuild.errors import EnvbuildError, Refused
from envbuild.tools.systemd import Systemd
from envbuild.units import live, names, starting
from envbuild.units.model import UnitFile
from envbuild.units.placing import Placing, Wanted, units_of
from envbuild.units.starting import Restart, Work


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One unit and what is done to it.

    Attributes:
        unit: Its name.
        change: `missing`, `differs` or `left over`; empty where its text stays.
        action: `start`, `restart`, `stop`, or empty where what runs goes on.
    """

    unit: str
    change: str
    action: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What installing would do.

    Attributes:
        placing: The files.
        work: What is started.
        stop: Units that run and are no longer wanted.
        kept: Units that run on as they were started, though they would differ.
    """

    placing: Placing
    work: Work
    stop: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to do."""
        return self.placing.nothing and not (self.work.restart or self.work.start or self.stop)

    def changes(self) -> tuple[Change, ...]:
        """Return it unit by unit, sorted by name."""
        how = {one.name.partition("/")[0].removesuffix(".d"): one for one in self.placing.changed}
        actions = {
            **dict.fromkeys(self.work.start, "start"),
            **dict.fromkeys(self.work.restart, "restart"),
            **dict.fromkeys(self.stop, "stop"),
        }
        return tuple(
            Change(
                unit=unit,
                change=how[unit].change if unit in how else "",
                action=actions.get(unit, ""),
            )
            for unit in sorted({*how, *actions})
        )


def enabled(files: Iterable[UnitFile]) -> tuple[str, ...]:
    """Return which units are started at boot: those that say where, but templates."""
    return tuple(
        file.name for file in files if "\n[Install]\n" in file.text and "@." not in file.name
    )


def says_ready(files: Iterable[UnitFile]) -> dict[str, bool]:
    """Return for each service whether something says when it is ready."""
    return {
        file.name: "\nType=notify\n" in file.text or "\nExecStartPost=" in file.text
        for file in files
        if file.name.endswith(".service")
    }


def plan(
    wanted: Wanted,
    *,
    folder: Path,
    systemd: Systemd,
    start: bool = True,
    restart: Restart = "auto",
) -> Plan:
    """Return what installing would do; nothing is changed.

    Args:
        wanted: What is to be there.
        folder: Where the units are.
        systemd: The manager.
        start: Whether what does not run is started.
        restart: What is done with what runs and differs.

    Raises:
        StoreError: A file there is not ours, or cannot be read.
    """
    placing = Placing(wanted, folder=folder, systemd=systemd)
    sought = {_pattern(unit): unit for unit in units_of(placing.changed)}
    runs = starting.running(systemd, [one for one in sought if not one.endswith(".slice")])
    gone = {one.name for one in placing.changed if one.change == "left over"}
    differs: list[str] = []
    stop: list[str] = []
    for unit in runs:
        file = _file_of(unit)
        if file in gone:
            stop.append(unit)
        elif unit != names.NODES and _differs(placing, file):
            differs.append(unit)
    work = Work(
        restart=_in_order(differs) if restart != "never" else (),
        start=_idle(systemd, wanted.enabled) if start else (),
        says_ready=says_ready(wanted.files),
    )
    kept = tuple(differs) if restart == "never" else ()
    return Plan(placing=placing, work=work, stop=tuple(stop), kept=kept)


def carry_out(todo: Plan, *, rolling: bool, systemd: Systemd, told: Callable[[str], None]) -> None:
    """Do what was planned, and wait; put everything back where a unit does not come up.

    Raises:
        Refused: A unit did not come up; nothing is changed then.
        StoreError: A file cannot be written; the same.
        ToolFailed: systemd refuses; the same.
    """
    with carried_out(todo, rolling=rolling, systemd=systemd, told=told):
        pass


@contextmanager
def carried_out(
    todo: Plan, *, rolling: bool, systemd: Systemd, told: Callable[[str], None]
) -> Iterator[None]:
    """Do what was planned; what is raised inside puts everything back as well."""
    with _undone_on_error(todo, systemd=systemd, told=told):
        down = starting.bring_up(systemd, todo.work, rolling=rolling, told=told)
        if down:
            name = todo.placing.wanted.name
            message = f"{down[0].unit} did not come up: {down[0].why}"
            raise Refused(
                message,
                hint=f"everything was put back; envbuild units logs {name} shows more",
                details="\n".join(one.text() for one in down),
            )
        yield


@contextmanager
def _undone_on_error(
    todo: Plan, *, systemd: Systemd, told: Callable[[str], None]
) -> Iterator[None]:
    """Write the units before and keep them after; whatever is raised between puts them back."""
    ran = starting.running(systemd, _patterns(todo))
    try:
        systemd.stop(todo.stop)
        todo.placing.do()
        yield
    except BaseException:
        told("putting everything back")
        with suppress(EnvbuildError):  # what happened first is what counts
            _put_back(todo, ran, systemd)
        raise
    todo.placing.done()


def _put_back(todo: Plan, ran: Sequence[str], systemd: Systemd) -> None:
    runs = starting.running(systemd, _patterns(todo))
    systemd.stop([unit for unit in runs if unit not in ran])
    todo.placing.undo()
    systemd.forget([unit for unit in todo.work.start if unit not in ran])
    again = set(starting.running(systemd, ran))
    systemd.start([unit for unit in ran if unit not in again])


def _patterns(todo: Plan) -> list[str]:
    units = [*units_of(todo.placing.changed), *todo.work.restart, *todo.work.start, *todo.stop]
    patterns = dict.fromkeys(map(_pattern, units))
    return [one for one in patterns if not one.endswith(".slice") and one != names.NODES]


def _pattern(unit: str) -> str:
    """Return a unit, or what stands for every instance of a template."""
    return unit.replace("@.", "@*.")


def _file_of(unit: str) -> str:
    """Return the unit's file: an instance's is its template's."""
    stem, at, rest = unit.partition("@")
    return f"{stem}@.{rest.rpartition('.')[2]}" if at else unit


def _differs(placing: Placing, file: str) -> bool:
    for one in placing.changed:
        whole = one.name == file
        if (whole or one.name.startswith(f"{file}.d/")) and live.must_restart(
            one.there, one.wanted
        ):
            return True
    return False


def _idle(systemd: Systemd, units: Sequence[str]) -> tuple[str, ...]:
    runs = set(starting.running(systemd, units))
    return tuple(unit for unit in units if unit not in runs)


def _in_order(units: Sequence[str]) -> tuple[str, ...]:
    """Return units so that a socket listens before its service is started."""
    return tuple(sorted(units, key=lambda unit: (not unit.endswith(".socket"), unit)))
