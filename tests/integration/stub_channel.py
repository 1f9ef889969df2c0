"""A stub channel: real small packages under the names of real records, to drive whole recipes.

Each stub has name, version, build, depends and constrains of the record it stands for, and hashes
and size of its own. `python` is a CPython of this machine, packed; Python packages can be imported
and answer everything with nothing; the compilers call the machine's; the rest holds one file.
"""

import base64
import hashlib
import importlib.util
import json
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import zstandard
from integration.channel_server import SNAPSHOT, ChannelServer, serve, snapshot_mirrors

from envbuild.access import Access
from envbuild.channel import archive, host, local
from envbuild.channel.archive import Member
from envbuild.channel.interpreter import Unfit, ask
from envbuild.packages import CondaPackage
from envbuild.recipe import load
from envbuild.solve import conda

DRIVEN = ("h100-pt24", "h100-pt24-wheel")
"""Recipes that the stubs drive to the end."""

NEEDED = ("3.10", "3.11")
"""Minor versions of the CPythons that their records of `python` need."""

CHANNELS = ("conda-forge", "pytorch", "nvidia", "nvidia/label/cuda-12.4.0")
RECIPES = Path(__file__).parents[2] / "recipes"

_ANYTHING = (Path(__file__).parents[1] / "data" / "stubs" / "anything.py.txt").read_text()
SOLVED_AT = datetime(2026, 12, 1, tzinfo=UTC)

# Record to distribution and module, where they differ.
_DISTRIBUTIONS = {"pytorch": "torch", "torchtriton": "triton", "pyyaml": "PyYAML"}
_MODULES = {"pyyaml": "yaml", "pytorch": "torch", "torchtriton": "triton"}
_NO_DISTRIBUTION = frozenset({"cpython", "python_abi"})

_TORCH = """
from torch.version import __version__


def _false(*_, **__):
    return False


class cuda(Thing):
    is_available = staticmethod(_false)
    device_count = staticmethod(lambda: 0)
    is_initialized = staticmethod(_false)
"""
_TORCH_VERSION = "__version__ = {version!r}\ncuda = {cuda!r}\nhip = None\n"


def records(*recipes: str, cache: Path, where: Path = RECIPES) -> tuple[CondaPackage, ...]:
    """Return the records that recipes lock against the snapshot, each once, sorted by address.

    Args:
        recipes: Names of recipes.
        cache: Folder for the channels' indexes.
        where: Folder of the recipes.
    """
    found: dict[str, CondaPackage] = {}
    with serve(SNAPSHOT) as server:
        access = Access(channel_mirrors=snapshot_mirrors(server))
        for name in recipes:
            loaded = load.load(name, [where])
            platforms = loaded.recipe.target.platforms
            solved = conda.half(
                loaded, platforms, cutoff=SOLVED_AT, prefer={}, access=access, cache=cache
            ).platforms
            found |= {package.url: package for half in solved.values() for package in half}
    return tuple(found[url] for url in sorted(found))


def pythons(*, search: str = "/usr/local/bin:/usr/bin") -> dict[str, Path]:
    """Return the CPythons of this machine by minor version (`3.11`), pyenv's first."""
    found: dict[str, Path] = {}
    versions = sorted(Path.home().glob(".pyenv/versions/3.1*/bin/python"))
    for path in (*versions, *(p for f in search.split(":") for p in Path(f).glob("python3.1?"))):
        try:
            python = ask(path)
        except Unfit:
            continue
        found.setdefault(python.minor, path)
    return found


def build(packages: Iterable[CondaPackage], folder: Path, *, pythons: Mapping[str, Path]) -> None:
    """Write an indexed channel tree `folder/CHANNEL/SUBDIR/FILE` of stubs.

    Args:
        packages: Records of the snapshot.
        folder: Where; made if missing.
        pythons: Interpreters by minor version, for the records of `python`.

    Raises:
        KeyError: A record of `python` has a minor version without interpreter.
    """
    by_channel: defaultdict[str, list[CondaPackage]] = defaultdict(list)
    for package in packages:
        by_channel[urlsplit(package.channel_url).path.strip("/")].append(package)
    for channel in {*CHANNELS, *by_channel}:
        root = folder / channel
        (root / "linux-64").mkdir(parents=True, exist_ok=True)
        weak: set[str] = set()
        for package in by_channel.get(channel, ()):
            (root / package.subdir).mkdir(exist_ok=True)
            record = _snapshot(channel, package.subdir)[package.filename]
            if "sha256" not in record:
                weak.add(package.filename)
            _stub(package, record, root / package.subdir / package.filename, pythons)
        for index in local.index(root):
            _forget_sha256(index, weak)


def mirrors(server: ChannelServer) -> dict[str, tuple[str, ...]]:
    """Return the mirror setting that serves the stub channel from this server."""
    return {channel: (f"{server.url}/{channel}",) for channel in CHANNELS}


@cache
def _snapshot(channel: str, subdir: str) -> dict[str, dict[str, Any]]:
    packed = (SNAPSHOT / channel / subdir / "repodata.json.zst").read_bytes()
    data = json.loads(zstandard.ZstdDecompressor().decompressobj().decompress(packed))
    return {**data["packages"], **data["packages.conda"]}


def _forget_sha256(index: Path, filenames: set[str]) -> None:
    """Publish only the md5 of stubs whose record has no more."""
    data = json.loads(index.read_text())
    for kind in ("packages", "packages.conda"):
        for filename in filenames & set(data[kind]):
            del data[kind][filename]["sha256"]
    index.write_text(json.dumps(data, indent=1, sort_keys=True))


def _stub(
    package: CondaPackage, record: Mapping[str, Any], to: Path, pythons: Mapping[str, Path]
) -> None:
    index = {key: value for key, value in record.items() if key not in {"md5", "sha256", "size"}}
    info: dict[str, str] = {}
    if index.get("noarch") == "python":
        link = {"noarch": {"type": "python"}, "package_metadata_version": 1}
        info["link.json"] = json.dumps(link)
    with tempfile.TemporaryDirectory() as scratch:
        archive.write(to, _members(package, index, pythons, Path(scratch)), index=index, info=info)


def _members(
    package: CondaPackage, index: Mapping[str, Any], pythons: Mapping[str, Path], scratch: Path
) -> Iterator[Member]:
    yield Member(path=f"share/stubs/{package.name}.txt", content=f"{package.filename}\n".encode())
    if package.name == "python":
        minor = ".".join(package.version.split(".")[:2])
        yield from _python(pythons[minor], scratch)
    elif package.name in {"gcc_impl_linux-64", "gxx_impl_linux-64"}:
        yield from _compiler("g++" if package.name.startswith("gxx") else "gcc")
    elif _is_python(index) and package.name not in _NO_DISTRIBUTION:
        yield from _distribution(package, _site_packages(index))


def _is_python(index: Mapping[str, Any]) -> bool:
    return any(spec.split()[0] in {"python", "python_abi"} for spec in index["depends"])


def _site_packages(index: Mapping[str, Any]) -> str:
    """Return where a package's modules go; the linker finds the place of a `noarch` one."""
    if index.get("noarch") == "python":
        return "site-packages"
    for spec in index["depends"]:
        name, _, rest = spec.partition(" ")
        if name == "python_abi":
            return f"lib/python{rest.split('.*')[0].split()[0]}/site-packages"
        if name == "python" and rest.startswith(">="):
            return f"lib/python{'.'.join(rest[2:].split(',')[0].split('.')[:2])}/site-packages"
    message = f"{index['name']}: no Python version in {index['depends']}"
    raise ValueError(message)


def _compiler(name: str) -> Iterator[Member]:
    """Yield the compiler under conda's name, as a script that calls the machine's."""
    script = f'#!/bin/sh\nexec {name} "$@"\n'.encode()
    yield Member(path=f"bin/x86_64-conda-linux-gnu-{name}", content=script, mode=0o755)


def _distribution(package: CondaPackage, folder: str) -> Iterator[Member]:
    """Yield an importable package with metadata that pip, uv and importlib read."""
    module = _MODULES.get(package.name, package.name)
    name = _DISTRIBUTIONS.get(package.name, package.name)
    files = dict(_modules(package, module))
    files[f"{name}-{package.version}.dist-info/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {package.version}\n"
    )
    files[f"{name}-{package.version}.dist-info/INSTALLER"] = "conda\n"
    rows = (
        f"{path},sha256={_record_hash(text)},{len(text.encode())}" for path, text in files.items()
    )
    record = f"{name}-{package.version}.dist-info/RECORD"
    files[record] = "\n".join((*rows, f"{record},,", ""))
    for path, text in sorted(files.items()):
        yield Member(path=f"{folder}/{path}", content=text.encode())


def _record_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _modules(package: CondaPackage, module: str) -> Iterator[tuple[str, str]]:
    if module == "typing_extensions":
        yield "typing_extensions.py", _source("typing_extensions")
    elif module == "torch":
        version = _TORCH_VERSION.format(version=package.version, cuda="12.4")
        yield "torch/version.py", version
        yield "torch/__init__.py", f"{_ANYTHING}{_TORCH}"
    else:
        version = f"__version__ = {package.version!r}\n"
        yield f"{module}/__init__.py", f"{_ANYTHING}\n{version}"


def _source(module: str) -> str:
    """Return the source of a module that runs beside us: some must work, not only be there."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text()


def _python(interpreter: Path, scratch: Path) -> Iterator[Member]:
    """Yield the members of a packed interpreter of this machine."""
    _, packed = host.pack(ask(interpreter), scratch)
    with zipfile.ZipFile(packed) as whole:
        parts = {name.split("-")[0]: name for name in whole.namelist()}
        info = _extract(whole, parts["info"])
        listed = json.loads(info["info/paths.json"].content)["paths"]
        placeholders = {row["_path"]: row.get("prefix_placeholder", "") for row in listed}
        for path, member in _extract(whole, parts["pkg"]).items():
            yield Member(
                path=path,
                content=member.content,
                mode=member.mode,
                link=member.link,
                placeholder=placeholders[path],
            )


def _extract(whole: zipfile.ZipFile, name: str) -> dict[str, Member]:
    members: dict[str, Member] = {}
    with (
        whole.open(name) as entry,
        zstandard.ZstdDecompressor().stream_reader(entry) as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        for found in tar:
            file = tar.extractfile(found) if found.isreg() else None
            content = file.read() if file else found.linkname.encode()
            members[found.name] = Member(
                path=found.name, content=content, mode=found.mode, link=found.issym()
            )
    return members
