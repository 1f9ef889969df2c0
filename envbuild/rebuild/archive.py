"""A built wheel, written anew: with a local version, in one order, with fixed times and modes."""

import base64
import hashlib
import re
import stat
import time
import zipfile
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from envbuild.errors import ToolFailed
from envbuild.native import zips

_OLDEST = 315532800
"""1980, before which a zip archive has no time."""

_VERSION = re.compile(r"(?m)^Version:.*$")
_BUILD = re.compile(r"(?m)^Build:.*\n?")
_NO_HASH = ("RECORD", "RECORD.jws", "RECORD.p7s")


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
    try:
        _, version, _, _ = parse_wheel_filename(wheel.name)
        new = _localized(version, local)
        parts = wheel.name.split("-")
        tags = parts[-3:]
        old_stem = f"{parts[0]}-{parts[1]}"
        stem = f"{parts[0]}-{new}"
        with wheel.open("rb") as file, zips.opened(file) as opened:
            members = {
                _renamed(info.filename, old_stem, stem): (opened.read(info), _executable(info))
                for info in opened.infolist()
                if not info.is_dir()
            }
        metadata, own = (f"{stem}.dist-info/{name}" for name in ("METADATA", "WHEEL"))
        text, declared = (members[name][0].decode() for name in (metadata, own))
    except (InvalidWheelFilename, zips.HostileArchive, zipfile.BadZipFile, KeyError) as error:
        message = f"{wheel.name}: what was built is no wheel: {error}"
        raise ToolFailed(message) from error
    members[metadata] = (_VERSION.sub(f"Version: {new}", text, count=1).encode(), False)
    if build:
        declared = _BUILD.sub("", declared).rstrip("\n") + f"\nBuild: {build}\n"
        members[own] = (declared.encode(), False)
    record = f"{stem}.dist-info/RECORD"
    members[record] = (_record(members, record), False)
    path = folder / "-".join([stem, *([f"{build}"] if build else []), *tags])
    _write(path, members, record, epoch)
    return path


def _localized(version: Version, local: str) -> str:
    return f"{version}.{local}" if version.local else f"{version}+{local}"


def _renamed(name: str, old: str, new: str) -> str:
    for ending in (".dist-info/", ".data/"):
        if name.startswith(f"{old}{ending}"):
            return f"{new}{name.removeprefix(old)}"
    return name


def _executable(info: zipfile.ZipInfo) -> bool:
    return bool((info.external_attr >> 16) & stat.S_IXUSR)


def _record(members: dict[str, tuple[bytes, bool]], own: str) -> bytes:
    folder = own.removesuffix("RECORD")
    bare = {f"{folder}{name}" for name in _NO_HASH}
    rows = []
    for name in sorted({*members, own}):
        if name in bare:
            rows.append(f"{_quoted(name)},,\n")
            continue
        digest = base64.urlsafe_b64encode(hashlib.sha256(members[name][0]).digest())
        text = digest.rstrip(b"=").decode()
        rows.append(f"{_quoted(name)},sha256={text},{len(members[name][0])}\n")
    return "".join(rows).encode()


def _quoted(name: str) -> str:
    if any(letter in name for letter in ',"\r\n'):
        doubled = name.replace('"', '""')
        return f'"{doubled}"'
    return name


def _write(path: Path, members: dict[str, tuple[bytes, bool]], record: str, epoch: int) -> None:
    """Write the members in order; what belongs to the dist-info comes last, RECORD at the end."""
    information = record.removesuffix("RECORD")

    def order(name: str) -> tuple[bool, bool, str]:
        return name == record, name.startswith(information), name

    moment = time.gmtime(max(epoch, _OLDEST))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in sorted(members, key=order):
            data, executable = members[name]
            info = zipfile.ZipInfo(name, moment)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
            archive.writestr(info, data)


def differences(one: Path, other: Path) -> tuple[str, ...]:
    """Return the members of two wheels that differ, nothing where they are the same bytes."""
    if one.read_bytes() == other.read_bytes():
        return ()
    first, second = _digests(one), _digests(other)
    names = sorted(first.keys() | second.keys())
    differing = tuple(name for name in names if first.get(name) != second.get(name))
    return differing or ("the archive itself",)


def _digests(wheel: Path) -> dict[str, str]:
    with wheel.open("rb") as file, zips.opened(file) as opened:
        return {
            info.filename: hashlib.sha256(opened.read(info)).hexdigest()
            for info in opened.infolist()
        }
