"""A lock's files: `conda-lock.yml` (v1) and one `requirements.PLATFORM.txt` per platform.

`conda-lock.yml` is read by conda-lock, conda and micromamba as it is. Its
`metadata.custom_metadata`, a map from text to text, holds what its format has no place for:

======================== ==========================================================================
`lock_format`            number of this layout
`name`                   the recipe's name
`solve_digest`           also the `content_hash` of every platform
`cutoff`                 the instant of the solve
`python`                 `host RANGE` in locks on the host's Python
`compiler`               the recipe's `build.compiler`
`link_scripts`           packages whose link scripts may run
`uncut_indexes`          indexes without a cutoff
`asked.SECTION`          what the recipe asked for, see `envbuild.lock.digest.asked`
`requirements.PLATFORM`  SHA-256 of the body of `requirements.PLATFORM.txt`
`download.PLATFORM`      bytes of all archives and wheels, where all are known
`size:PLATFORM/FILENAME` bytes of an archive whose channel publishes only md5
======================== ==========================================================================
"""

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from envbuild.errors import LockError
from envbuild.lock import requirements, yaml_text
from envbuild.lock.model import CONDA_FILE, Lock, LockTexts, PlatformLock, requirements_file
from envbuild.lock.yaml_text import Mapping, Value, scalar
from envbuild.packages import CondaPackage, PipPackage
from envbuild.target import PLATFORMS, Platform

LOCK_FORMAT: Final = "1"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_MD5: Final = re.compile(r"[0-9a-f]{32}")
_SEPARATOR: Final = ", "
_TOP_KEYS: Final = frozenset({"version", "metadata", "package"})
_PACKAGE_KEYS: Final = frozenset(
    {
        "name",
        "version",
        "manager",
        "platform",
        "dependencies",
        "url",
        "hash",
        "build",
        "category",
        "optional",
    }
)


def dumps(lock: Lock) -> LockTexts:
    """Return the texts of a lock's files; equal locks give equal bytes.

    Raises:
        LockError: A record has no md5, which the format insists on.
    """
    texts = {
        requirements_file(half.platform): requirements.dumps(
            lock.name, half.pip, platform=None if lock.host_python is not None else half.platform
        )
        for half in lock.platforms
    }
    return LockTexts(files={CONDA_FILE: "".join(f"{line}\n" for line in _lines(lock)), **texts})


def loads(texts: LockTexts, *, source: str) -> Lock:
    """Return the lock that the texts hold.

    Args:
        texts: Name of each file to its text.
        source: The folder, for messages.

    Raises:
        LockError: A file is missing, damaged, edited by hand, or of a newer format; says where.
    """
    name = f"{source}/{CONDA_FILE}"
    text = _text_of(texts, CONDA_FILE, source=source)
    top = yaml_text.read(text, source=name).mapping()
    if top.text("version") != "1":
        raise top.get("version").refusal(what="only version 1 of conda-lock's format is read")
    metadata = top.get("metadata").mapping()
    if "custom_metadata" not in metadata.entries:
        raise metadata.value.refusal(what="not a lock of envbuild: there is no custom_metadata")
    custom = metadata.get("custom_metadata").mapping()
    if custom.text("lock_format") != LOCK_FORMAT:
        raise custom.get("lock_format").refusal(
            what=f"this envbuild reads lock format {LOCK_FORMAT}; take the envbuild that wrote it"
        )
    top.value.mapping(known=_TOP_KEYS)
    conda = _conda_halves(top.get("package"), custom)
    platforms = tuple(map(_platform, metadata.get("platforms").items()))
    if unlisted := set(conda) - set(platforms):
        raise metadata.get("platforms").refusal(
            what=f"{min(unlisted)} has packages but is not listed"
        )
    halves = tuple(
        PlatformLock(
            platform=platform,
            conda=tuple(conda.get(platform, {}).values()),
            pip=_pip_half(texts, platform, custom, source=source),
            download_bytes=_bytes(custom, _download_key(platform)),
        )
        for platform in platforms
    )
    return _lock(metadata, custom, halves)


def read(folder: Path) -> Lock:
    """Read the lock in a folder (`lockfiles/NAME`).

    Raises:
        LockError: There is none, or it is damaged.
    """
    texts: dict[str, str] = {}
    for name in (CONDA_FILE, *map(requirements_file, PLATFORMS)):
        path = folder / name
        try:
            texts[name] = _decoded(path.read_bytes(), source=str(path))
        except FileNotFoundError:
            continue
        except OSError as error:
            message = f"{path}: cannot be read: {error.strerror}"
            raise LockError(message, source=str(path)) from error
    return loads(LockTexts(files=texts), source=str(folder))


def _decoded(data: bytes, *, source: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"{source}:{line}: not UTF-8 text"
        raise LockError(message, source=source, where=str(line)) from error


def _lines(lock: Lock) -> Iterator[str]:
    yield f"# The lock of {lock.name}, written by `envbuild lock {lock.name}`; not to be edited."
    yield "# conda-lock's format, version 1: conda-lock, conda and micromamba read this conda half;"
    yield "# the PyPI half is in requirements.PLATFORM.txt beside it."
    yield "version: 1"
    yield "metadata:"
    yield "  content_hash:" if lock.platforms else "  content_hash: {}"
    for half in lock.platforms:
        yield f"    {half.platform}: {scalar(lock.solve_digest)}"
    yield "  channels:" if lock.channels else "  channels: []"
    for channel in lock.channels:
        yield f"  - url: {scalar(channel)}"
        yield "    used_env_vars: []"
    yield "  platforms:" if lock.platforms else "  platforms: []"
    for half in lock.platforms:
        yield f"  - {half.platform}"
    yield "  sources:"
    yield f"  - {scalar(f'{lock.name}.yaml')}"
    yield "  custom_metadata:"
    for key, value in _custom(lock).items():
        yield f"    {scalar(key)}: {scalar(value)}"
    yield "package:" if any(half.conda for half in lock.platforms) else "package: []"
    for half in lock.platforms:
        for package in half.conda:
            yield from _package_lines(half.platform, package)


def _custom(lock: Lock) -> dict[str, str]:
    custom = {
        "lock_format": LOCK_FORMAT,
        "name": lock.name,
        "solve_digest": lock.solve_digest,
        "cutoff": lock.cutoff.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }
    if lock.host_python is not None:
        custom["python"] = f"host {lock.host_python}".rstrip()
    if lock.compiler is not None:
        custom["compiler"] = lock.compiler
    if lock.link_scripts:
        custom["link_scripts"] = _SEPARATOR.join(lock.link_scripts)
    if lock.uncut_indexes:
        custom["uncut_indexes"] = _SEPARATOR.join(lock.uncut_indexes)
    custom |= {f"asked.{section}": content for section, content in lock.asked}
    for half in lock.platforms:
        custom[f"requirements.{half.platform}"] = _sha256(requirements.body(half.pip))
        if half.download_bytes is not None:
            custom[_download_key(half.platform)] = str(half.download_bytes)
    for half in lock.platforms:
        custom |= {
            _size_key(half.platform, package.url): str(package.size)
            for package in half.conda
            if package.size is not None
        }
    return custom


def _download_key(platform: Platform) -> str:
    return f"download.{platform}"


def _bytes(custom: Mapping, key: str) -> int | None:
    text = custom.optional(key)
    if text is not None and not text.isdecimal():
        raise custom.get(key).refusal(what="expected a number of bytes")
    return None if text is None else int(text)


def _size_key(platform: Platform, url: str) -> str:
    return f"size:{platform}/{url.rsplit('/', 1)[-1]}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _package_lines(platform: Platform, package: CondaPackage) -> Iterator[str]:
    if package.md5 is None:
        message = f"{package.url} has no md5 in its channel, which conda-lock.yml insists on"
        raise LockError(message, hint="index that channel anew, so that its records have one")
    yield f"- name: {scalar(package.name)}"
    yield f"  version: {scalar(package.version)}"
    yield "  manager: conda"
    yield f"  platform: {platform}"
    yield "  dependencies:" if package.depends else "  dependencies: {}"
    for depend in package.depends:
        name, _, spec = depend.partition(" ")
        yield f"    {scalar(name)}: {scalar(spec)}"
    yield f"  url: {scalar(package.url)}"
    yield "  hash:"
    yield f"    md5: {scalar(package.md5)}"
    if package.sha256 is not None:
        yield f"    sha256: {scalar(package.sha256)}"
    if _build_in(package.filename, package.name, package.version) != package.build:
        yield f"  build: {scalar(package.build)}"
    yield "  category: main"
    yield "  optional: false"


def _build_in(filename: str, name: str, version: str) -> str | None:
    """Return the build in a file's name (`NAME-VERSION-BUILD.conda`), None if there is none."""
    stem = filename.removesuffix(".conda").removesuffix(".tar.bz2")
    start = f"{name}-{version}-"
    return stem.removeprefix(start) if stem.startswith(start) and stem != filename else None


def _text_of(texts: LockTexts, name: str, *, source: str) -> str:
    path = f"{source}/{name}"
    if name not in texts.files:
        message = f"{path}: there is no such file"
        raise LockError(message, source=path, hint="`envbuild lock NAME` writes it")
    text = texts.files[name]
    yaml_text.refuse_conflict(text, source=path)
    return text


def _platform(value: Value) -> Platform:
    text = value.text()
    for platform in PLATFORMS:
        if platform == text:
            return platform
    raise value.refusal(what=f"{text!r} is no platform of envbuild ({', '.join(PLATFORMS)})")


def _conda_halves(rows: Value, custom: Mapping) -> dict[Platform, dict[str, CondaPackage]]:
    halves: dict[Platform, dict[str, CondaPackage]] = {}
    for row in rows.items():
        entries = row.mapping(known=_PACKAGE_KEYS)
        if entries.text("manager") != "conda":
            raise entries.get("manager").refusal(what="only conda packages stand in this file")
        platform = _platform(entries.get("platform"))
        package = _conda(entries, platform, custom)
        half = halves.setdefault(platform, {})
        if package.name in half:
            raise row.refusal(what=f"{package.name} stands twice for {platform}")
        half[package.name] = package
    return halves


def _conda(row: Mapping, platform: Platform, custom: Mapping) -> CondaPackage:
    url = row.text("url")
    if url.count("/") < 2 or url.split("/")[-2] not in {platform, "noarch"}:  # noqa: PLR2004
        raise row.get("url").refusal(what=f"the address is not one of a package for {platform}")
    name, version = row.text("name"), row.text("version")
    build = row.optional("build")
    if build is None:
        build = _build_in(url.rsplit("/", 1)[1], name, version)
    if build is None:
        raise row.get("url").refusal(what=f"the file's name does not begin with {name}-{version}-")
    hashes = row.get("hash").mapping(known=frozenset({"md5", "sha256"}))
    return CondaPackage(
        name=name,
        version=version,
        build=build,
        url=url,
        sha256=_hex(hashes, "sha256", _SHA256) if "sha256" in hashes.entries else None,
        md5=_hex(hashes, "md5", _MD5),
        size=_bytes(custom, _size_key(platform, url)),
        depends=tuple(
            f"{key} {value.text()}".rstrip()
            for key, value in row.get("dependencies").mapping().entries.items()
        ),
    )


def _hex(hashes: Mapping, key: str, form: re.Pattern[str]) -> str:
    text = hashes.text(key)
    if form.fullmatch(text):
        return text
    raise hashes.get(key).refusal(what="damaged: not a digest in lower-case hexadecimal")


def _pip_half(
    texts: LockTexts, platform: Platform, custom: Mapping, *, source: str
) -> tuple[PipPackage, ...]:
    name = requirements_file(platform)
    text = _text_of(texts, name, source=source)
    packages = requirements.loads(text, source=f"{source}/{name}")
    if _sha256(requirements.body_of(text)) != custom.text(f"requirements.{platform}"):
        message = f"{source}/{name}: its lines are not those that were locked"
        hint = f"it was edited, or belongs to another {CONDA_FILE}: restore both, or lock again"
        raise LockError(message, source=f"{source}/{name}", hint=hint)
    return packages


def _lock(metadata: Mapping, custom: Mapping, halves: tuple[PlatformLock, ...]) -> Lock:
    digest = custom.text("solve_digest")
    content_hash = metadata.get("content_hash").mapping()
    for value in content_hash.entries.values():
        if value.text() != digest:
            raise value.refusal(what="not the solve digest that custom_metadata holds")
    python = custom.optional("python")
    if python is not None and python.split(" ")[0] != "host":
        raise custom.get("python").refusal(what="expected `host RANGE`")
    return Lock(
        name=custom.text("name"),
        solve_digest=digest,
        cutoff=_cutoff(custom.get("cutoff")),
        channels=tuple(
            channel.mapping().text("url") for channel in metadata.get("channels").items()
        ),
        platforms=halves,
        asked=tuple(
            (key.removeprefix("asked."), value.text())
            for key, value in custom.entries.items()
            if key.startswith("asked.")
        ),
        host_python=None if python is None else python.removeprefix("host").strip(),
        uncut_indexes=_names(custom, "uncut_indexes"),
        compiler=custom.optional("compiler"),
        link_scripts=_names(custom, "link_scripts"),
    )


def _names(custom: Mapping, key: str) -> tuple[str, ...]:
    text = custom.optional(key)
    return tuple(text.split(_SEPARATOR)) if text else ()


def _cutoff(value: Value) -> datetime:
    try:
        cutoff = datetime.fromisoformat(value.text())
    except ValueError as error:
        raise value.refusal(what="expected an instant such as 2026-12-01T00:00:00Z") from error
    if cutoff.tzinfo is None:
        raise value.refusal(what="the instant has no time zone")
    return cutoff.astimezone(UTC)
