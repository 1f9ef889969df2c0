"""The crates that Rust sources are built with: fetched before the build, as their Cargo.lock says.

::

    SOURCES/crates/DIGEST/record.json   what was fetched for the sources of that digest
    SOURCES/crates/DIGEST/vendor/       the crates, as `cargo vendor` lays them out

cargo fetches, through the user's own registry settings and logins, and checks each crate against
Cargo.lock. It runs beside the sources, not in them: what they set in `.cargo` counts in the build
alone. Sources that bring their crates along (`[source]` in `.cargo/config.toml`) need none fetched.
"""

import json
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envbuild.errors import FetchError, InputError, ToolFailed
from envbuild.progress import Progress
from envbuild.rebuild.rust import Rust
from envbuild.tools.files import make_folder, write_atomic
from envbuild.tools.run import Runner, base_environment, run
from envbuild.tools.scratch import scratch

_VENDOR = "vendor"
_RECORD = "record.json"
_NOT_READ = (".cargo", "rust-toolchain", "rust-toolchain.toml", ".git")


@dataclass(frozen=True, kw_only=True, slots=True)
class Crate:
    """A crate.

    Attributes:
        uri: Where it is from: a package URL, or its git repository.
        kind: `sha256`, or `gitCommit`.
        digest: That digest, as Cargo.lock has it.
    """

    uri: str
    kind: str
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Crates:
    """The crates of some sources.

    Attributes:
        listed: Each crate, sorted.
        folder: Where they lie, one folder each.
        settings: What cargo has to be told to take them from `vendor`, as TOML.
    """

    listed: tuple[Crate, ...]
    folder: Path
    settings: str

    def place(self, folder: Path, home: Path, *, seen: Path) -> None:
        """Copy them into a build.

        Args:
            folder: Where they are put.
            home: The home directory of the build, which gets cargo's settings.
            seen: Where the build sees the folder.
        """
        shutil.copytree(self.folder, folder, symlinks=True)
        make_folder(home / ".cargo")
        settings = self.settings.replace(f'"{_VENDOR}"', json.dumps(f"{seen}"))
        write_atomic(home / ".cargo/config.toml", settings)


def fetch(
    placed: Path,
    digest: str,
    rust: Rust,
    *,
    cache: Path,
    offline: bool,
    own: Mapping[str, str],
    progress: Progress,
    runner: Runner = run,
) -> Crates | None:
    """Fetch the crates of sources, unless they are here already; None where they bring them along.

    Args:
        placed: The sources.
        digest: Their digest.
        rust: Whose cargo fetches.
        cache: The folder of fetched sources.
        offline: Whether only what is here may be used.
        own: Variables that cargo needs (HOME, CARGO_HOME, proxies).
        progress: Is told what is fetched.
        runner: Starts cargo.

    Raises:
        FetchError: They cannot be had, or are not those of Cargo.lock.
        InputError: The sources have no Cargo.lock, or one that cannot be read.
    """
    if _brought(placed):
        return None
    locks = sorted(placed.rglob("Cargo.lock"), key=lambda path: (len(path.parts), path))
    if not locks:
        message = f"{placed.name}: Rust sources without a Cargo.lock: nothing says which crates"
        hint = "name an `archive` that has one (cargo generate-lockfile) under build.packages"
        raise InputError(message, source=f"{placed}", hint=hint)
    listed = tuple(
        sorted({one for path in locks for one in _listed(path)}, key=lambda one: one.uri)
    )
    folder = cache / "crates" / digest
    settings = _recorded(folder / _RECORD)
    if settings is None:
        if offline:
            message = f"{placed.name}: its {len(listed)} crates are not in the cache"
            raise FetchError(message, hint="run it once without --offline")
        progress.step(f"fetching {len(listed)} crates of {placed.name}")
        make_folder(folder.parent)
        with scratch(folder.parent) as (new, _):
            tree = new / "tree"
            shutil.copytree(placed, tree, symlinks=True, ignore=shutil.ignore_patterns(*_NOT_READ))
            manifests = [tree / path.relative_to(placed).with_name("Cargo.toml") for path in locks]
            settings = _vendor(manifests, new, rust, own, runner, placed.name)
            make_folder(new / "made" / _VENDOR)
            if (new / _VENDOR).is_dir():
                (new / _VENDOR).replace(new / "made" / _VENDOR)
            write_atomic(new / "made" / _RECORD, json.dumps({"settings": settings}) + "\n")
            shutil.rmtree(folder, ignore_errors=True)
            (new / "made").rename(folder)
    return Crates(listed=listed, folder=folder / _VENDOR, settings=settings)


def _vendor(
    manifests: Sequence[Path],
    folder: Path,
    rust: Rust,
    own: Mapping[str, str],
    runner: Runner,
    name: str,
) -> str:
    """Let cargo fetch into a folder `vendor`, and return what it says that cargo has to be told."""
    argv = [f"{rust.cargo}", "vendor", "--locked", "--versioned-dirs"]
    argv += ["--respect-source-config", "--manifest-path", f"{manifests[0]}"]
    argv += [word for path in manifests[1:] for word in ("--sync", f"{path}")]
    environment = {**base_environment(), **own, "RUSTC": f"{rust.rustc}"}
    try:
        return runner([*argv, _VENDOR], env=environment, cwd=folder).stdout
    except ToolFailed as error:
        said = error.last_line
        message = f"{name}: cargo cannot fetch the crates that its build needs: {said}"
        hint = (
            "see whether cargo reaches their registry, or name a mirror in ~/.cargo/config.toml; "
            "or name an `archive` with `cargo vendor` done in it under build.packages"
        )
        raise FetchError(message, hint=hint, details=error.details) from error


def _brought(placed: Path) -> bool:
    """Say whether the sources take crates from a folder of theirs."""
    for name in ("config.toml", "config"):
        path = placed / ".cargo" / name
        if path.is_file() and any("replace-with" in one for one in _sources(_read(path))):
            return True
    return False


def _sources(told: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    found = told.get("source", {})
    yield from (one for one in found.values() if isinstance(one, dict))


def _listed(lock: Path) -> Iterator[Crate]:
    for row in _read(lock).get("package", []):
        where, _, commit = str(row.get("source", "")).partition("#")
        if where.startswith("git+"):
            yield Crate(uri=where, kind="gitCommit", digest=commit)
        elif where and "checksum" in row:
            uri = f"pkg:cargo/{row['name']}@{row['version']}"
            yield Crate(uri=uri, kind="sha256", digest=str(row["checksum"]))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        message = f"{path.parent.name}/{path.name}: {error}"
        raise InputError(message, source=f"{path}") from error


def _recorded(path: Path) -> str | None:
    try:
        return str(json.loads(path.read_bytes())["settings"])
    except (OSError, ValueError, KeyError):
        return None
