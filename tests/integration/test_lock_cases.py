"""Cases from the field about locks and mirrors (`lock-and-mirrors`)."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from integration.channel_server import SNAPSHOT, serve, snapshot_mirrors
from integration.index_server import Index, Proxy, default_index, serving
from integration.locking import SMALL, Locker, envbuild, wheels

from envbuild.cli.context import Here

_RECIPES = Path(__file__).parents[2] / "recipes"
_UPSTREAM = Here().access.default_index or default_index()


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let no setting of the person who runs the tests in."""
    prefixes = ("ENVBUILD_", "UV_", "PIP_", "XDG_", "CONDA_")
    for name in [name for name in os.environ if name.startswith(prefixes)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@contextmanager
def site(root: Path, index: Index | Proxy, name: str) -> Iterator[Locker]:
    """Serve the channels and an index: one place's mirrors, under an index name of its own."""
    root.mkdir(exist_ok=True)
    with serve(SNAPSHOT) as channels, serving(**{name: index}) as server:
        yield Locker(root=root, channels=channels, server=server, index=Index())


def lock(
    at: Locker, name: str, monkeypatch: pytest.MonkeyPatch, *words: str, **variables: str
) -> dict[str, bytes]:
    """Lock in a folder with exactly these variables, and return the lock's files."""
    monkeypatch.chdir(at.root)
    mirrors = [f"{name}={urls[0]}" for name, urls in snapshot_mirrors(at.channels).items()]
    settings = {
        "ENVBUILD_CHANNEL_MIRRORS": " ".join(mirrors),
        "ENVBUILD_STORE": str(at.root / "store"),
        "HOME": str(at.root),
        **variables,
    }
    with monkeypatch.context() as within:
        for key, value in settings.items():
            within.setenv(key, value)
        assert envbuild("lock", name, *words) == 0
    return at.files(name)


def no_host(files: dict[str, bytes], *ports: int) -> bool:
    """Return whether neither localhost nor one of these ports is named."""
    text = b"".join(files.values())
    return not any(part in text for part in [b"127.0.0.1", *(b":%d" % port for port in ports)])


def test_the_lock_does_not_know_which_mirror_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    when = ["--exclude-newer", "2026-11-30"]
    with site(tmp_path / "one", wheels(), "main") as at:
        at.write(SMALL)
        one = lock(at, "small", monkeypatch, *when, UV_DEFAULT_INDEX=at.server.url("main"))
    with site(tmp_path / "two", wheels(), "mirror") as at:
        at.write(SMALL)
        uv = at.root / ".config/uv/uv.toml"
        uv.parent.mkdir(parents=True)
        uv.write_text(
            f'offline = true\nexclude-newer = "2026-01-01"\nprerelease = "allow"\n'
            f'[[index]]\nurl = "{at.server.url("mirror", login="someone:secret")}"\n'
            "default = true\n"
        )
        before = os.umask(0o077)
        try:
            two = lock(at, "small", monkeypatch, *when, UV_CONSTRAINT="/nowhere")
        finally:
            os.umask(before)
        assert at.server.asked("/mirror/simple/app/")
        modes = {path.stat().st_mode & 0o777 for path in (at.root / "lockfiles/small").iterdir()}
        assert modes == {0o644}
        assert no_host(two, at.server.port, at.channels.port)
    assert one == two
    assert b"://" not in one["requirements.linux-64.txt"]
    assert b"secret" not in b"".join(two.values())


def test_checking_a_lock_under_a_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with site(tmp_path / "here", wheels(), "main") as at:
        at.write(SMALL)
        lock(at, "small", monkeypatch, UV_DEFAULT_INDEX=at.server.url("main"))
        asked = len(at.server.log), len(at.channels.log)
        monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/mirror/simple")
        monkeypatch.setenv("ENVBUILD_CHANNEL_MIRRORS", "conda-forge=http://127.0.0.1:9/conda")
        assert envbuild("lock", "--check", "small") == 0
        assert (len(at.server.log), len(at.channels.log)) == asked


def test_only_hashes_that_pip_accepts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with site(tmp_path / "here", wheels(), "main") as at:
        at.write(SMALL)
        made = lock(at, "small", monkeypatch, UV_DEFAULT_INDEX=at.server.url("main"))
        text = made["requirements.linux-64.txt"].decode()
        assert "md5" not in text
        assert "None" not in text
        assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) == 2
        install = [sys.executable, "-m", "pip", "install", "--isolated", "--dry-run", "--no-deps"]
        index = ["--require-hashes", "--index-url", at.server.url("main"), "--target", "there"]
        pip = subprocess.run(
            [*install, *index, "-r", "lockfiles/small/requirements.linux-64.txt"],
            env={"PATH": "/usr/bin:/bin", "HOME": str(at.root)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert pip.returncode == 0, pip.stderr


def test_locking_while_the_name_service_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = "http://127.0.0.1:9"
    with site(tmp_path / "here", wheels(), "main") as at:
        at.write(SMALL.replace("- app", "- app\n  - Leaf"))
        made = lock(
            at,
            "small",
            monkeypatch,
            UV_DEFAULT_INDEX=at.server.url("main"),
            HTTPS_PROXY=nowhere,
            HTTP_PROXY=nowhere,
            ALL_PROXY=nowhere,
            NO_PROXY="127.0.0.1",
        )
    assert b"app==2" in made["requirements.linux-64.txt"]


@pytest.mark.network
@pytest.mark.slow
def test_a_real_lock_through_two_mirrors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    made: list[dict[str, bytes]] = []
    for number, mask in enumerate((0o022, 0o077)):
        name = f"mirror{number}"
        with site(tmp_path / name, Proxy(upstream=_UPSTREAM, folder=kept), name) as at:
            pip = at.root / ".config/pip/pip.conf"
            pip.parent.mkdir(parents=True)
            pip.write_text(f"[global]\nindex-url = {at.server.url(name)}\nno-deps = true\n")
            before = os.umask(mask)
            try:
                words = ("--recipes", str(_RECIPES), "--exclude-newer", "2026-11-30")
                made.append(lock(at, "h100-pt24-wheel", monkeypatch, *words))
            finally:
                os.umask(before)
            assert at.server.asked("/simple/torch/")
            assert no_host(made[-1], at.server.port, at.channels.port)
    assert made[0] == made[1]
    assert b"torch==2.4.0" in made[0]["requirements.linux-64.txt"]
