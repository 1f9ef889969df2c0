"""What must change in a generation so that it works under another path: every new content."""

import base64
import hashlib
import json
import mmap
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from envbuild.findings import Finding, Severity, errors_of
from envbuild.progress import Progress
from envbuild.store import manifest as manifests
from envbuild.store import verify
from envbuild.store.layout import OWN_FOLDER, Generation
from envbuild.store.manifest import FileList, FileRow, Manifest
from envbuild.store.prefixes import Exchange

_ODD = re.compile(r"[\"'\\$`\x00-\x1f\x7f]")
_BYTECODE = re.compile(r"(?P<folder>(.*/)?)__pycache__/(?P<name>[^/]+?)\.[^/.]+(\.opt-[12])?\.pyc")
_IN_RECORD = re.compile(rb"sha256=([\w-]{43}),[0-9]+")
_IN_META = re.compile(rb'("sha256_in_prefix": ?")([0-9a-f]{64})"')


@dataclass(kw_only=True, slots=True)
class Plan:
    """How a generation is to be.

    Attributes:
        generation: The generation.
        manifest: Its manifest.
        listed: Its files.
        prefix: Its old path and the new one.
        contents: Files with a new content.
        targets: Symbolic links with a new target.
        dropped: Bytecode whose source changed: nothing would ever compare the two.
        problems: Why it cannot be done: errors.
    """

    generation: Generation
    manifest: Manifest
    listed: FileList
    prefix: Exchange
    contents: dict[str, bytes] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    problems: list[Finding] = field(default_factory=list)

    @property
    def store(self) -> Exchange:
        """The old and the new path of the store: what is ours, and records, name its caches."""
        old = self.prefix.old.removesuffix(self._below)
        if old in {"", self.prefix.old}:
            return self.prefix
        return Exchange(old=f"{old}/", new=f"{self.prefix.new.removesuffix(self._below)}/")

    @property
    def longest(self) -> int:
        """How many bytes of a path stand after the store's own."""
        return len(self._below)

    @property
    def _below(self) -> str:
        generation = self.generation
        return f"/envs/{generation.place.name}/generations/{generation.identifier}"


def plan(generation: Generation, manifest: Manifest, *, progress: Progress) -> Plan:
    """Work out every new content; a damaged generation is no base to work on.

    Codes: those of `verify`, `prefix-too-long` (error): a file has no room for the path;
    `odd-path` (error).

    Args:
        generation: Where it lies now.
        manifest: Its manifest.
        progress: Who is told.

    Raises:
        StoreError: Its list of files is damaged.
        OSError: A file cannot be read.
    """
    exchange = Exchange(old=manifest.prefix, new=os.path.realpath(generation.prefix))
    listed = manifests.read_files(generation, manifest)
    made = Plan(generation=generation, manifest=manifest, listed=listed, prefix=exchange)
    if _ODD.search(exchange.new):
        what = "a quote, a backslash, a dollar sign or a control character would need quoting"
        made.problems.append(_error("odd-path", exchange.new, what, "move the store elsewhere"))
        return made
    found = verify.verify(generation, progress=progress)
    made.problems += [one for one in errors_of(found) if one.code != "generation-moved"]
    if made.problems:
        return made
    rooms = _rooms(generation, listed)
    for row in listed.rows:
        if row.kind == "link" and exchange.finds(row.digest.encode()):
            made.targets[row.path] = exchange.in_text(row.digest.encode()).decode()
        elif row.kind == "file":
            _plan_file(made, row, rooms.get(row.path))
    _drop_bytecode(made)
    _plan_records(made)
    return made


def _plan_file(made: Plan, row: FileRow, room: int | None) -> None:
    """Give a file its new content, where it holds the old path.

    Bytecode is left alone: an import puts the real path in place of the one compiled in.
    """
    if room is None and row.path.endswith(".pyc"):
        return
    own = row.path.startswith(("conda-meta/", f"{OWN_FOLDER}/"))
    exchange = made.store if own else made.prefix
    content = _holding(made.generation.prefix / row.path, exchange)
    if content is None:
        return
    try:
        if room is not None or b"\0" in content:
            made.contents[row.path] = exchange.in_binary(content, room or 0)
        elif own:
            made.contents[row.path] = exchange.in_text(content)
        else:
            made.contents[row.path] = exchange.in_script(content)
    except ValueError as error:
        owner = "envbuild" if row.package is None else made.listed.packages[row.package]
        fits = max(room or 0, len(made.prefix.old.encode())) - made.longest
        hint = f"move the store to a path of at most {fits} bytes"
        made.problems.append(_error("prefix-too-long", row.path, f"{error} ({owner})", hint))


def _holding(path: Path, exchange: Exchange) -> bytes | None:
    """Return the content of a file that holds the old path, else None."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(exchange.old.encode()) < 0:
                return None
            whole = content[:]
    return whole if exchange.finds(whole) else None


def _rooms(generation: Generation, listed: FileList) -> dict[str, int]:
    """Return the files that packages declare as binary, each with its placeholder's bytes."""
    rooms: dict[str, int] = {}
    for row in listed.rows:
        if row.path.startswith("conda-meta/") and row.path.endswith(".json"):
            data = json.loads((generation.prefix / row.path).read_bytes())
            for entry in data.get("paths_data", {}).get("paths", ()):
                if entry.get("file_mode") == "binary" and entry.get("prefix_placeholder"):
                    rooms[entry["_path"]] = len(entry["prefix_placeholder"].encode())
    return rooms


def _drop_bytecode(made: Plan) -> None:
    for row in made.listed.rows:
        found = _BYTECODE.fullmatch(row.path) if row.kind == "bytecode" else None
        if found and f"{found['folder']}{found['name']}.py" in made.contents:
            made.dropped.add(row.path)


def _plan_records(made: Plan) -> None:
    """Put the new digests into what packages say of their files: RECORD, then conda-meta."""
    before = {row.path: bytes.fromhex(row.digest) for row in made.listed.rows if row.kind == "file"}
    now = {before[path]: content for path, content in made.contents.items()}

    def in_record(found: re.Match[bytes]) -> bytes:
        content = now.get(base64.urlsafe_b64decode(found[1] + b"="))
        if content is None:
            return found[0]
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
        return b"sha256=%b,%d" % (digest, len(content))

    def in_meta(found: re.Match[bytes]) -> bytes:
        content = now.get(bytes.fromhex(found[2].decode()))
        if content is None:
            return found[0]
        return found[1] + hashlib.sha256(content).hexdigest().encode() + b'"'

    paths = list(before)
    for path in (path for path in paths if path.endswith(".dist-info/RECORD")):
        _substitute(made, path, _IN_RECORD, in_record)
    now |= {before[path]: content for path, content in made.contents.items()}
    for path in paths:
        if path.startswith("conda-meta/") and path.endswith(".json"):
            _substitute(made, path, _IN_META, in_meta)


def _substitute(
    made: Plan, path: str, pattern: re.Pattern[bytes], new: Callable[[re.Match[bytes]], bytes]
) -> None:
    content = made.contents.get(path) or (made.generation.prefix / path).read_bytes()
    changed = pattern.sub(new, content)
    if changed != content:
        made.contents[path] = changed


def _error(code: str, where: str, what: str, hint: str) -> Finding:
    return Finding(code=code, severity=Severity.ERROR, where=where, what=what, hint=hint)
