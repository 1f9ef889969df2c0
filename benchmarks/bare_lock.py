"""The bare engines doing what a lock of h100-pt24-wheel asks of them: one solve, one compile.

Usage: bare_lock.py MIRROR_URL CACHE_FOLDER UV CUTOFF < requirements.in
"""

import asyncio
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import rattler
from rattler.networking import Client, MirrorMiddleware

SPECS = ("python 3.11.*", "gxx_linux-64 12.*")


async def solve(mirror: str, cache: Path, cutoff: datetime) -> list[str]:
    """Solve the conda half and return `name version` of its records."""
    channel = rattler.Channel("conda-forge")
    client = Client([MirrorMiddleware({channel.base_url: [mirror]})])
    records = await rattler.solve(
        [channel],
        [rattler.MatchSpec(spec) for spec in SPECS],
        gateway=rattler.Gateway(cache_dir=cache / "repodata", client=client),
        platforms=["linux-64", "noarch"],
        virtual_packages=[
            rattler.GenericVirtualPackage(
                rattler.PackageName(name),
                rattler.Version(version),
                rattler.package.BuildString(build),
            )
            for name, version, build in (
                ("__unix", "0", "0"),
                ("__linux", "0", "0"),
                ("__glibc", "2.28", "0"),
                ("__cuda", "12.1", "0"),
            )
        ],
        exclude_newer=cutoff,
    )
    return [f"{record.name.normalized} {record.version}" for record in records]


def main() -> None:
    """Do both and print how many packages each gave."""
    mirror, cache, uv, cutoff_text = sys.argv[1:]
    cutoff = datetime.fromisoformat(cutoff_text)
    records = asyncio.run(solve(mirror, Path(cache), cutoff))
    compiled = subprocess.run(
        [
            *(uv, "pip", "compile", "--quiet", "--no-header", "--generate-hashes"),
            *("--cache-dir", f"{cache}/uv", "--python", sys.executable, "--no-python-downloads"),
            *("--python-version", "3.11.15", "--python-platform", "x86_64-manylinux_2_28"),
            *("--only-binary", ":all:", "--exclude-newer", cutoff_text, "-"),
        ],
        stdin=sys.stdin,
        capture_output=True,
        text=True,
        check=True,
    )
    print(len(records), compiled.stdout.count("=="))
    sys.stdout.flush()
    os._exit(0)  # finalizing the interpreter after a solve ends in SIGABRT now and then


if __name__ == "__main__":
    main()
