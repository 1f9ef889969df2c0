"""Stores below a space or an umlaut, and link scripts, as a user types the commands."""

import contextlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.channel_server import serve
from integration.index_server import Index, serving
from integration.networking import CHANNEL, Network
from integration.packages import File, make_package, program, write_index

_PLACEHOLDER = "/opt/place_holder" + "_holder" * 30
_RECIPE = f"""\
name: net
channels: [{CHANNEL}]
conda: [tools]
services:
  job: {{exec: [hello, a b]}}
"""


@contextlib.contextmanager
def project(root: Path) -> Iterator[Network]:
    """Serve a package with scripts, and yield a project that asks for it."""
    files = {
        "bin/hello": program(
            f'#!{_PLACEHOLDER}/bin/sh\necho "hello $1"\n', placeholder=_PLACEHOLDER
        ),
        "bin/sh": File(content=b"/bin/sh", link=True),
        "bin/ptool": program(f"#!{_PLACEHOLDER}/bin/perl -w\n", placeholder=_PLACEHOLDER),
        "bin/.tools-post-link.sh": program("exit 0\n"),
        "etc/conda/activate.d/tools.sh": File(content=b'export TOOLS="$CONDA_PREFIX/share"\n'),
    }
    channel = root / "channel"
    write_index(channel, [make_package(channel, "tools", content=files)])
    with serve(channel) as served, serving(main=Index()) as index:
        net = Network(root=root, channel=served, index=index)
        net.write(_RECIPE)
        yield net


@pytest.mark.parametrize("word", ["sp ace", "größe"])
def test_every_command_works_below_a_space_and_an_umlaut(word: str) -> None:
    """In a short place: a first line of more than 127 bytes is another case."""
    with tempfile.TemporaryDirectory() as short, project(Path(short, word)) as net:
        net.good("lock", "net")
        assert word not in "".join(map(bytes.decode, net.lock_files.values()))
        created = json.loads(net.run("create", "net", "--json").stdout)
        prefix = Path(created["prefix"])
        assert prefix.is_relative_to(Path(short, word))
        found = {(one["code"], one["where"]) for one in created["findings"]}
        foreign = ("foreign-interpreter", "bin/ptool")
        assert (foreign in found) is (word == "sp ace")
        assert net.run("run", "net", "--", "hello", "a b").stdout == "hello a b\n"
        net.good("verify", "net")
        shell = f'{net.run("activate", "net").stdout}\nhello x; echo "$TOOLS"'
        done = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, text=True, check=True)
        assert done.stdout == f"hello x\n{prefix}/share\n"
        net.good("units", "net", "--output", "units")
        unit = (net.root / "units/envbuild-net.job.service").read_text()
        assert f'\nExecStart="{prefix}/bin/hello" "a b"\n' in unit
        if analyze := shutil.which("systemd-analyze"):
            units = sorted(map(str, (net.root / "units").glob("*.*")))
            done = subprocess.run(
                [analyze, "verify", *units], capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stderr) == (0, "")
        net.good("create", "net", "--reinstall")
        net.good("rollback", "net")
        assert net.run("run", "net", "--", "hello", "again").stdout == "hello again\n"


def test_a_link_script_is_named_at_create_and_at_lock(tmp_path: Path) -> None:
    """A lock reads no package: it names those of packages that were fetched before."""
    with project(tmp_path) as net:
        net.good("lock", "net")
        told = net.good("create", "net")
        warning = "warning: bin/.tools-post-link.sh: the link script of tools was not run"
        assert warning in told
        assert "link_scripts: [tools]" in told
        assert warning in net.good("lock", "net")
        net.write(f"{_RECIPE}link_scripts: [tools]\n")
        assert warning not in net.good("lock", "net")
        assert "the link script of tools was run, as the recipe wants" in net.good("create", "net")
