"""What the measurements run in: channels on localhost, stores, recipes without a smoke test."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

ROOT = Path(__file__).parents[1]
RECIPE = "h100-pt24-wheel"
BIN = Path(sys.executable).parent
"""Where `envbuild` lies; the script itself runs on the same interpreter."""

sys.path.insert(0, str(ROOT / "tests"))
from integration import stub_channel  # noqa: E402 - the tests' helpers are no installed package
from integration.channel_server import serve  # noqa: E402


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """Folders and addresses of one run.

    Attributes:
        folder: Everything that the run writes.
        channels: Value of ENVBUILD_CHANNEL_MIRRORS: the stub channel on localhost.
        conda_forge: Address of its conda-forge.
    """

    folder: Path
    channels: str
    conda_forge: str

    @property
    def store(self) -> Path:
        """The store that stays warm."""
        return self.folder / "store"

    @property
    def locks(self) -> Path:
        """Locks made against the stub channel."""
        return self.folder / "lockfiles"

    @property
    def bare_recipes(self) -> Path:
        """The recipe without its smoke test; its lock is the same."""
        return self.folder / "recipes"

    @property
    def requirements(self) -> Path:
        """The PyPI half of the recipe's lock."""
        return self.locks / RECIPE / "requirements.linux-64.txt"

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a measured command."""
        kept = ("SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
        return {
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "ENVBUILD_STORE": str(self.store),
            "ENVBUILD_CHANNEL_MIRRORS": self.channels,
            **{name: os.environ[name] for name in kept if name in os.environ},
            **more,
        }

    def envbuild(self, *words: str, recipes: Path | None = None) -> tuple[str, ...]:
        """Return an envbuild command on this world's locks."""
        folder = recipes or ROOT / "recipes"
        return (
            *(str(BIN / "envbuild"), "-q", words[0]),
            *("--recipes", str(folder), "--locks", str(self.locks), *words[1:]),
        )


def uv() -> str:
    """Return the path of the uv that envbuild uses."""
    return find_uv_bin()


@contextlib.contextmanager
def world(folder: Path) -> Iterator[World]:
    """Serve the stub channel and yield the world."""
    for name in ("recipes", "home"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    stubs = folder / "stubs"
    if not stubs.is_dir():
        records = stub_channel.records(RECIPE, cache=folder / "repodata")
        stub_channel.build(records, stubs, pythons=stub_channel.pythons())
    text = (ROOT / "recipes" / f"{RECIPE}.yaml").read_text()
    bare = re.sub(r"^smoke:\n(?:  .*\n)+", "", text, flags=re.MULTILINE)
    (folder / "recipes" / f"{RECIPE}.yaml").write_text(bare)
    with serve(stubs) as server:
        mirrors = stub_channel.mirrors(server)
        yield World(
            folder=folder,
            channels=" ".join(f"{name}={urls[0]}" for name, urls in mirrors.items()),
            conda_forge=mirrors["conda-forge"][0],
        )
