"""Two hosts on one store: a host that is not this one does not see this one's processes.

The other host is a process with another name, its own PID namespace and /proc, and another
boot's number.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.site import Site, site

from envbuild.store import present

_UNSHARE = ("unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, versions=2) as made:
        made.store.root.mkdir(exist_ok=True)
        made.store.hosts.mkdir()
        made.store.hosts.chmod(0o1777)
        for version in made.versions:
            assert made.run(*made.create("one", version))[0] == 0
        yield made


@pytest.fixture
def elsewhere(tmp_path: Path) -> tuple[str, ...]:
    """Return what runs a command on another host, or skip."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("another host needs root and unshare(1)")
    (tmp_path / "boot").write_text("00000000-0000-0000-0000-000000000000\n")
    bind = f"mount --bind {tmp_path}/boot /proc/sys/kernel/random/boot_id"
    script = f'hostname node2 && {bind} && exec "$@"'
    words = (*_UNSHARE, "sh", "-c", script, "sh")
    if subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no new namespaces here")
    return words


def _identifiers(place: Site) -> list[str]:
    return [one.identifier for one in present.generations(place.store.place("one"))]


def _leases(place: Site) -> list[str]:
    return sorted(path.name for path in place.store.hosts.iterdir())


def _until(leases: int, place: Site) -> None:
    end = time.monotonic() + 30
    while len(_leases(place)) != leases and time.monotonic() < end:
        time.sleep(0.05)
    assert len(_leases(place)) == leases


def test_what_another_host_uses_stays_until_it_has_ended(
    place: Site, elsewhere: tuple[str, ...]
) -> None:
    old, new = _identifiers(place)
    words = ("run", "--generation", old, "one", "--", "sh", "-c", "read line")
    there = subprocess.Popen(
        [*elsewhere, "sh", "-c", _command(*words)],
        cwd=place.root,
        env=place.variables(),
        stdin=subprocess.PIPE,
    )
    try:
        _until(1, place)
        assert _leases(place)[0].startswith(f"one@{old}@node2@")
        code, out, _ = place.run("gc", "--keep", "0", "-y")
        assert (code, _identifiers(place)) == (0, [old, new])
        assert "on node2" in out
        code, _, err = place.run("remove", "one", "-y")
        assert (code, "on node2" in err) == (1, True)
        assert _identifiers(place) == [old, new]
    finally:
        there.communicate(b"\n", timeout=60)
    assert place.run("gc", "-n")[0] == 0  # here its process was seen as well
    assert place.run("gc", "--keep", "0", "-y")[0] == 0
    assert _identifiers(place) == [old, new]  # this host cannot know that it has ended
    (lease,) = place.store.hosts.iterdir()
    os.utime(lease, (0, 0))
    assert place.run("gc", "--keep", "0", "-y")[0] == 0
    assert (_identifiers(place), _leases(place)) == ([new], [])


def test_a_host_takes_back_what_has_ended_there(place: Site) -> None:
    old, _ = _identifiers(place)
    words = ("run", "--generation", old, "one", "--", "sh", "-c", "read line")
    here = subprocess.Popen(
        ["/bin/sh", "-c", _command(*words)],
        cwd=place.root,
        env=place.variables(),
        stdin=subprocess.PIPE,
    )
    _until(1, place)
    before = place.store.hosts / _leases(place)[0]
    os.utime(before, (0, 0))
    assert place.run("gc", "-n")[0] == 0
    assert before.stat().st_mtime > 1e9
    here.communicate(b"\n", timeout=60)
    assert place.run("gc", "-n")[0] == 0
    assert _leases(place) == []


def _command(*words: str) -> str:
    return f"exec {shlex.join([sys.executable, '-m', 'envbuild', *words])}"


def test_a_unit_of_another_host_keeps_its_generation(
    place: Site, elsewhere: tuple[str, ...], tmp_path: Path
) -> None:
    old, new = _identifiers(place)
    program = place.store.place("one").generation(old).prefix / "bin/one"
    units = tmp_path / "home/.config/systemd/user"
    units.mkdir(parents=True)
    (units / "job@.service").write_text(f"[Service]\nExecStart={program} 5\n")
    assert place.run("gc", "-n", before=elsewhere)[0] == 0
    assert _leases(place) == [f"one@{old}@node2@unit@job@.service"]
    shutil.rmtree(units)
    assert place.run("gc", "--keep", "0", "-y")[0] == 0
    assert _identifiers(place) == [old, new]
    assert place.run("gc", "-n", before=elsewhere)[0] == 0
    assert _leases(place) == []
    assert place.run("gc", "--keep", "0", "-y")[0] == 0
    assert _identifiers(place) == [new]


def test_a_lock_of_another_host_whose_flock_is_not_seen_is_waited_for(
    place: Site, elsewhere: tuple[str, ...], tmp_path: Path
) -> None:
    """As with `local_lock`: what the other host writes is seen here, what it locks is not."""
    lock = place.store.place("one").lock
    there = tmp_path / "there"
    script = (
        "import pathlib, sys; from envbuild.tools import locks\n"
        f"with locks.exclusive(pathlib.Path('{there}'), timeout_s=1, purpose='create one'):\n"
        "    print(flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [*elsewhere, sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout
    holder.stdout.readline()
    lock.write_text(there.read_text())
    code, _, err = place.run("pin", "one", "1", "--lock-timeout", "1")
    assert (code, "on node2, process " in err) == (6, True)
    holder.communicate(timeout=60)
    lock.write_text(there.read_text())
    assert place.run("pin", "one", "1", "--lock-timeout", "1")[0] == 0


def test_a_store_that_is_not_shared_has_no_such_folder(place: Site) -> None:
    place.store.hosts.rmdir()
    assert place.run("run", "one", "--", "one")[0] == 0
    assert place.run(*place.create("one"), "--reinstall")[0] == 0
    assert not place.store.hosts.exists()
