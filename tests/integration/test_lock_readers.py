"""Other tools read our locks as they are: conda-lock, pip, uv."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.locking import HOST, SMALL, Locker, locker

from envbuild.lock.model import Lock
from envbuild.pipeline.lock import write_lock

_BIN = Path(sys.executable).parent
_CUDA = """\
name: cuda
target: {cuda: "12.4"}
python: "3.10"
channels: [nvidia/label/cuda-12.4.0, nvidia, pytorch, conda-forge]
conda:
  - pytorch::pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0
  - pytorch-cuda 12.4.*
  - cuda-version 12.4.*
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locker]:
    with locker(tmp_path_factory.mktemp("readers")) as made:
        yield made


def run(*argv: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        argv,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), "PIP_NO_CACHE_DIR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def written(served: Locker, recipe: str, folder: Path) -> Lock:
    lock = served.make(recipe).lock
    write_lock(lock, folder)
    return lock


_PARSE = """
import json, pathlib, sys
from conda_lock.lockfile import parse_conda_lock_file
lock = parse_conda_lock_file(pathlib.Path(sys.argv[1]))
print(json.dumps({
    "packages": {p.name: [p.version, p.url, p.hash.md5, p.hash.sha256] for p in lock.package},
    "custom": lock.metadata.custom_metadata,
    "channels": [channel.url for channel in lock.metadata.channels],
    "platforms": lock.metadata.platforms,
    "content_hash": lock.metadata.content_hash,
}))
"""


@pytest.mark.parametrize("recipe", [SMALL, _CUDA, HOST], ids=["small", "cuda", "host"])
def test_conda_lock_parses_it(served: Locker, tmp_path: Path, recipe: str) -> None:
    lock = written(served, recipe, tmp_path)
    text = run(sys.executable, "-W", "ignore", "-c", _PARSE, "conda-lock.yml", cwd=tmp_path)
    seen = json.loads(text.splitlines()[-1])
    assert seen["packages"] == {
        one.name: [one.version, one.url, one.md5, one.sha256]
        for half in lock.platforms
        for one in half.conda
    }
    assert seen["custom"]["solve_digest"] == lock.solve_digest
    assert set(seen["content_hash"].values()) == {lock.solve_digest}
    assert tuple(seen["channels"]) == lock.channels
    assert tuple(seen["platforms"]) == tuple(half.platform for half in lock.platforms)


@pytest.mark.parametrize("recipe", [SMALL, _CUDA], ids=["small", "cuda"])
def test_conda_lock_renders_it(served: Locker, tmp_path: Path, recipe: str) -> None:
    lock = written(served, recipe, tmp_path)
    run(_BIN / "conda-lock", "render", "-k", "explicit", "conda-lock.yml", cwd=tmp_path)
    lines = (tmp_path / "conda-linux-64.lock").read_text().splitlines()
    urls = {line for line in lines if line.startswith("http")}
    assert urls == {f"{one.url}#{one.md5}" for one in lock.platforms[0].conda}


def test_records_with_md5_only_keep_their_size(served: Locker, tmp_path: Path) -> None:
    lock = written(served, _CUDA, tmp_path)
    weak = [one for one in lock.platforms[0].conda if one.sha256 is None]
    assert len(weak) > 10
    assert all(one.size and one.md5 for one in weak)
    text = (tmp_path / "conda-lock.yml").read_text()
    assert all(f"size:linux-64/{one.filename}: " in text for one in weak)


@pytest.mark.parametrize("recipe", [SMALL, HOST], ids=["small", "host"])
def test_pip_and_uv_take_the_requirements(served: Locker, tmp_path: Path, recipe: str) -> None:
    written(served, recipe, tmp_path)
    options = ["--require-hashes", "--no-deps", "-r", "requirements.linux-64.txt"]
    index = ["--index-url", served.server.url("main")]
    pip = [sys.executable, "-m", "pip", "install", "--isolated", "--dry-run", "--no-input"]
    text = run(*pip, *index, *options, "--target", "there", cwd=tmp_path)
    assert "Would install app-2 leaf-2" in text
    text = run(
        _BIN / "uv",
        "pip",
        "install",
        "--no-config",
        "--dry-run",
        "--cache-dir",
        "cache",
        "--python",
        sys.executable,
        *index,
        *options,
        "--target",
        "there",
        cwd=tmp_path,
    )
    assert "+ app==2" in text
    assert "+ leaf==2" in text


def test_pip_refuses_another_wheel(served: Locker, tmp_path: Path) -> None:
    written(served, HOST, tmp_path)
    file = tmp_path / "requirements.linux-64.txt"
    header = file.read_text().partition("\n\n")[0]
    assert "pip install --require-hashes --no-deps -r" in header
    text = file.read_text()
    first = text.partition("sha256:")[2][:64]
    file.write_text(text.replace(first, "0" * 64))
    with pytest.raises(AssertionError, match="DO NOT MATCH THE HASHES"):
        run(
            sys.executable,
            "-m",
            "pip",
            "install",
            "--isolated",
            "--dry-run",
            "--no-deps",
            "--index-url",
            served.server.url("main"),
            "--require-hashes",
            "-r",
            file,
            "--target",
            "there",
            cwd=tmp_path,
        )
