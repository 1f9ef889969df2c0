"""A generation's manifest: what it was made from, and every file it holds.

Two files lie in PREFIX/.envbuild: `manifest.json`, small, which the hot paths read with nothing but
json, and `files.json`, one row per file, which only `verify` and `info` read. The manifest holds
the digest of the file list and is written last: a generation without it is rubbish.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from envbuild.errors import StoreError
from envbuild.findings import Finding, Findings, Severity
from envbuild.store.layout import Generation
from envbuild.store.raw import MANIFEST_VERSION, look, read_raw
from envbuild.tools.files import write_atomic

FILES = "files.json"

FileKind = Literal["file", "link", "bytecode"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRow:
    """One file of a generation, as it must be.

    Attributes:
        path: Path relative to the prefix, with `/`.
        kind: `file`, `link` (symbolic), or `bytecode` (compiled by us from a known source).
        digest: SHA-256 hex of the content; for a link, what it points to.
        mode: Permission bits (0o755, 0o644); 0 for a link.
        size: Bytes; 0 for a link.
        package: Index into `FileList.packages`, or None for files of our own.
    """

    path: str
    kind: FileKind
    digest: str
    mode: int
    size: int
    package: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class FileList:
    """Every file of a generation (`files.json`), sorted by path.

    Attributes:
        packages: Owners, `conda:NAME` or `pypi:NAME`; rows refer to them by index.
        rows: The files.
    """

    packages: tuple[str, ...]
    rows: tuple[FileRow, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class InstalledPackage:
    """One package of a generation.

    Attributes:
        kind: Which half it belongs to.
        name: Its name.
        version: Version text.
        build: conda's build string; empty for the PyPI half.
        source: conda: canonical address of the archive; PyPI: name of the index, empty for the
            default one.
        digest: SHA-256 hex of the archive (conda, from the lock or the ledger); empty if unknown.
        weak: Whether the lock knows the archive by its md5 only.
    """

    kind: Literal["conda", "pypi"]
    name: str
    version: str
    build: str = ""
    source: str = ""
    digest: str = ""
    weak: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Stamp:
    """A file or folder as it was when its content was last read.

    Attributes:
        path: Absolute path.
        size: Bytes (0 for a folder: file systems disagree).
        mtime_ns: Time of its last change, nanoseconds.
    """

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    """The machine's interpreter that a host recipe was packed from.

    Attributes:
        path: Its absolute path.
        version: Full version text.
        digest: SHA-256 hex over the files that are packed.
        stamps: Executable, libpython and the folders of the standard library.
        libraries: Names of the libraries that it needs of the machine (`libssl.so.3`).
        origin: Why it was taken: `--python`, `ENVBUILD_PYTHON`, `running`, `PATH` …
    """

    path: str
    version: str
    digest: str
    stamps: tuple[Stamp, ...]
    libraries: tuple[str, ...] = ()
    origin: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """The files a generation was made from, for a no-op create to compare.

    Attributes:
        recipe: Path and SHA-256 hex of the recipe (first) and of what it extends.
        lock: Name and SHA-256 hex of each file of the lock folder that was read.
    """

    recipe: tuple[tuple[str, str], ...]
    lock: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """What a generation is (`manifest.json`).

    Attributes:
        name: The environment's name.
        generation: Its identifier: 16 hex digits, `-2`, `-3` … after `--reinstall`.
        environment_digest: The whole digest, 64 hex digits.
        solve_digest: The lock's solve digest.
        platform: conda subdir.
        prefix: Absolute path it was made for.
        created: RFC 3339 instant, UTC.
        inputs: What it was made from.
        interpreter: The machine's interpreter, or None with conda's.
        packages: Both halves, conda first, sorted by name.
        findings: What creation had to say.
        file_count: Number of files.
        file_bytes: Their sizes together, bytes (hard links counted in full).
        compiled: Whether bytecode was compiled.
        files_sha256: SHA-256 hex of files.json.
    """

    name: str
    generation: str
    environment_digest: str
    solve_digest: str
    platform: str
    prefix: str
    created: str
    inputs: Inputs
    packages: tuple[InstalledPackage, ...]
    files_sha256: str
    interpreter: Interpreter | None = None
    findings: Findings = ()
    file_count: int = 0
    file_bytes: int = 0
    compiled: bool = False


def dumps_files(packages: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return the text of files.json.

    Args:
        packages: Owners that the rows refer to.
        rows: `[path, kind, digest, mode, size, package]` each, sorted by path; plain lists,
            because 22,000 objects would cost more than linking them.
    """
    return json.dumps(
        {"version": MANIFEST_VERSION, "packages": packages, "files": rows},
        separators=(",", ":"),
        ensure_ascii=False,
    )


def write(generation: Generation, manifest: Manifest) -> None:
    """Write manifest.json; from now on the generation is complete.

    Raises:
        OSError: It cannot be written.
    """
    data = {"version": MANIFEST_VERSION, **asdict(manifest)}
    write_atomic(generation.manifest, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def read(generation: Generation) -> Manifest:
    """Return a generation's manifest.

    Raises:
        StoreError: There is none, it is damaged, or it is of a later version of envbuild.
    """
    data = read_raw(generation)
    if data is None:
        message = f"{generation.prefix} is not a complete generation"
        raise StoreError(message, hint=f"envbuild create {generation.place.name}")
    try:
        return _manifest(data)
    except (KeyError, TypeError, ValueError) as error:
        message = f"{generation.manifest} is damaged: {error}"
        raise StoreError(message, hint=_reinstall(generation)) from error


def read_files(generation: Generation, manifest: Manifest) -> FileList:
    """Return every file that a generation must hold.

    Raises:
        StoreError: files.json is missing, damaged, or not the one that the manifest names.
    """
    path = generation.own / FILES
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        message = f"{path} is missing"
        raise StoreError(message, hint=_reinstall(generation)) from error
    if hashlib.sha256(content).hexdigest() != manifest.files_sha256:
        message = f"{path} is not the list that the manifest names"
        raise StoreError(message, hint=_reinstall(generation))
    data = json.loads(content)
    rows = (
        FileRow(path=row[0], kind=row[1], digest=row[2], mode=row[3], size=row[4], package=row[5])
        for row in data["files"]
    )
    return FileList(packages=tuple(data["packages"]), rows=tuple(rows))


def stamps(paths: Iterable[Path]) -> tuple[Stamp, ...]:
    """Return files and folders as they are now.

    Raises:
        OSError: One is not there.
    """
    return tuple(
        Stamp(path=str(path), size=size, mtime_ns=time)
        for path, size, time in ((path, *look(path)) for path in paths)
    )


def _reinstall(generation: Generation) -> str:
    return f"envbuild create {generation.place.name} --reinstall"


def _manifest(data: Mapping[str, Any]) -> Manifest:
    interpreter = data["interpreter"]
    inputs = data["inputs"]
    known = {name: data[name] for name in Manifest.__dataclass_fields__}
    known["inputs"] = Inputs(recipe=_pairs(inputs["recipe"]), lock=_pairs(inputs["lock"]))
    known["packages"] = tuple(InstalledPackage(**package) for package in data["packages"])
    known["findings"] = tuple(_finding(finding) for finding in data["findings"])
    if interpreter is not None:
        stamps = tuple(Stamp(**stamp) for stamp in interpreter["stamps"])
        libraries = tuple(interpreter.get("libraries", ()))
        parts = {**interpreter, "stamps": stamps, "libraries": libraries}
        known["interpreter"] = Interpreter(**parts)
    return Manifest(**known)


def _pairs(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((path, digest) for path, digest in rows)


def _finding(data: Mapping[str, Any]) -> Finding:
    return Finding(**{**data, "severity": Severity(data["severity"])})
