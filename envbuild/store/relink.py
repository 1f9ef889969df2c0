"""Making generations work where they lie, after their store was renamed or mounted elsewhere.

A generation is copied beside itself, with the new path in every file that holds the old one and
hard links to all others, and takes its own place in one step. That needs neither network nor
caches nor what creation was told, works for what an older envbuild made, and keeps each ID, so
that history, pins and rollback stay what they were; a build from the lock would need all of that
and give other IDs. No file is changed in place: what runs keeps what it has open, and what a
cache shares stays as it is. Until the exchange the generation is as it was, whenever that ends.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from pathlib import Path

from envbuild.errors import StoreError
from envbuild.findings import Findings
from envbuild.progress import Progress
from envbuild.store import history, integrate, journal, moved, present, verify
from envbuild.store import manifest as manifests
from envbuild.store.journal import Change, Who
from envbuild.store.layout import Generation, Place, Store
from envbuild.store.manifest import FileRow, Interpreter
from envbuild.store.transplant import Plan, plan
from envbuild.tools import files


@dataclass(frozen=True, kw_only=True, slots=True)
class Relinked:
    """What was (or would be) done with one generation.

    Attributes:
        generation: The generation.
        origin: Path that it was made for.
        changed: Number of files that hold the path.
        findings: Why it was left as it is: errors; empty where it works now.
    """

    generation: Generation
    origin: str
    changed: int = 0
    findings: Findings = ()


def relink(
    place: Place,
    *,
    home: Path,
    progress: Progress,
    who: Who,
    now: datetime,
    dry_run: bool = False,
) -> tuple[Relinked, ...]:
    """Put the path where they lie into every generation of an environment that was moved.

    A generation that cannot be relinked, or is damaged, stays as it is and says why.

    Args:
        place: The environment.
        home: The user's home, whose conda knows environments by their paths.
        progress: Who is told.
        who: Who asks for it.
        now: The instant (UTC).
        dry_run: Only look.

    Raises:
        InputError: There is no such environment.
        StoreError: The store cannot be changed.
    """
    place = place.store.resolved().place(place.name)
    with history.locked(place, purpose=f"relink {place.name}", who=who):
        try:
            if not dry_run:
                _tidy(place)
            looked_at = [
                _relinked(generation, progress, dry_run=dry_run)
                for generation in present.generations(place)
            ]
            done = [one for one in looked_at if one is not None]
            if not dry_run:
                _note(place, done, who=who, now=now)
                _tell_conda(place, done, home)
        except OSError as error:
            raise history.unusable(place, error) from error
    return tuple(done)


def _tidy(place: Place) -> None:
    """Put back, and remove, what a relink left that was ended in the middle."""
    for aside in sorted(place.generations.glob(f"{present.ASIDE}*{present.OLD}")):
        identifier = aside.name.removeprefix(present.ASIDE).removesuffix(present.OLD)
        home = place.generation(identifier).prefix
        if not home.exists():
            aside.rename(home)
        else:
            files.remove_tree(aside)
    for aside in sorted(place.generations.glob(f"{present.ASIDE}*")):
        files.remove_tree(aside)


def _relinked(generation: Generation, progress: Progress, *, dry_run: bool) -> Relinked | None:
    """Relink one generation; None where it lies where it was made."""
    try:
        manifest = manifests.read(generation)
        if moved.text(generation, manifest.prefix) is None:
            return None
        progress.step(f"checking {generation.place.name} {generation.identifier}")
        made = plan(generation, manifest, progress=progress)
    except StoreError as error:
        damaged = verify.lists_damaged(generation, error)
        return Relinked(generation=generation, origin="another path", findings=(damaged,))
    if not made.problems and not dry_run:
        progress.step(f"relinking {generation.place.name} {generation.identifier}")
        _carry_out(made)
    return Relinked(
        generation=generation,
        origin=made.manifest.prefix,
        changed=len(made.contents) + len(made.targets),
        findings=tuple(made.problems),
    )


def _carry_out(made: Plan) -> None:
    """Copy a generation beside itself as it is to be, and put that in its place."""
    place, identifier = made.generation.place, made.generation.identifier
    aside = place.generation(f"{present.ASIDE}{identifier}")
    try:
        _copy_folder(made, aside.prefix, "")
        rows = tuple(_rows(made))
        _write_manifest(made, aside, rows)
        if not files.exchange(aside.prefix, made.generation.prefix):
            old = place.generations / f"{present.ASIDE}{identifier}{present.OLD}"
            made.generation.prefix.rename(old)
            aside.prefix.rename(made.generation.prefix)
            aside = place.generation(old.name)
    finally:
        files.remove_tree(aside.prefix)


def _copy_folder(made: Plan, to: Path, below: str) -> None:
    source = f"{made.generation.prefix}/{below}"
    os.mkdir(f"{to}/{below}")  # noqa: PTH102
    with os.scandir(source) as entries:
        for entry in entries:
            path = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                _copy_folder(made, to, f"{path}/")
            elif path in made.targets:
                os.symlink(made.targets[path], f"{to}/{path}")  # noqa: PTH211
            elif path in made.contents:
                _write(made.contents[path], entry, f"{to}/{path}")
            elif path not in made.dropped:
                _link(entry, f"{to}/{path}")
    shutil.copystat(source, f"{to}/{below}")


def _write(content: bytes, entry: "os.DirEntry[str]", to: str) -> None:
    with open(to, "xb") as file:  # noqa: PTH123
        file.write(content)
    shutil.copystat(entry.path, to)


def _link(entry: "os.DirEntry[str]", to: str) -> None:
    """Link a file, or copy it where the file system has no links, or no more of this file."""
    try:
        os.link(entry.path, to, follow_symlinks=False)
    except OSError:
        shutil.copy2(entry.path, to, follow_symlinks=False)


def _rows(made: Plan) -> Iterator[FileRow]:
    for row in made.listed.rows:
        if row.path in made.contents:
            content = made.contents[row.path]
            digest = hashlib.sha256(content).hexdigest()
            yield replace(row, digest=digest, size=len(content))
        elif row.path in made.targets:
            yield replace(row, digest=made.targets[row.path])
        elif row.path not in made.dropped:
            yield row


def _write_manifest(made: Plan, aside: Generation, rows: tuple[FileRow, ...]) -> None:
    """Write both lists; the manifest keeps its time, which orders generations."""
    text = manifests.dumps_files(made.listed.packages, [astuple(row) for row in rows])
    files.write_atomic(aside.own / manifests.FILES, text)
    manifest = replace(
        made.manifest,
        prefix=made.prefix.new,
        interpreter=_interpreter(made),
        file_count=len(rows),
        file_bytes=sum(row.size for row in rows),
        files_sha256=hashlib.sha256(text.encode()).hexdigest(),
    )
    manifests.write(aside, manifest)
    time = made.generation.manifest.stat().st_mtime_ns
    os.utime(aside.manifest, ns=(time, time))


def _interpreter(made: Plan) -> Interpreter | None:
    """Return the machine's interpreter; what is watched of it may lie in the store."""
    interpreter = made.manifest.interpreter
    if interpreter is None:
        return None
    stamps = tuple(
        replace(stamp, path=made.store.in_text(stamp.path.encode()).decode())
        for stamp in interpreter.stamps
    )
    return replace(interpreter, stamps=stamps)


def _note(place: Place, done: list[Relinked], *, who: Who, now: datetime) -> None:
    for one in done:
        if not one.findings:
            identifier = one.generation.identifier
            change = Change(what="relink", environment=place.name, to=identifier)
            journal.note(place.store, change, who=who, now=now)


def _tell_conda(place: Place, done: list[Relinked], home: Path) -> None:
    """Put the environment's new path in place of the old one in conda's list."""
    for one in done:
        below = f"/envs/{place.name}/generations/{one.generation.identifier}"
        root = one.origin.removesuffix(below)
        if one.findings or root in {"", one.origin}:
            continue
        integrate.unregister(Store(root=Path(root)).place(place.name), home=home)
        if place.by_name.is_symlink():
            integrate.register(place, home=home)
