"""What the tests of packed interpreters share: those of this machine, and installing one."""

import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

from envbuild.access import Access
from envbuild.channel import host
from envbuild.channel.interpreter import HostPython, Unfit, ask
from envbuild.progress import Quiet
from envbuild.tools import conda_archives, rattler

OUTSIDE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}
"""The environment that installed interpreters run in: nothing of the test's own."""

_FOLDERS = ("/usr/local/bin", "/usr/bin")


@cache
def pythons() -> dict[str, Path]:
    """Return CPythons of this machine that can be packed, `pyenv-3.11` or `usr-bin-3.11` first."""
    found: dict[str, Path] = {}
    pyenv = sorted(Path.home().glob(".pyenv/versions/3.1[1-9]*/bin/python"))
    system = (path for folder in _FOLDERS for path in sorted(Path(folder).glob("python3.1[1-9]")))
    for kind, path in [*(("pyenv", p) for p in pyenv), *(("system", p) for p in system)]:
        try:
            found.setdefault(f"{kind}-{ask(path).minor}", path)
        except Unfit:
            continue
    return found


def install(python: HostPython, root: Path, *, name: str = "prefix") -> Path:
    """Pack an interpreter, link it into a new prefix below `root` as `create` does, return it."""
    record, archive = host.pack(python, root / "host")
    package = replace(record, url=archive.as_uri())
    conda_archives.fetch(
        [package],
        cache=root / "pkgs",
        access=Access(offline=True),
        progress=Quiet(),
        first_digest=lambda _, __: None,
    )
    prefix = root / name
    rattler.link([package], prefix=prefix, cache=root / "pkgs", platform=python.platform)
    return prefix


def run(*words: str | Path, env: dict[str, str] | None = None, cwd: Path = Path("/")) -> str:
    """Run a program outside of the test's environment and return what it printed."""
    completed = subprocess.run(
        [str(word) for word in words],
        env=OUTSIDE | (env or {}),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert completed.returncode == 0, completed.stderr[-3000:]
    return completed.stdout.strip()
