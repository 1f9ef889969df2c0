"""Putting units where systemd finds them: all of a change, or none of it, also over a power cut.

The record says what stood there before until the change is done; what did not come to its end is
undone by the next command, before it does anything else.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from envbuild.errors import Refused, StoreError
from envbuild.tools import boot
from envbuild.tools.files import make_folder, sync_folder, write_atomic
from envbuild.tools.scratch import scratch
from envbuild.tools.systemd import Systemd
from envbuild.units import compare, live, names, record, starting
from envbuild.units.compare import Difference
from envbuild.units.model import UnitFile
from envbuild.units.record import Pending, Record

DROP_IN: Final = "50-envbuild-host.conf"
"""What a service's unit gets from the host."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What is to be installed.

    Attributes:
        name: The environment.
        store: The root of its store.
        generation: The generation that the units name; empty for none.
        files: Units and drop-ins, by their paths below the folder.
        enabled: Units to be started at boot.
        moves_to: The generation that becomes current with it; empty for none.
    """

    name: str
    store: str
    generation: str
    files: tuple[UnitFile, ...]
    enabled: tuple[str, ...]
    moves_to: str = ""


class Placing:
    """A change of an environment's units; done, undone, or left to the next command.

    Attributes:
        folder: Where the units are.
        wanted: What is to be there.
        changed: What is not so yet.
    """

    def __init__(self, wanted: Wanted, *, folder: Path, systemd: Systemd) -> None:
        """Look what would change.

        Raises:
            StoreError: A file there is not ours, or cannot be read.
        """
        self.folder, self.wanted = folder, wanted
        self._systemd = systemd
        self._before = record.read(folder, wanted.name)
        own = drop_ins(folder, wanted.name)
        self.changed = compare.compare(wanted.files, wanted.name, folder, also=own)
        compare.refuse_foreign(self.changed, folder)
        was = self._before.enabled if self._before else ()
        self._enable = tuple(unit for unit in wanted.enabled if unit not in was)
        self._disable = tuple(unit for unit in was if unit not in wanted.enabled)

    @property
    def nothing(self) -> bool:
        """Whether all is as it is wanted."""
        return not (self.changed or self._enable or self._disable)

    def verify(self) -> None:
        """Let systemd read the units in a folder of their own.

        Raises:
            Refused: It says something against them.
        """
        with scratch() as (folder, _):
            paths: list[Path] = []
            for file in self.wanted.files:
                path = folder / file.name
                path.parent.mkdir(exist_ok=True)
                path.write_text(file.text)
                if path.parent == folder:
                    paths.append(path)
            told = self._systemd.verify(paths).replace(f"{folder}/", "") if paths else ""
        if told:
            message = f"systemd does not take the units of {self.wanted.name}"
            raise Refused(message, hint="nothing was installed", details=told)

    def do(self) -> None:
        """Write, enable, and let systemd read it once; what stood there before is kept.

        Raises:
            StoreError: A file cannot be written.
            ToolFailed: systemd refuses; `undo` is up to the caller.
        """
        pending = Pending(
            before={one.name: one.there or None for one in self.changed},
            enabled=self._enable,
            disabled=self._disable,
            moves_to=self.wanted.moves_to,
            boot=boot.identity(),
            began_us=time.monotonic_ns() // 1000,
        )
        base = self._before or _empty(self.wanted)
        record.write(self.folder, replace(base, pending=pending))
        _put(self.folder, {one.name: one.wanted or None for one in self.changed}, self._take_down)
        self._systemd.enable(self._enable)
        self._systemd.reload()

    def _take_down(self) -> None:
        self._systemd.disable(self._disable)

    def undo(self) -> None:
        """Put back what stood there before."""
        recover(self.folder, self.wanted.name, systemd=self._systemd)

    def done(self) -> None:
        """Keep the change."""
        kept = dict(self._before.kept) if self._before else {}
        if self.wanted.generation:
            kept[self.wanted.generation] = {
                file.name: file.text for file in self.wanted.files if "/" not in file.name
            }
        store = Path(self.wanted.store)
        generations = store / "envs" / self.wanted.name / "generations"
        _sync(self.folder)
        record.write(
            self.folder,
            Record(
                name=self.wanted.name,
                store=self.wanted.store,
                generation=self.wanted.generation,
                files={file.name: _digest(file.text) for file in self.wanted.files},
                enabled=self.wanted.enabled,
                kept={name: texts for name, texts in kept.items() if (generations / name).is_dir()},
            ),
        )


def recover(
    folder: Path, name: str, *, systemd: Systemd | None, current: str | None = None
) -> Record | None:
    """Undo a change that did not come to its end, and return what is installed then.

    One whose generation is current already came to its end but for the last line of its record.

    Args:
        folder: Where the units are.
        name: The environment.
        systemd: The manager, which reads them anew; None where none runs.
        current: The generation that is current, None for any other.

    Raises:
        StoreError: The record is damaged, or a file cannot be written.
        ToolFailed: systemd refuses.
    """
    found = record.read(folder, name)
    if found is None or found.pending is None:
        return found
    pending = found.pending
    finished = bool(pending.moves_to) and pending.moves_to == current
    if not finished:
        wrong = [
            path
            for path, text in pending.before.items()
            if live.must_restart(compare.read(folder / path) or "", text or "")
        ]
        if systemd is not None:
            systemd.disable(unit for unit in pending.enabled if os.path.lexists(folder / unit))
        _put(folder, pending.before)
        if systemd is not None:
            systemd.enable(pending.disabled)
            systemd.reload()
            since_us = pending.began_us if pending.boot == boot.identity() else 0
            _start_anew(folder, wrong, systemd, since_us)
    else:
        texts = _texts(folder, name)
        found = replace(
            found,
            generation=pending.moves_to,
            files={path: _digest(text) for path, text in texts.items()},
            enabled=tuple(
                unit for unit in (*found.enabled, *pending.enabled) if unit not in pending.disabled
            ),
        )
    found = replace(found, pending=None)
    if not found.files:
        record.remove(folder, name)
        return None
    record.write(folder, found)
    return found


def _start_anew(folder: Path, paths: Sequence[str], systemd: Systemd, since_us: int) -> None:
    """Stop or restart what of units that were put back was started since: as it was not to be."""
    for path in paths:
        unit = path.partition("/")[0].removesuffix(".d")
        runs = starting.running(systemd, [unit.replace("@.", "@*.")])
        if (folder / unit).is_file():
            systemd.restart(starting.started_since(systemd, runs, since_us))
        else:
            systemd.stop(runs)


def remove(folder: Path, name: str, *, systemd: Systemd) -> tuple[str, ...]:
    """Remove an environment's units and drop-ins, stopped by then; return what went.

    What does not come to its end leaves them to the next command, which puts them back.

    Raises:
        StoreError: A file cannot be removed.
        ToolFailed: systemd refuses.
    """
    found = record.read(folder, name)
    texts = _texts(folder, name)
    if (folder / names.NODES).is_file() and not any(
        names.NODES in other.files for other in record.others(folder, name)
    ):
        text = compare.read(folder / names.NODES) or ""
        if found is not None and found.files.get(names.NODES) == _digest(text):
            texts[names.NODES] = text
    if found is not None:
        enabled = tuple(unit for unit in found.enabled if (folder / unit).is_file())
        pending = Pending(before=dict(texts), disabled=enabled)
        record.write(folder, replace(found, pending=pending))
        systemd.disable(enabled)
        _sync(folder)
    _put(folder, dict.fromkeys(texts))
    record.remove(folder, name)
    if texts:
        systemd.reload()
    return tuple(sorted(texts))


def drop_ins(folder: Path, name: str) -> tuple[str, ...]:
    """Return our drop-ins of an environment's services that a folder has."""
    return tuple(
        f"{path.relative_to(folder)}"
        for path in sorted(folder.glob(f"envbuild-*.d/{DROP_IN}"))
        if names.belongs(path.parent.name.removesuffix(".d"), name)
    )


def _texts(folder: Path, name: str) -> dict[str, str]:
    paths = (*compare.own(folder, name), *drop_ins(folder, name))
    return {path: compare.read(folder / path) or "" for path in paths}


def _put(
    folder: Path, texts: Mapping[str, str | None], before_removal: Callable[[], None] | None = None
) -> None:
    """Make files say what they are to say; None removes one."""
    try:
        make_folder(folder)
        for name, text in texts.items():
            if text is not None:
                make_folder((folder / name).parent)
                write_atomic(folder / name, text)
        if before_removal is not None:
            before_removal()
        for name, text in texts.items():
            if text is None:
                (folder / name).unlink(missing_ok=True)
                if "/" in name:
                    with contextlib.suppress(OSError):  # an administrator's own are there
                        (folder / name).parent.rmdir()
        sync_folder(folder)
    except OSError as error:
        message = f"{error.filename or folder}: {error.strerror}"
        hint = "root may do it (sudo?), or --user for this user alone"
        raise StoreError(message, hint=hint if isinstance(error, PermissionError) else None) from (
            error
        )


def _sync(folder: Path) -> None:
    """Make the links of enabled units last over a power cut."""
    for wants in folder.glob("*.wants"):
        with contextlib.suppress(OSError):
            sync_folder(wants)


def _empty(wanted: Wanted) -> Record:
    return Record(name=wanted.name, store=wanted.store)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def units_of(changed: Sequence[Difference] | Iterable[Difference]) -> tuple[str, ...]:
    """Return the units that changes are of: a drop-in is its unit's."""
    found = (one.name.partition("/")[0].removesuffix(".d") for one in changed)
    return tuple(dict.fromkeys(found))
