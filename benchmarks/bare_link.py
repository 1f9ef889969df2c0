"""py-rattler alone linking the conda half of a lock, from its own cache once that is warm.

Usage: bare_link.py CONDA_LOCK_YML MIRROR_URL CACHE_FOLDER PREFIX
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import rattler
import yaml
from rattler.networking import Client, MirrorMiddleware


def record(row: dict[str, Any]) -> rattler.RepoDataRecord:
    """Return the record of one row of the lock."""
    url = row["url"]
    channel, subdir, filename = url.rsplit("/", 2)
    build = filename.removesuffix(".conda").removesuffix(".tar.bz2").rsplit("-", 1)[1]
    hashes = row["hash"]
    package = rattler.PackageRecord(
        name=rattler.PackageName(row["name"]),
        version=rattler.VersionWithSource(row["version"]),
        build=rattler.package.BuildString(build),
        build_number=0,
        subdir=subdir,
        sha256=bytes.fromhex(hashes["sha256"]),
        md5=bytes.fromhex(hashes["md5"]),
    )
    return rattler.RepoDataRecord(package, filename, url, channel)


async def link(rows: list[dict[str, Any]], mirror: str, cache: Path, prefix: Path) -> None:
    """Install the record of every row."""
    client = Client([MirrorMiddleware({rattler.Channel("conda-forge").base_url: [mirror]})])
    await rattler.install(
        [record(row) for row in rows],
        prefix,
        cache_dir=cache,
        client=client,
        show_progress=False,
        platform=rattler.Subdir("linux-64"),
    )


if __name__ == "__main__":
    locked = yaml.load(Path(sys.argv[1]).read_text(), yaml.CSafeLoader)["package"]
    asyncio.run(link(locked, sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])))
    os._exit(0)  # finalizing the interpreter after a call of the engine aborts now and then
