"""Killing commands at each call that changes a file, and what must hold afterwards.

The environment `one` has both halves, and three generations of a few files, so that hardly a call
is like another and every try is short.
"""

import contextlib
import fcntl
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from integration.channel_server import serve
from integration.index_server import Index, serving, wheel
from integration.packages import File, Made, make_package, program, write_index
from integration.site import Site
from integration.stress import leftovers
from integration.tracing import How, Traced, run

from envbuild.errors import EnvbuildError
from envbuild.store import history, present, verify
from envbuild.store.layout import Place

NAME = "one"
LOCKS = "locks"
"""A folder for locks that commands change."""
VERSIONS = ("1", "2", "3")
HOW: tuple[How, ...] = ("parent", "group")
_CHANNEL = "https://channel.test/small"
_TRIES = 4
_NOTHING_THERE = 3
_PARTS = ("store", "home", LOCKS)
_HALF = "0" * 16
_PROBE = re.compile(r"[a-z0-9_]{8}")
"""The name of the file by which Python finds a folder for temporary ones (tempfile.gettempdir)."""
_MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(kw_only=True)
class Arena(Site):
    """A project whose store can be put back to what it was.

    Attributes:
        index: Address of the index of wheels.
        generations: Version to ID.
    """

    index: str
    generations: dict[str, str] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        return {
            **super().variables(),
            "ENVBUILD_CHANNEL_MIRRORS": f"{_CHANNEL}={self.channel.url}/channel",
            "UV_DEFAULT_INDEX": self.index,
            "TMPDIR": str(self.root / "tmp"),
        }

    @property
    def place(self) -> Place:
        return self.store.place(NAME)

    def version(self) -> str | None:
        """Return the version that is current."""
        current = present.current(self.place)
        by_id = {identifier: version for version, identifier in self.generations.items()}
        return None if current is None else by_id.get(current.identifier, current.identifier)

    def save(self, name: str) -> None:
        """Keep the store and the home as they are now."""
        for part in _PARTS:
            _copy(self.root / part, self.root / "saved" / name / part)

    def restore(self, name: str) -> None:
        """Put them back."""
        for part in _PARTS:
            shutil.rmtree(self.root / part)
            _copy(self.root / "saved" / name / part, self.root / part)
        shutil.rmtree(self.root / "tmp")
        (self.root / "tmp").mkdir()

    def traced(
        self,
        words: Sequence[str],
        *,
        at: int | None = None,
        how: How = "parent",
        number: signal.Signals = signal.SIGKILL,
        path: str = "",
    ) -> Traced:
        """Run a command line under the tracer."""
        argv = [sys.executable, "-m", "envbuild", *words]
        env = self.variables()
        return run(argv, root=self.root, env=env, at=at, how=how, number=number, path=path)


def _copy(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["/bin/cp", "-a", "--reflink=auto", source, to], check=True)


@contextlib.contextmanager
def arena(root: Path) -> Iterator[Arena]:
    """Make a store whose states are saved as `0`, `1`, `2`, `3`: how many versions it has.

    The last one also has what a killed build left.
    """
    write_index(root / "channel", _packages(root / "channel"))
    wheels = [wheel("app", one, files={"app/__init__.py": f"V = {one}\n"}) for one in VERSIONS]
    wheels.append(
        wheel("many", "1", files=dict.fromkeys(map("many/m{}.py".format, range(200)), "x=1\n"))
    )
    for part in (*_PARTS, "tmp"):
        (root / part).mkdir()
    with serve(root) as channel, serving(main=Index(wheels=wheels)) as index:
        folders = tuple(f"v{one}" for one in VERSIONS)
        made = Arena(root=root, channel=channel, versions=folders, index=index.url("main"))
        made.save("0")
        for one, folder in zip(VERSIONS, folders, strict=True):
            (root / folder).mkdir()
            (root / folder / f"{NAME}.yaml").write_text(_recipe(one))
            _good(made, "lock", NAME, "--recipes", folder, "--locks", folder)
        for one, folder in zip(VERSIONS, folders, strict=True):
            _good(made, *made.create(NAME, folder))
            current = present.current(made.place)
            assert current is not None
            made.generations[one] = current.identifier
            if one == VERSIONS[0]:
                shutil.copytree(root / folder / NAME, root / LOCKS / NAME)
            if one == VERSIONS[-1]:
                half = made.place.generation(_HALF)
                half.own.mkdir(parents=True)
                (half.prefix / "half.txt").write_text("half\n")
            made.save(one)
        yield made


def _good(made: Arena, *words: str) -> None:
    code, out, err = made.run(*words)
    assert code == 0, out + err


def _recipe(version: str) -> str:
    more = f"conda: [one =={version}]\npypi: [app =={version}]\nsmoke: {{imports: [app]}}\n"
    return _beginning(NAME) + more


def many(made: Arena) -> tuple[str, ...]:
    """Lock a recipe of two hundred sources; return the words that create it, with bytecode."""
    (made.root / "v1/many.yaml").write_text(f"{_beginning('many')}pypi: [many]\n")
    _good(made, "lock", "many", "--recipes", "v1", "--locks", "v1")
    return (*made.create("many"), "--compile")


def _beginning(name: str) -> str:
    python = platform.python_version()
    return (
        f"name: {name}\ntarget: {{platforms: [linux-64]}}\npython: '{python}'\n"
        f"channels: [{_CHANNEL}]\n"
    )


def _packages(channel: Path) -> list[Made]:
    real = os.path.realpath(sys.executable)
    python = {
        "bin/python": File(content=real.encode(), link=True),
        "pyvenv.cfg": File(content=f"home = {Path(real).parent}\n".encode()),
        f"lib/python{_MINOR}/site-packages/README.txt": File(content=b"packages\n"),
    }
    own = [
        {
            "share/one.txt": File(content=f"{one}\n".encode()),
            "bin/one": program(f"#!/bin/sh\necho {NAME} {one}\n"),
        }
        for one in VERSIONS
    ]
    return [
        make_package(channel, "python", platform.python_version(), content=python),
        *(
            make_package(channel, NAME, one, content=it)
            for one, it in zip(VERSIONS, own, strict=True)
        ),
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A command that is killed.

    Attributes:
        words: The words of it.
        state: The state of the store that it begins with.
        after: Versions that may be current once it was killed; None for none.
        ends: What is current after the same command again, by what was current before.
        codes: With which codes that may end.
        other: What comes instead of the same command, where the group was killed, and what is
            current after it.
        most: At how many calls it is killed at most, evenly spread,
        last: and at how many of the last ones.
    """

    words: tuple[str, ...]
    state: str
    after: frozenset[str | None]
    ends: Mapping[str | None, str | None]
    codes: frozenset[int] = frozenset({0})
    other: tuple[tuple[str, ...], str] | None = None
    most: int | None = None
    last: int = 0


CASES = ("switch", "rollback", "gc", "remove", "create", "first create")


def case_of(made: Arena, name: str) -> Case:
    """Return a command that is killed."""
    match name:
        case "switch":
            return Case(
                words=("switch", NAME, made.generations["1"]),
                state="3",
                after=frozenset({"3", "1"}),
                ends={"3": "1", "1": "1"},
            )
        case "rollback":
            return Case(
                words=("rollback", NAME),
                state="3",
                after=frozenset({"3", "2"}),
                ends={"3": "2", "2": "1"},
            )
        case "gc":
            return Case(
                words=("gc", "--keep", "2", "-y"),
                state="3",
                after=frozenset({"3"}),
                ends={"3": "3"},
            )
        case "remove":
            return Case(
                words=("remove", NAME, "-y"),
                state="2",
                after=frozenset({"2", None}),
                ends={"2": None, None: None},
                codes=frozenset({0, _NOTHING_THERE}),
                other=(made.create(NAME, "v2"), "2"),
            )
        case "create":
            return Case(
                words=made.create(NAME, "v3"),
                state="2",
                after=frozenset({"2", "3"}),
                ends={"2": "3", "3": "3"},
                most=100,
            )
        case _:
            return Case(
                words=made.create(NAME, "v1"),
                state="0",
                after=frozenset({None, "1"}),
                ends={None: "1", "1": "1"},
                most=20,
                last=20,
            )


@dataclass(kw_only=True)
class Tally:
    """What came of the kills of one command.

    Attributes:
        calls: How many calls change files where it is not killed.
        by_name: How many kills landed before each kind of call.
        missed: How many did not land and were tried again.
        problems: What was wrong.
    """

    calls: int
    by_name: Counter[str] = field(default_factory=Counter)
    missed: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return it in a line."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.by_name.most_common())
        landed = self.by_name.total()
        text = f"{self.calls} calls; {landed} kills landed, {self.missed} missed; {kinds}"
        return "\n".join([text, *self.problems])


def kill(made: Arena, case: Case, *, part: int = 0, of: int = 1) -> Tally:
    """Kill a command at its calls, evenly spread, both ways, and check each time.

    Args:
        made: Where.
        case: The command.
        part: Which of the kills, from 0.
        of: In how many parts they are done.
    """
    made.restore(case.state)
    whole = made.traced(case.words)
    tally = Tally(calls=len(whole.calls))
    if whole.status or whole.orphans or not whole.calls:
        tally.problems.append(f"not killed, it ended with {whole.status}: {whole}")
    calls = len(whole.calls)
    count = min(case.most or calls, calls)
    points = {calls * number // count for number in range(count)}
    points |= {*range(calls - case.last, calls)}
    tries = [(at, how) for how in HOW for at in sorted(points)]
    for at, how in tries[part::of]:
        _kill_at(made, case, at, how, tally)
    return tally


def _kill_at(made: Arena, case: Case, at: int, how: How, tally: Tally) -> None:
    where = f"{case.words[0]}, the {how} killed at call {at}"
    for fewer in range(_TRIES):  # threads meet in another order each time: there may be fewer calls
        made.restore(case.state)
        ended = made.traced(case.words, at=max(0, at - fewer), how=how)
        if ended.signalled_at is not None and ended.status == -signal.SIGKILL:
            tally.by_name[ended.signalled_at.name] += 1
            wrong = [f"{one} is left" for one in ended.orphans] + list(_wrong(made, case, how))
            tally.problems += [f"{where}, {ended.signalled_at}: {one}" for one in wrong]
            return
        tally.missed += 1
    tally.problems.append(f"{where}: it never came to that")


def _wrong(made: Arena, case: Case, how: How) -> Iterator[str]:
    """Yield what is wrong after a kill, then after the same command again, or the other one."""
    try:
        before = made.version()
        yield from state(made, before, case.after)
        yield from usable(made, before)
        words, wanted, codes = case.words, case.ends.get(before), case.codes
        if case.other and how == "group":
            (words, wanted), codes = case.other, frozenset({0})
        code, out, err = made.run(*words, "--lock-timeout", "1")
        if code not in codes:
            yield f"{words[0]} ends with {code}: {out}{err}"
        yield from state(made, made.version(), {wanted})
        if code == _NOTHING_THERE:
            made.run("gc", "-y")  # the next command that changes the store
        yield from left(made, wanted)
    except (EnvbuildError, OSError) as error:
        yield f"{type(error).__name__}: {error}"


def state(made: Arena, version: str | None, allowed: AbstractSet[str | None]) -> Iterator[str]:
    """Yield what is wrong with the environment, its generations and its journal."""
    if version not in allowed:
        yield f"{version} is current, not one of {allowed}"
    history.everything(made.store)
    for generation in present.generations(made.place):
        yield from (f"{generation.identifier}: {one}" for one in verify.verify(generation))
    if version is not None:
        moves = history.read(made.place)
        if made.generations.get(version) not in {move.to for move in moves[-2:]}:
            yield f"{version} is current, the history does not say so: {moves}"


def usable(made: Arena, version: str | None) -> Iterator[str]:
    """Yield why what is current does not run, and the locks that somebody holds."""
    if version is not None:
        ran = made.run("run", NAME, "--", NAME)
        if ran != (0, f"{NAME} {version}\n", ""):
            yield f"running it: {ran}"
    for path in made.store.root.rglob("*lock"):
        yield from _held(path)
    for path in made.store.package_cache.glob(".locks/*"):
        yield from _held(path)


def _held(path: Path) -> Iterator[str]:
    if path.is_file():
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield f"{path} is held"


def left(made: Arena, wanted: str | None) -> Iterator[str]:
    """Yield what killed commands left; what a lock's file says of its holder keeps nobody out."""
    found = [path for path in leftovers(made.store) if path.name != "lock"]
    found += _temporary(made.root / "tmp")
    if made.place.generations.is_dir():
        found += [one.prefix for one in present.incomplete(made.place)]
    yield from (f"{path}: left" for path in found)
    known = made.root / "home/.conda/environments.txt"
    listed = str(made.place.by_name) in (known.read_text().splitlines() if known.exists() else ())
    shown = made.place.by_name.is_symlink()
    if (listed, shown) != (wanted is not None,) * 2:
        yield f"in conda's list: {listed}; by name: {shown}"


def _temporary(folder: Path) -> Iterator[Path]:
    """Yield what is in a folder for temporary files, but what Python tries there itself."""
    for path in folder.iterdir():
        if not _PROBE.fullmatch(path.name):
            yield path
