"""A systemd that runs: as process 1 of namespaces of its own, over a copy-on-write view of `/`.

It starts in a second or two and touches nothing of the machine. Its cgroups are those of version 2
that are not taken by version 1 here, so limits cannot be tried in it: for that is a machine of
its own (tests/system).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import envbuild

SCRIPT = Path(sys.executable).with_name("envbuild")
BOOTED = Path("/run/systemd/system")
_SYSTEMD = Path("/usr/lib/systemd/systemd")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BOOT_S = 30.0
_NETWORK = ("SSL_CERT_FILE", "UV_", "HTTP", "http", "NO_PROXY", "no_proxy")

_BOOT = """
set -e
base=$1 shared=$2
shift 2
mount --make-rprivate /
mount -t tmpfs tmpfs $base
mkdir $base/upper $base/work $base/root
mount -t overlay overlay -o lowerdir=/,upperdir=$base/upper,workdir=$base/work $base/root
root=$base/root
mount -t proc proc $root/proc
mount -t sysfs sysfs $root/sys
mount -t tmpfs -o mode=755 tmpfs $root/run
mount -t tmpfs tmpfs $root/tmp
mount -t tmpfs -o mode=755 tmpfs $root/dev
for each in null zero full random urandom tty; do cp -a /dev/$each $root/dev/; done
mkdir $root/dev/pts $root/dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts $root/dev/pts
mount -t tmpfs tmpfs $root/dev/shm
ln -s pts/ptmx $root/dev/ptmx
ln -s /proc/self/fd $root/dev/fd
mount -t cgroup2 none $root/sys/fs/cgroup
mkdir -p $root/srv
mount --bind $shared $root/srv
for each; do  # what tests run, which may lie on another mount or below /tmp
  mkdir -p "$root$each"
  mount --bind "$each" "$root$each"
done
: > $root/etc/machine-id
rm -rf $root/etc/systemd/system $root/var/log/journal
mkdir -p $root/etc/systemd/system
cd $root
mkdir -p .before
pivot_root . .before
exec chroot / /bin/sh -c 'umount -l /.before
exec env -i container=lxc PATH=/usr/sbin:/usr/bin /usr/lib/systemd/systemd \
  --unit=multi-user.target --log-target=null'
"""


class Machine:
    """A machine whose systemd runs.

    Attributes:
        pid: systemd, seen from outside.
        shared: The folder that is /srv inside.
    """

    def __init__(self, pid: int, shared: Path) -> None:
        self.pid = pid
        self.shared = shared

    def enter(self, user: str = "", *, online: bool = False) -> list[str]:
        """Return what stands before a command that is to run in it, or there beside its network."""
        spaces = ["--mount", "--pid", "--uts", "--ipc", "--cgroup"] if online else ["--all"]
        words = ["nsenter", f"--target={self.pid}", *spaces, "--root", "--wd"]
        return [*words, *(["runuser", "-u", user, "--"] if user else [])]

    def run(
        self, *words: str, check: bool = True, user: str = "", **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in it."""
        done = _run([*self.enter(user), *_with(variables), *words], timeout_s=120)
        assert not check or done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        return done

    def run_online(self, *words: str, **variables: str) -> None:
        """Run a command in it, with the network outside; it may take many minutes."""
        done = _run([*self.enter(online=True), *_with(variables), *words], timeout_s=3600)
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"

    def show(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).stdout.strip()

    def wait(self, unit: str, name: str, value: str) -> None:
        """Wait until a property of a unit has a value."""
        end = time.monotonic() + _BOOT_S
        while (seen := self.show(unit, name)) != value:
            assert time.monotonic() < end, f"{unit}: {name} is {seen}"
            time.sleep(0.1)


class Site:
    """A store with recipes, used from inside a machine, where it lies in /srv."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.outside = machine.shared
        self.units = Path("/etc/systemd/system")
        (self.outside / "recipes").mkdir()

    def recipe(self, text: str, *, name: str = "demo") -> None:
        """Write a recipe on the machine's own Python; `text` are its services."""
        head = f'name: {name}\npython: ">=3.11"\nchannels: [host]\n'
        (self.outside / "recipes" / f"{name}.yaml").write_text(f"{head}{text}")

    def envbuild(
        self, *words: str, check: bool = True, user: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run envbuild in the machine, as another user with a store of their own."""
        variables = _variables("/srv")
        if user:
            variables |= {"HOME": f"/home/{user}", "ENVBUILD_STORE": f"/home/{user}/store"}
        return self.machine.run(str(SCRIPT), *words, check=check, user=user, **variables)

    def online(self, *words: str) -> None:
        """Run envbuild in the machine, with the network outside and a cache that is kept."""
        kept = {name: value for name, value in os.environ.items() if name.startswith(_NETWORK)}
        variables = {**kept, **_variables("/srv"), "ENVBUILD_CACHE": "/srv/cache"}
        self.machine.run_online(str(SCRIPT), *words, **variables)

    def started(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start envbuild in the machine."""
        return subprocess.Popen(
            [*self.machine.enter(), *_with(_variables("/srv")), str(SCRIPT), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def outside_run(self, *words: str, home: Path) -> "subprocess.CompletedProcess[str]":
        """Run envbuild outside, on the same recipes."""
        variables = {**_variables(str(self.outside)), "HOME": str(home), "PATH": _PATH}
        return subprocess.run(
            [SCRIPT, *words], env=variables, capture_output=True, text=True, check=False
        )

    def json(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Return what a command prints with `--json`."""
        done = self.envbuild(*words, "--json", check=False)
        assert done.returncode == code, done.stdout + done.stderr
        data: dict[str, Any] = json.loads(done.stdout)
        return data

    def create(self, name: str = "demo") -> None:
        """Create an environment."""
        self.envbuild("create", name, "--offline", "--no-compile")

    def read(self, file: str) -> str:
        """Return what a file among the units says."""
        return self.machine.run("cat", f"{self.units / file}").stdout

    def write(self, file: str, text: str) -> None:
        """Write a file among the units, as an administrator does."""
        (self.outside / "written").write_text(text)
        self.machine.run("cp", "/srv/written", f"{self.units / file}")
        self.machine.run("systemctl", "daemon-reload")

    def listed(self) -> list[str]:
        """Return the files among the units, sorted."""
        seen = self.machine.run("find", f"{self.units}", "-type", "f", "-printf", "%P\n").stdout
        return sorted(seen.split())


def _with(variables: Mapping[str, str]) -> list[str]:
    return ["env", "-i", f"PATH={_PATH}", *(f"{name}={one}" for name, one in variables.items())]


def _run(words: Sequence[str], *, timeout_s: float) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )


def _variables(folder: str) -> dict[str, str]:
    return {
        "HOME": f"{folder}/home",
        "ENVBUILD_STORE": f"{folder}/store",
        "ENVBUILD_RECIPES": f"{folder}/recipes",
        "ENVBUILD_LOCKFILES": f"{folder}/locks",
        "ENVBUILD_PYTHON": "/usr/bin/python3",
    }


def missing() -> str:
    """Return what is missing to start a systemd here, empty for nothing."""
    if os.geteuid() != 0:
        return "root is needed to start a systemd in namespaces"
    needed = [name for name in ("unshare", "nsenter", "dbus-daemon") if not shutil.which(name)]
    if needed or not _SYSTEMD.exists():
        return f"{', '.join(needed) or 'systemd'} is not installed"
    python = Path("/usr/bin/python3")
    return "" if python.exists() else f"{python} is not there"


@contextmanager
def booted(base: Path, shared: Path) -> Iterator[Machine]:
    """Yield a machine; `base` is an empty folder, `shared` is seen inside as /srv."""
    group = Path("/sys/fs/cgroup/unified" if Path("/sys/fs/cgroup/unified").is_dir() else "")
    group = (group if group.name else Path("/sys/fs/cgroup")) / f"envbuild-test-{os.getpid()}"
    group.mkdir()
    flags = ["--mount", "--pid", "--uts", "--ipc", "--cgroup", "--net", "--fork", "--kill-child"]
    enter = f'echo $$ > {group}/cgroup.procs; exec unshare {" ".join(flags)} sh -c "$0" sh "$@"'
    seen = dict.fromkeys([sys.base_prefix, sys.prefix, str(Path(envbuild.__file__).parents[1])])
    words = ["sh", "-c", enter, _BOOT, str(base), str(shared), *seen]
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        machine = Machine(_inner(process), shared)
        _wait(machine, process)
        machine.run("ip", "link", "set", "lo", "up", check=False)
        yield machine
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        _remove(group)


def _inner(process: "subprocess.Popen[bytes]") -> int:
    """Return the process that is the first one of the namespace."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + _BOOT_S
    while time.monotonic() < end:
        found = children.read_text().split()
        if found:
            return int(found[0])
        time.sleep(0.02)
    raise AssertionError


def _wait(machine: Machine, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + _BOOT_S
    while time.monotonic() < end and process.poll() is None:
        told = machine.run("systemctl", "is-system-running", check=False).stdout.strip()
        if told in {"running", "degraded"}:
            return
        time.sleep(0.1)
    output = process.stdout.read() if process.stdout and process.poll() is not None else b""
    message = f"systemd did not start: {output.decode(errors='replace')}"
    raise AssertionError(message)


def _remove(group: Path) -> None:
    end = time.monotonic() + _BOOT_S
    while time.monotonic() < end:
        try:
            for folder, _, _ in os.walk(group, topdown=False):
                Path(folder).rmdir()
        except OSError:
            time.sleep(0.05)
        else:
            return
