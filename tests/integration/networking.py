"""What the tests of faults share: a small channel, an index, and a project that reaches both."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from integration.channel_server import ChannelServer, serve
from integration.index_server import Index, IndexServer, serving, wheel
from integration.packages import File, make_package, write_index

CHANNEL = "https://channel.invalid/main"
INDEXES = ("repodata.json", "repodata.json.zst", "repodata.json.bz2", "repodata_shards.msgpack.zst")
BOTH = f"""\
name: net
python: "3.11"
channels: [{CHANNEL}]
conda: [beta]
pypi: [app]
"""
CONDA = f"""\
name: net
channels: [{CHANNEL}]
conda: [alpha]
"""
WHEELS = """\
name: net
python: ">=3.11,<3.15"
channels: [host]
pypi: [app]
"""
QUICK = {"ENVBUILD_HTTP_TIMEOUT": "1", "ENVBUILD_HTTP_RETRIES": "1"}


@dataclass(kw_only=True)
class Network:
    """A project, and the channel and index that it reaches.

    Attributes:
        root: The project's folder, with its store.
        channel: The server of the channel.
        index: The server of the index.
        variables: What the command line sees beside `PATH`.
    """

    root: Path
    channel: ChannelServer
    index: IndexServer
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def wheels(self) -> Index:
        index = self.index.indexes["main"]
        assert isinstance(index, Index)
        return index

    @property
    def lock_files(self) -> dict[str, bytes]:
        """Return the lock's files, hidden ones included."""
        folder = self.root / "lockfiles/net"
        return {path.name: path.read_bytes() for path in sorted(folder.glob("*"))}

    @property
    def place(self) -> Path:
        """The environment's folder in the store."""
        return self.root / "store/envs/net"

    def write(self, recipe: str) -> None:
        (self.root / "recipes").mkdir(parents=True, exist_ok=True)
        (self.root / "recipes/net.yaml").write_text(recipe)

    def run(
        self,
        *words: str,
        variables: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a command line in the project, with nothing of our own environment but PATH.

        `before` stands before it (what keeps it from something).
        """
        return subprocess.run(
            [*before, sys.executable, "-m", "envbuild", *words],
            cwd=self.root,
            env={
                "PATH": os.environ["PATH"],
                "LANG": "C.UTF-8",
                "HOME": f"{self.root / 'home'}",
                "ENVBUILD_STORE": f"{self.root / 'store'}",
                "ENVBUILD_COMPILE": "0",
                "ENVBUILD_CHANNEL_MIRRORS": f"{CHANNEL}={self.channel.url}",
                "UV_DEFAULT_INDEX": self.index.url("main"),
                **QUICK,
                **self.variables,
                **(variables or {}),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def good(self, *words: str, variables: Mapping[str, str] | None = None) -> str:
        """Run a command that succeeds, and return what it says."""
        done = self.run(*words, variables=variables)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def refused(self, *words: str, variables: Mapping[str, str] | None = None) -> str:
        """Run a command that the network fails, and return its one line."""
        done = self.run("-q", *words, variables=variables)
        assert done.returncode == 8, done.stderr
        assert done.stdout == ""
        error, hint = done.stderr.splitlines()
        assert error.startswith("error: "), done.stderr
        assert hint.startswith("hint: "), done.stderr
        return error


@contextlib.contextmanager
def network(root: Path) -> Iterator[Network]:
    """Serve a channel of small packages and an index of small wheels; yield a project."""
    folder = root / "channel"
    content = {"share/text": File(content=bytes(range(256)) * 40)}
    write_index(
        folder,
        [
            make_package(folder, "python", "3.11.9"),
            make_package(folder, "alpha", content=content),
            make_package(folder, "beta", content=content),
            make_package(folder, "gamma", subdir="noarch", content=content),
        ],
    )
    filler = {"leaf.py": "VERSION = 1\n", "leaf_data.txt": "0123456789" * 300}
    index = Index(
        wheels=[
            wheel("app", "1", requires=["leaf"]),
            wheel("leaf", "1", files=filler),
            wheel("other", "1"),
        ]
    )
    with serve(folder) as channel, serving(main=index) as server:
        yield Network(root=root, channel=channel, index=server)
