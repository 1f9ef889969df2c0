"""More real packages, rebuilt twice: Cython, scikit-build-core, Rust. `nox -s rebuilds`."""

import json
import os
import shutil
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from integration.rebuilding import GLIBC, needs_gcc

from envbuild.cli.main import main

pytestmark = [
    needs_gcc,
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("ENVBUILD_TEST_REBUILDS") != "all",
        reason="ENVBUILD_TEST_REBUILDS is not `all`",
    ),
]

_RUST = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not here")


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("msgpack", "1.0.8"),
        ("iminuit", "2.30.1"),
        pytest.param("orjson", "3.10.7", marks=_RUST),
        pytest.param("rpds-py", "0.20.0", marks=_RUST),
    ],
)
def test_a_real_package_is_rebuilt(
    name: str,
    version: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Any,  # noqa: ANN401 - pytest's own type is private
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENVBUILD_PYTHON", os.path.realpath(sys.executable))
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    (recipes / "one.yaml").write_text(
        f"name: one\ntarget: {{platforms: [linux-64], glibc: '{GLIBC}'}}\n"
        f"python: '>=3.11,<3.12'\nchannels: [host]\npypi: ['{name} =={version}']\n"
        f"build: {{compiler: gcc 12, when: always, packages: {{{name}: {{}}}}}}\n"
    )

    def told(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        assert main([*words, "--store", f"{tmp_path}/store", "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    told("lock", "one")
    (planned,) = told("wheel", "plan", "one", "--fetch")["rebuild"]
    capsys.readouterr()
    argv = ["wheel", "rebuild", "one", "--fetch", "--verify-reproducible"]
    status = main([*argv, "--store", f"{tmp_path}/store", "--json"])
    printed = capsys.readouterr()
    if status and "cargo cannot fetch" in printed.out + printed.err:
        pytest.skip("cargo cannot reach its registry from here")
    assert status == 0
    (rebuilt,) = json.loads(printed.out)["rebuilt"]
    (kept,) = told("wheel", "list")["wheels"]
    took = told("wheel", "show", name)["provenance"]["predicate"]["runDetails"]["metadata"]
    begun, ended = (datetime.fromisoformat(took[key]) for key in ("startedOn", "finishedOn"))
    record_property("seconds of one build", (ended - begun).total_seconds())
    record_property("before", json.dumps([row["what"] for row in planned["why"]]))
    record_property("after", kept["compiler"])
    record_property("bytes", kept["bytes"])
    record_property("identical", rebuilt["identical"])
    assert rebuilt["identical"]
