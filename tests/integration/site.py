"""A small site for tests of several processes: a served channel, locked recipes, one store.

Recipes `one` … `four` each have a package of their own and share three. Each stands in several
folders (`v1`, `v2` …) with other versions of its own package, so that one environment can have
several generations.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from integration.channel_server import ChannelServer, serve
from integration.packages import File, Made, make_package, program, write_index

from envbuild.store.layout import Store

NAMES = ("one", "two", "three", "four")
SHARED = ("base", "libs", "data")
_CHANNEL = "https://channel.test/small"
_FILES = 40


@dataclass(kw_only=True)
class Site:
    """A project, its channel and its store.

    Attributes:
        root: The project's folder.
        channel: What serves the channel.
        versions: Names of the folders of recipes and locks.
    """

    root: Path
    channel: ChannelServer
    versions: tuple[str, ...]

    @property
    def store(self) -> Store:
        """The store."""
        return Store(root=self.root / "store")

    def variables(self) -> dict[str, str]:
        """Return the whole environment of a command."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.root / "home"),
            "ENVBUILD_STORE": str(self.store.root),
            "ENVBUILD_CHANNEL_MIRRORS": f"{_CHANNEL}={self.channel.url}/channel",
        }

    def create(self, name: str, version: str = "v1") -> tuple[str, ...]:
        """Return the words that create an environment from one folder of recipes and locks."""
        folders = ("--recipes", str(self.root / version), "--locks", str(self.root / version))
        return ("create", name, *folders, "--locked")

    def start(
        self,
        words: Sequence[str],
        *,
        before: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> "subprocess.Popen[str]":
        """Start a command line; `before` stands before it (unshare)."""
        return subprocess.Popen(
            [*before, sys.executable, "-m", "envbuild", *words],
            cwd=self.root,
            env={**self.variables(), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, *words: str, before: Sequence[str] = (), variables: Mapping[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Run a command line; return its exit code, stdout and stderr."""
        process = self.start(words, before=before, variables=variables)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err


@contextlib.contextmanager
def site(root: Path, *, versions: int = 1) -> Iterator[Site]:
    """Serve a channel and lock the recipes against it."""
    folders = tuple(f"v{number}" for number in range(1, versions + 1))
    write_index(root / "channel", _packages(root / "channel", folders))
    (root / "home").mkdir()
    with serve(root) as server:
        made = Site(root=root, channel=server, versions=folders)
        for folder in folders:
            (root / folder).mkdir()
            for name in NAMES:
                text = (
                    f"name: {name}\ntarget: {{platforms: [linux-64]}}\nchannels: [{_CHANNEL}]\n"
                    f"conda: [{name} =={folder[1:]}, {', '.join(SHARED)}]\n"
                )
                (root / folder / f"{name}.yaml").write_text(text)
            words = ("--recipes", folder, "--locks", folder)
            code, _, err = made.run("lock", *NAMES, *words)
            assert code == 0, err
        yield made


def _packages(channel: Path, folders: Sequence[str]) -> list[Made]:
    made = [_package(channel, name, "1") for name in SHARED]
    return made + [_package(channel, name, folder[1:]) for name in NAMES for folder in folders]


def _package(channel: Path, name: str, version: str) -> Made:
    files = {
        f"share/{name}/{number}": File(content=f"{name} {version} {number}\n".encode() * 50)
        for number in range(_FILES)
    }
    return make_package(
        channel,
        name,
        version,
        content={
            **files,
            f"bin/{name}": program(f"#!/bin/sh\necho {name} {version}; sleep ${{1:-0}}\n"),
        },
    )
