"""Power cuts without boots: a machine's writes are logged, and replayed up to any of them.

The log is that of dm-log-writes, which qemu's blklogwrites writes. A disk may lose what came after
the last flush, and keep later writes before earlier ones: so some of those are left out.
"""

import random
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from system.image import run
from system.machine import Machine, Snapshot

from envbuild.errors import EnvbuildError
from envbuild.store import history, present
from envbuild.store.layout import Place, Store
from envbuild.units import compare, placing, record

_MAGIC = 0x6A736677736872
_SECTOR = 512
_FLUSH, _DISCARD = 1, 4
_GENERATION = re.compile(r"/envs/small/generations/([0-9a-f-]+)/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Write:
    """One write.

    Attributes:
        offset: Where.
        data: What; nothing for a flush alone.
        flush: Whether all before it is on the disk.
    """

    offset: int
    data: bytes
    flush: bool


@contextmanager
def logged(snapshot: Snapshot, payload: Path, folder: Path) -> Iterator[Machine]:
    """Give a machine whose writes are logged; its disk before them is kept.

    Args:
        snapshot: Where it goes on from.
        payload: The second disk.
        folder: Where `before` and `log` go.
    """
    run(["qemu-img", "convert", "-O", "raw", snapshot.disk, folder / "before"])
    run(["cp", "--sparse=always", folder / "before", folder / "now"])
    (folder / "log").touch()
    drive = [
        *("-blockdev", f"driver=file,filename={folder}/now,node-name=now"),
        *("-blockdev", f"driver=file,filename={folder}/log,node-name=log"),
        *("-blockdev", "driver=blklogwrites,file=now,log=log,node-name=root,log-sector-size=512"),
    ]
    own = folder / "machine"
    own.mkdir()
    with snapshot.resume(own, drive, payload) as machine:
        yield machine


def entries(log: Path) -> list[Write]:
    """Read a log."""
    found: list[Write] = []
    with log.open("rb") as file:
        magic, _, _, size = struct.unpack("<QQQI", file.read(28))
        assert (magic, size) == (_MAGIC, _SECTOR)
        file.seek(_SECTOR)
        while head := file.read(_SECTOR):
            sector, count, flags, _ = struct.unpack("<QQQQ", head[:32])
            if not (count or flags):
                break
            data = b"" if flags & _DISCARD else file.read(count * _SECTOR)
            found.append(Write(offset=sector * _SECTOR, data=data, flush=bool(flags & _FLUSH)))
    return found


@contextmanager
def cut(folder: Path, log: Sequence[Write], lossy: random.Random | None) -> Iterator[Path]:
    """Mount a disk as it is after a power cut.

    Args:
        folder: As `logged` left it.
        log: The writes until then.
        lossy: Chooses which of the writes after the last flush are lost; None loses none.
    """
    flushed = max((number for number, each in enumerate(log) if each.flush), default=0)
    image, root = folder / "cut", folder / "root"
    run(["cp", "--sparse=always", folder / "before", image])
    with image.open("r+b") as file:
        for number, each in enumerate(log):
            if lossy is not None and number > flushed and lossy.random() < 0.5:
                continue
            file.seek(each.offset)
            file.write(each.data)
    root.mkdir(exist_ok=True)
    run(["mount", "-o", "loop", image, root])
    try:
        yield root
    finally:
        run(["umount", root])


@contextmanager
def store(folder: Path, root: Path, payload: Path) -> Iterator[Callable[[str], Place]]:
    """Mount the store of a machine, which is on both of its disks; give environments by name.

    Args:
        folder: Where it may lie.
        root: The first disk, mounted.
        payload: The second one.
    """
    below, place = folder / "payload", folder / "store"
    for each in (below, place):
        each.mkdir(exist_ok=True)
    upper = f"upperdir={root}/var/payload/store,workdir={root}/var/payload/work"
    run(["mount", "-o", "loop,ro,noload", payload, below])
    try:
        words = ("-t", "overlay", "-o", f"lowerdir={below}/store,{upper}", "overlay", place)
        run(["mount", *words])
        try:
            yield Store(root=place).place
        finally:
            run(["umount", place])
    finally:
        run(["umount", below])


def units_state(folder: Path, name: str) -> str:
    """Return what a folder of units says of an environment once the next command has looked.

    `nothing`, the port that its service has, or `inconsistent: …`.
    """
    wrong, texts = _recovered(folder, name, None)
    if wrong or not texts:
        return wrong or "nothing"
    unit = texts[f"envbuild-{name}.web.service"]
    return next(port for port in ("8001", "8002") if f" {port}\n" in unit)


def moved_state(folder: Path, place: Place) -> str:
    """Return which generation units and `current` name once the next command has looked.

    Its ID, or `inconsistent: …`.
    """
    try:
        current = present.current(place)
        moves = history.read(place)
    except EnvbuildError as error:
        return f"inconsistent: {error}"
    if current is None or not present.complete(current):
        return f"inconsistent: {current} is current"
    if current.identifier not in {move.to for move in moves[-2:]}:
        return f"inconsistent: {current.identifier} is current and not in the history"
    wrong, texts = _recovered(folder, place.name, current.identifier)
    named = {found for text in texts.values() for found in _GENERATION.findall(text)}
    if named != {current.identifier}:
        wrong = wrong or f"inconsistent: {current.identifier} is current, units name {named}"
    return wrong or current.identifier


def _recovered(folder: Path, name: str, current: str | None) -> tuple[str, dict[str, str]]:
    """Let the next command look at a folder; return what is wrong and the files by their paths."""
    try:
        before = record.read(folder, name)
        found = placing.recover(folder, name, systemd=None, current=current)
    except EnvbuildError as error:
        return f"inconsistent: {error}", {}
    paths = {*compare.own(folder, name), *placing.drop_ins(folder, name)}
    texts = {path: compare.read(folder / path) or "" for path in paths}
    if found is None:
        return f"inconsistent: {sorted(paths)} without a record" if paths else "", texts
    if paths != set(found.files):
        return f"inconsistent: {sorted(paths ^ set(found.files))}", texts
    wrong = [
        path for path in paths if sha256(texts[path].encode()).hexdigest() != found.files[path]
    ]
    if wrong:
        return f"inconsistent: {wrong} are not what was written", texts
    if before is not None and before.pending is None:  # else systemd, which is not here, does it
        links = {link.name for link in folder.glob("*.wants/*")}
        wrong = [unit for unit in found.enabled if unit not in links]
    return (f"inconsistent: {wrong} are not started at boot" if wrong else ""), texts
