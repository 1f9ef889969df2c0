"""A built wheel, written anew: with a local version, in one order, with fixed times and modes.

Members pass through in pieces: a wheel of any size takes a few MiB of memory.
"""

import base64
import filecmp
import hashlib
import io
import re
import stat
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from envbuild.errors import ToolFailed
from envbuild.native import zips

_OLDEST = 315532800
"""1980, before which a zip archive has no time."""

_VERSION = re.compile(r"(?m)^Version:.*$")
_BUILD = re.compile(r"(?m)^Build:.*\n?")
_NO_HASH = ("RECORD", "RECORD.jws", "RECORD.p7s")
_PIECE_BYTES = 1 << 20


def label(family: str, version: str, archs: tuple[str, ...], abi: str | None) -> str:
    """Return the local version of a rebuilt wheel: its compiler, GPU code, and an old ABI.

    Args:
        family: `gcc` or `clang`.
        version: The compiler's, in full.
        archs: Compute capabilities as a recipe writes them.
        abi: `new`, `old` or None.
    """
    parts = [f"{family}{version.partition('.')[0]}"]
    parts += sorted(f"sm{one.partition('+')[0].replace('.', '')}" for one in archs)
    parts += ["oldabi"] if abi == "old" else []
    return ".".join(dict.fromkeys(parts))


def official(version: str) -> str:
    """Return a version without what a rebuild added (`2.4.0+cu124.gcc12`)."""
    public, _, local = version.partition("+")
    parts = local.split(".")
    own = next((at for at, part in enumerate(parts) if part[:3] in {"gcc", "cla"}), len(parts))
    return "+".join([public, *([".".join(parts[:own])] if own and local else [])])


def rewrite(wheel: Path, folder: Path, *, local: str, epoch: int, build: int = 0) -> Path:
    """Write a wheel with a local version into a folder and return its file.

    The same members give the same bytes. METADATA gets the version, RECORD is made anew.

    Args:
        wheel: The wheel as it was built.
        folder: Where the new one is written.
        local: The local version; it comes after one that is there.
        epoch: Time of every member, in seconds since 1970.
        build: Its build tag, which tells it from an earlier one of that version; 0 for none.

    Raises:
        ToolFailed: What was built is no wheel.
    """
    path: Path | None = None
    try:
        _, version, _, _ = parse_wheel_filename(wheel.name)
        new = _localized(version, local)
        parts = wheel.name.split("-")
        old_stem, stem = f"{parts[0]}-{parts[1]}", f"{parts[0]}-{new}"
        information = f"{stem}.dist-info/"
        path = folder / "-".join([stem, *([f"{build}"] if build else []), *parts[-3:]])
        with wheel.open("rb") as file, zips.opened(file) as opened:
            members = {
                _renamed(info.filename, old_stem, stem): info
                for info in opened.infolist()
                if not info.is_dir()
            }
            changed = {
                f"{information}METADATA": _version(
                    opened.read(members[f"{information}METADATA"]), new
                )
            }
            declared = opened.read(members[f"{information}WHEEL"])
            if build:
                changed[f"{information}WHEEL"] = _tagged(declared, build)
            members.pop(f"{information}RECORD", None)
            _write(path, _Members(opened, members, changed), information, epoch)
    except (
        InvalidWheelFilename,
        zips.HostileArchive,
        zipfile.BadZipFile,
        KeyError,
        UnicodeDecodeError,
        zlib.error,
    ) as error:
        if path is not None:
            path.unlink(missing_ok=True)
        message = f"{wheel.name}: what was built is no wheel: {error}"
        raise ToolFailed(message) from error
    return path


@dataclass(frozen=True, slots=True)
class _Members:
    """What a wheel is made of, by new name: members of another archive, and new contents."""

    archive: zipfile.ZipFile
    infos: Mapping[str, zipfile.ZipInfo]
    changed: Mapping[str, bytes]

    def size(self, name: str) -> int:
        changed = self.changed.get(name)
        return self.infos[name].file_size if changed is None else len(changed)

    def executable(self, name: str) -> bool:
        mode = self.infos[name].external_attr >> 16
        return name not in self.changed and bool(mode & stat.S_IXUSR)

    def opened(self, name: str) -> IO[bytes]:
        changed = self.changed.get(name)
        return self.archive.open(self.infos[name]) if changed is None else io.BytesIO(changed)


def _version(metadata: bytes, new: str) -> bytes:
    return _VERSION.sub(f"Version: {new}", metadata.decode(), count=1).encode()


def _tagged(declared: bytes, build: int) -> bytes:
    text = _BUILD.sub("", declared.decode()).rstrip("\n")
    return f"{text}\nBuild: {build}\n".encode()


def _localized(version: Version, local: str) -> str:
    return f"{version}.{local}" if version.local else f"{version}+{local}"


def _renamed(name: str, old: str, new: str) -> str:
    for ending in (".dist-info/", ".data/"):
        if name.startswith(f"{old}{ending}"):
            return f"{new}{name.removeprefix(old)}"
    return name


def _quoted(name: str) -> str:
    if any(letter in name for letter in ',"\r\n'):
        doubled = name.replace('"', '""')
        return f'"{doubled}"'
    return name


def _write(path: Path, members: _Members, information: str, epoch: int) -> None:
    """Write members in order; those of the dist-info come last, a RECORD of them all at the end."""
    moment = time.gmtime(max(epoch, _OLDEST))[:6]
    record = f"{information}RECORD"
    rows = {record: f"{_quoted(record)},,\n"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in sorted(members.infos, key=lambda one: (one.startswith(information), one)):
            info = _info(name, moment, executable=members.executable(name))
            info.file_size = members.size(name)
            digest, size = hashlib.sha256(), 0
            with members.opened(name) as source, archive.open(info, "w") as target:
                for piece in _pieces(source):
                    digest.update(piece)
                    size += len(piece)
                    target.write(piece)
            rows[name] = _row(name, information, digest.digest(), size)
        text = "".join(rows[name] for name in sorted(rows))
        archive.writestr(_info(record, moment, executable=False), text)


def _info(name: str, moment: tuple[int, ...], *, executable: bool) -> zipfile.ZipInfo:
    year, month, day, hour, minute, second = moment
    info = zipfile.ZipInfo(name, (year, month, day, hour, minute, second))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3
    info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    return info


def _row(name: str, information: str, digest: bytes, size: int) -> str:
    if name in {f"{information}{one}" for one in _NO_HASH}:
        return f"{_quoted(name)},,\n"
    text = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return f"{_quoted(name)},sha256={text},{size}\n"


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    while piece := source.read(_PIECE_BYTES):
        yield piece


def differences(one: Path, other: Path) -> tuple[str, ...]:
    """Return the members of two wheels that differ, nothing where they are the same bytes."""
    if filecmp.cmp(one, other, shallow=False):
        return ()
    first, second = _digests(one), _digests(other)
    names = sorted(first.keys() | second.keys())
    differing = tuple(name for name in names if first.get(name) != second.get(name))
    return differing or ("the archive itself",)


def _digests(wheel: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    with wheel.open("rb") as file, zips.opened(file) as opened:
        for info in opened.infolist():
            digest = hashlib.sha256()
            with opened.open(info) as source:
                for piece in _pieces(source):
                    digest.update(piece)
            found[info.filename] = digest.hexdigest()
    return found
