"""Mixed commands by several workers on one store, and a model of how each may end.

What a command may answer depends on what ran beside it. The model notes when each command began
and ended: an environment is there for certain if a `create` ended before this command began and
no `remove` has run since that `create` began; likewise for what is gone.
"""

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from integration.site import Site

from envbuild.store import history, present, verify
from envbuild.store.layout import Store

NAMES = ("one", "two")
_OUR_FAULT = 125
_MAKING = ("build", "create")
_CURRENT = {"run", "verify", "list"}


@dataclass(kw_only=True)
class Command:
    """One command line.

    Attributes:
        kind: Its name.
        words: Its words.
        name: The environment, empty for all.
        identifier: The generation that it names, or empty.
        began: When, in steps of the model; `ended` likewise, None while it runs.
        code: How it ended.
    """

    kind: str
    words: tuple[str, ...]
    name: str = ""
    identifier: str = ""
    began: int = 0
    ended: int | None = None
    code: int | None = None


@dataclass
class Model:
    """What was run, and what may be answered."""

    commands: list[Command] = field(default_factory=list)
    known: dict[str, dict[str, int]] = field(default_factory=lambda: {one: {} for one in NAMES})
    guard: threading.Lock = field(default_factory=threading.Lock)
    steps: Iterator[int] = field(default_factory=itertools.count)

    def begin(self, command: Command) -> None:
        with self.guard:
            command.began = next(self.steps)
            self.commands.append(command)

    def end(self, command: Command, code: int, out: str) -> set[int]:
        """Note how a command ended; return the codes with which it may."""
        with self.guard:
            command.ended, command.code = next(self.steps), code
            allowed = self._allowed(command)
            if command.kind in _MAKING and code == 0:
                made = json.loads(out)["generation"]
                self.known[command.name][made] = command.began
            return allowed

    def beside(self, since: int, *kinds: str, name: str) -> bool:
        """Say whether one of these ran at any time since, or runs."""
        ran = (one for one in self.commands if one.kind in kinds and one.name in {name, ""})
        return any(one.ended is None or one.ended > since for one in ran)

    def _last(self, command: Command, *kinds: str) -> int | None:
        """Return when the last one of these began that had done its work before this began."""
        done = [
            one.began
            for one in self.commands
            if (one.name, one.code) == (command.name, 0)
            and one.kind in kinds
            and one.ended is not None
            and one.ended < command.began
        ]
        return max(done, default=None)

    def _absent(self, command: Command) -> bool:
        """Say whether the environment can have been absent at some time while this ran.

        Or without a current generation, for what needs one; gc takes all of one that has none.
        """
        current = self._last(command, "create")
        if current is not None and not self.beside(current, "remove", name=command.name):
            return False
        made = self._last(command, *_MAKING)
        taking = ("remove", "gc", "gc all")
        return (
            command.kind in _CURRENT
            or made is None
            or self.beside(made, *taking, name=command.name)
        )

    def _present(self, command: Command) -> bool:
        """Say whether it can have been there."""
        gone = self._last(command, "remove")
        others = [one for one in self.commands if one.kind in _MAKING]
        if gone is None:
            return any(one.name == command.name for one in others)
        return self.beside(gone, *_MAKING, name=command.name)

    def _allowed(self, command: Command) -> set[int]:
        missing = _OUR_FAULT if command.kind == "run" else 3
        if command.kind == "status all":
            return {0, 1}  # another version than the recipe's is current
        if command.kind in {*_MAKING, "list all", "history all", "gc all"}:
            return {0}
        allowed = {missing} if self._absent(command) else set()
        if not self._present(command):
            return allowed
        allowed |= {0}
        if command.kind == "remove" and self.beside(
            command.began, "run", "verify", name=command.name
        ):
            allowed |= {1}
        if command.kind == "rollback":
            allowed |= {3}  # there is no earlier state, or gc has taken it
        if command.identifier:
            made = self.known[command.name].get(command.identifier)
            kinds = ("gc", "gc all", "remove")
            if made is None or self.beside(made, *kinds, name=command.name):
                allowed |= {3}
        return allowed


class Stress:
    """Workers, what they ran, and what was wrong."""

    def __init__(self, place: Site, *, seconds: float, workers: int, seed: int) -> None:
        self.place = place
        self.model = Model()
        self.problems: list[str] = []
        self.codes: Counter[tuple[str, int]] = Counter()
        self._end = time.monotonic() + seconds
        self._workers = [
            threading.Thread(target=self._work, args=(random.Random(seed + number),))  # noqa: S311
            for number in range(workers)
        ]

    def run(self) -> None:
        for worker in self._workers:
            worker.start()
        for worker in self._workers:
            worker.join()

    def _work(self, chance: random.Random) -> None:
        while time.monotonic() < self._end:
            command = self._choose(chance)
            self.model.begin(command)
            code, out, err = self.place.run(*command.words)
            allowed = self.model.end(command, code, out)
            self.codes[command.kind, code] += 1
            if code not in allowed:
                said = f"{' '.join(command.words)}: {code}, not of {sorted(allowed)}\n{out}{err}"
                self.problems.append(said)

    def _choose(self, chance: random.Random) -> Command:  # noqa: PLR0911
        name = chance.choice(NAMES)
        kind = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        with self.model.guard:
            known = sorted(self.model.known[name]) or ["0" * 16]
        identifier = chance.choice(known)
        match kind:
            case "create":
                words = self.place.create(name, chance.choice(self.place.versions))
                more = chance.choice(((), (), (), ("--reinstall",), ("--no-switch",)))
                if "--no-switch" in more:
                    kind = "build"
                return Command(kind=kind, words=(*words, *more, "--json"), name=name)
            case "switch" | "pin" | "unpin":
                words = (kind, name, identifier)
                return Command(kind=kind, words=words, name=name, identifier=identifier)
            case "run":
                return Command(kind=kind, words=(kind, name, "--", name, "0.1"), name=name)
            case "gc":
                keep = str(chance.randrange(3))
                return Command(kind=kind, words=(kind, name, "--keep", keep, "-y"), name=name)
            case "gc all":
                return Command(kind=kind, words=("gc", "--keep", "1", "-y"))
            case "remove":
                return Command(kind=kind, words=(kind, name, "-y"), name=name)
            case "list all" | "status all" | "history all":
                return Command(kind=kind, words=(kind.split()[0], "--json"))
            case _:
                return Command(kind=kind, words=(kind, name, "--json"), name=name)

    def wrong_at_the_end(self) -> list[str]:
        """Return what is wrong with the store once all have ended."""
        store, wrong = self.place.store, list[str]()
        for name in present.names(store):
            place = store.place(name)
            wrong += [f"{one.prefix}: incomplete" for one in present.incomplete(place)]
            for generation in present.generations(place):
                wrong += [f"{generation.prefix}: {one}" for one in verify.verify(generation)]
            current, moves = present.current(place), history.read(place)
            if current and (not moves or moves[-1].to != current.identifier):
                wrong.append(f"{name}: {current.identifier} is current, the journal says otherwise")
        wrong += [f"{path}: left" for path in leftovers(self.place.store)]
        return wrong


def leftovers(store: Store) -> Iterator[Path]:
    """Yield what commands have left in a store that nobody changes now."""
    folders = {store.environments / name for name in present.names(store)}
    yield from set(store.environments.glob("*")) - folders
    for link in store.by_name.glob("*"):
        if not link.exists():
            yield link
    for pattern in (".*", "envs/*/.*", "envs/*/generations/*/.envbuild/.*", "by-name/.*"):
        yield from store.root.glob(pattern)
    yield from store.cache.glob("envbuild-scratch-*")
    yield from store.package_cache.glob(".*.part")
    yield from (path for path in store.root.glob("envs/*/lock") if path.stat().st_size)


_WEIGHTS = {
    "create": 8,
    "switch": 4,
    "rollback": 3,
    "run": 5,
    "gc": 3,
    "gc all": 2,
    "remove": 1,
    "pin": 1,
    "unpin": 2,
    "verify": 3,
    "list": 1,
    "list all": 1,
    "status all": 1,
    "history": 1,
    "history all": 1,
}
