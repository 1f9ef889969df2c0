"""Both h100-pt24 recipes from recipe to running environment, their conda half from the stubs."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration import stub_channel
from integration.channel_server import serve

SCRIPT = Path(sys.executable).with_name("envbuild")


class World:
    """A store and locks of the test's own, and the stub channel as the only channel."""

    def __init__(self, root: Path, mirrors: str) -> None:
        self.locks = root / "locks"
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("ENVBUILD_")},
            "ENVBUILD_STORE": str(root / "store"),
            "ENVBUILD_RECIPES": str(stub_channel.RECIPES),
            "ENVBUILD_LOCKFILES": str(self.locks),
            "ENVBUILD_CHANNEL_MIRRORS": mirrors,
            "XDG_STATE_HOME": str(root / "state"),
        }

    def __call__(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [SCRIPT, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )

    def good(self, *words: str) -> str:
        """Run a command that must work and return what it printed."""
        done = self(*words)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


@pytest.fixture
def world(stub_folder: Path, tmp_path: Path) -> Iterator[World]:
    with serve(stub_folder) as server:
        mirrors = [
            f"{channel}={url}"
            for channel, urls in stub_channel.mirrors(server).items()
            for url in urls
        ]
        yield World(tmp_path, " ".join(mirrors))
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("name", stub_channel.DRIVEN)
def test_from_recipe_to_a_running_environment(name: str, world: World) -> None:
    world.good("lock", name)
    text = (world.locks / name / "conda-lock.yml").read_text()
    assert "127.0.0.1" not in text
    world.good("lock", name, "--check")
    created = json.loads(world.good("create", name, "--no-compile", "--json"))
    assert created["version"] == 1
    question = "import os, torch, accelerate; print(torch.__version__, os.environ['CC'])"
    version, compiler = world.good("run", name, "--", "python", "-c", question).split()
    assert version.startswith("2.4.0")
    assert compiler.endswith("bin/x86_64-conda-linux-gnu-gcc")
    assert Path(compiler).is_file()
    world.good("verify", name)
    again = world("create", name)
    assert again.returncode == 0
    assert "up to date" in again.stdout + again.stderr
