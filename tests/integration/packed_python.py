"""The interpreter that tests run on, packed and unpacked once a run, for stores of tests.

Packing it takes most of the time of a small `create`. Tests that are about something else take the
caches from here; those of packing, of what an empty cache means, and of modes pack it themselves.
"""

import fcntl
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from envbuild.access import Access
from envbuild.channel import host
from envbuild.channel.interpreter import ask
from envbuild.progress import Quiet
from envbuild.store.layout import Store
from envbuild.tools import conda_archives


def packed(folder: Path) -> Store:
    """Return a store below `folder` whose caches hold it; one process makes it, others wait."""
    store = Store(root=folder / "store")
    with (folder / "packing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not store.package_cache.exists():
            python = ask(Path(sys.executable))
            record, archive = host.pack(python, store.cache / "host" / python.platform)
            conda_archives.fetch(
                [replace(record, url=archive.as_uri())],
                cache=store.package_cache,
                access=Access(offline=True),
                progress=Quiet(),
                first_digest=lambda _, __: None,
            )
    return store


def give(made: Store, to: Store) -> None:
    """Give a new store what `packed` made, as links: nothing may write into files of a cache."""
    to.cache.mkdir(parents=True)
    for part in (made.cache / "host", made.package_cache):
        subprocess.run(["/bin/cp", "-al", part, to.cache], check=True)
