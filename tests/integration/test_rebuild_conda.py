"""A conda package rebuilt with the compiler of the recipe's conda half. `nox -s rebuilds`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.channel_server import serve
from integration.conda_compilers import gxx
from integration.host_pythons import pythons
from integration.index_server import Index, serving
from integration.packages import Made, make_package, write_index
from integration.rebuilding import GLIBC, needs_gcc, project

from envbuild.channel import host
from envbuild.channel.interpreter import ask
from envbuild.cli.main import main
from envbuild.tools.hashing import hash_files

pytestmark = [
    needs_gcc,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("ENVBUILD_TEST_REBUILDS") != "all",
        reason="ENVBUILD_TEST_REBUILDS is not `all`",
    ),
]

CHANNEL = "https://channel.invalid/main"


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[str]:
    """Serve a channel of a Python that runs, a compiler, and `demo`."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    path = next((path for name, path in pythons().items() if name.endswith(version)), None)
    if path is None:
        pytest.skip(f"no CPython {version} that can be packed")
    folder = tmp_path / "channel"
    record, archive = host.pack(ask(path), folder / "linux-64")
    python = Made(
        archive=archive,
        record={
            "name": record.name,
            "version": record.version,
            "build": record.build,
            "build_number": 0,
            "depends": list(record.depends),
            "constrains": [],
            "subdir": "linux-64",
            "timestamp": 1_700_000_000_000,
            "sha256": record.sha256,
            "md5": record.md5,
            "size": record.size,
        },
    )
    demo = make_package(folder, "demo", "1.0", "py_0", depends=["python"])
    write_index(folder, [python, gxx(folder), demo])
    with serve(folder) as server:
        yield server.url


def test_a_conda_package_is_rebuilt_with_conda_s_compiler(
    channel: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENVBUILD_CHANNEL_MIRRORS", f"{CHANNEL}={channel}")
    monkeypatch.setenv("ENVBUILD_STORE", f"{tmp_path}/store")
    sources = project(tmp_path / "demo")
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/one.yaml").write_text(
        f"name: one\ntarget: {{platforms: [linux-64], glibc: '{GLIBC}'}}\n"
        f"python: '{sys.version_info[0]}.{sys.version_info[1]}'\nchannels: ['{CHANNEL}']\n"
        "conda: [demo, gxx_linux-64 12.*]\n"
        f"build: {{compiler: gcc 12, when: always, packages: {{demo: {{archive: {sources}}}}}}}\n"
    )

    def told(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        assert main([*words, "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    with serving(main=Index()) as server:
        monkeypatch.setenv("UV_DEFAULT_INDEX", server.url("main"))
        told("lock", "one")
        (planned,) = told("wheel", "plan", "one")["rebuild"]
        assert planned["toolchain"]["package"].startswith("gxx_linux-64 12.")
        assert planned["replaces"] == ["demo 1.0 py_0"]
        (rebuilt,) = told("wheel", "rebuild", "one", "--verify-reproducible")["rebuilt"]
        assert (rebuilt["built"], rebuilt["identical"]) == (True, True)

        definition = told("wheel", "show", "demo")["provenance"]["predicate"]["buildDefinition"]
        internal = definition["internalParameters"]
        prefix = Path(internal["compiler"]["origin"])
        assert prefix.is_relative_to(tmp_path / "store")
        assert not internal["variables"]["CFLAGS"]  # the activation script has no say
        compiler = f"{prefix}/bin/x86_64-conda-linux-gnu-gcc"
        digests = {
            one["uri"]: one["digest"]["sha256"]
            for one in definition["resolvedDependencies"]
            if one["name"] == "toolchain"
        }
        assert digests["file:x86_64-conda-linux-gnu-gcc"] == hash_files([(compiler, 0)])[compiler]
        assert {"file:cc1", "file:cc1plus"} <= digests.keys()

        told("lock", "--prefer-rebuilt", "one")
        told("create", "one")
        generation = tmp_path / "store/envs/one/current"
        conda = [path.name for path in generation.glob("conda-meta/*.json")]
        assert not [name for name in conda if name.startswith("demo-")]
        assert [name for name in conda if name.startswith("gxx_linux-64-12.")]
        code = "import demo, importlib.metadata as m; print(m.version('demo'))"
        done = subprocess.run(
            [generation / "bin/python", "-c", code], check=True, capture_output=True, text=True
        )
        assert done.stdout == "1.0+gcc12\n"
        assert told("wheel", "plan", "one")["rebuild"] == []
