"""Jupyter kernels of environments: the spec, and a real kernel that is started by it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import generations as made
import pytest

from envbuild.cli.main import main
from envbuild.store.layout import Place, Store
from envbuild.store.manifest import InstalledPackage

_KERNEL = InstalledPackage(kind="pypi", name="ipykernel", version="6.29.5")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    found = made.place_in(tmp_path)
    made.make(found, made.FIRST, packages=(_KERNEL,))
    found.current.symlink_to(f"generations/{made.FIRST}")
    monkeypatch.setenv("ENVBUILD_STORE", f"{found.store.root}")
    monkeypatch.setenv("HOME", f"{tmp_path / 'home'}")
    for name in ("XDG_DATA_HOME", "JUPYTER_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    return found


def spec_in(folder: Path) -> Any:  # noqa: ANN401
    return json.loads((folder / "kernel.json").read_text())


def test_a_kernel_follows_what_is_current(place: Place, tmp_path: Path) -> None:
    assert main(["kernel", "demo"]) == 0
    spec = spec_in(tmp_path / "home/.local/share/jupyter/kernels/envbuild-demo")
    start = [sys.executable, "-P", "-m", "envbuild", "--store", f"{place.store.root}"]
    assert spec["argv"] == [
        *start, "run", "demo", "--", "python", "-m", "ipykernel_launcher", "-f",
        "{connection_file}",
    ]  # fmt: skip
    assert (spec["display_name"], spec["language"]) == ("demo", "python")
    done = subprocess.run(
        [*start, "run", "demo", "--", "hello"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"hello from {made.FIRST} \n"


def test_where_it_goes_and_what_it_is_called(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.root.is_dir()
    jupyter = tmp_path / "jupyter"
    words = ["--name", "GPU", "--display-name", "PyTorch größer"]
    assert main(["kernel", "demo", "--prefix", f"{jupyter}", *words]) == 0
    assert spec_in(jupyter / "share/jupyter/kernels/gpu")["display_name"] == "PyTorch größer"
    monkeypatch.setenv("JUPYTER_DATA_DIR", f"{tmp_path / 'data'}")
    assert main(["kernel", "demo", "--user"]) == 0
    assert (tmp_path / "data/kernels/envbuild-demo/kernel.json").is_file()
    monkeypatch.setattr(sys, "prefix", f"{tmp_path / 'prefix'}")
    assert main(["kernel", "demo", "--sys-prefix"]) == 0
    assert (tmp_path / "prefix/share/jupyter/kernels/envbuild-demo/kernel.json").is_file()
    assert main(["kernel", "demo", "--sys-prefix", "--user"]) == 2
    assert main(["kernel", "demo", "--name", "a/b"]) == 2


def test_only_its_own_kernel_is_removed_or_replaced(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.root.is_dir()
    kernels = tmp_path / "home/.local/share/jupyter/kernels"
    (kernels / "python3").mkdir(parents=True)
    (kernels / "python3/kernel.json").write_text('{"argv": []}')
    for more in ((), ("--remove",)):
        assert main(["kernel", "demo", "--name", "python3", *more]) == 1
        assert "--name" in capsys.readouterr().err
    assert main(["kernel", "demo", "--remove"]) == 3
    for _ in range(2):
        assert main(["kernel", "demo"]) == 0
    capsys.readouterr()
    assert main(["kernel", "demo", "--remove", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["path"] == f"{kernels / 'envbuild-demo'}"
    assert [path.name for path in kernels.iterdir()] == ["python3"]


def test_without_ipykernel_it_says_what_to_do(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.make(place, made.SECOND)
    place.current.unlink()
    place.current.symlink_to(f"generations/{made.SECOND}")
    assert main(["kernel", "demo"]) == 1
    error = capsys.readouterr().err
    assert "demo has no ipykernel" in error
    assert "add ipykernel to the recipe" in error
    assert not (tmp_path / "home").exists()


_CLIENT = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(startup_timeout=120, kernel_name="envbuild-note")
try:
    client.execute_interactive("import os, sys; print(sys.prefix, os.environ['CONDA_PREFIX'])")
    client.execute_interactive("print(6 * 7)")
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""


@pytest.mark.network
@pytest.mark.slow
def test_jupyter_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", f"{tmp_path / 'home'}")
    monkeypatch.setenv("ENVBUILD_STORE", f"{tmp_path / 'store'}")
    assert main(["new", "note", "--host", "--pypi", "ipykernel"]) == 0
    assert main(["create", "note", "--no-compile"]) == 0
    assert main(["kernel", "note"]) == 0
    prefix = Store(root=tmp_path / "store").place("note").current.resolve()
    other = tmp_path / "client"
    subprocess.run(
        [prefix / "bin/python", "-m", "venv", other, "--system-site-packages"], check=True
    )
    done = subprocess.run(
        [other / "bin/python", "-c", _CLIENT],
        env={"HOME": f"{tmp_path / 'home'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stdout == f"{prefix} {prefix}\n42\n", done.stderr
