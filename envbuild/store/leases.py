"""Who uses what in a store that several hosts share. Imported on hot paths.

::

    STORE/hosts/NAME@ID@HOST@NAMESPACE@PID@START   a process of HOST uses generation ID of NAME
    STORE/hosts/NAME@ID@HOST@unit@UNIT             an installed unit of HOST names it

No host sees another one's processes. So `run` and `shell` leave a file before they become their
command, which keeps their PID; an empty one, whose name says all, so that nobody reads half of it.
Commands that change the store renew the files of their own host and remove those whose process
has ended (PID and START, proc(5); in its PID namespace, namespaces(7)). What was not renewed for
`EXPIRES_S` counts no more. The folder is there only where the store lies on a file system that
hosts share, so that others pay one stat(2).
"""

import contextlib
import os
import time
from dataclasses import dataclass

from envbuild.store.layout import Generation, Store

EXPIRES_S = 30 * 86400.0
_MODE = 0o1777
_UNIT = "unit"
_FIELDS = 4
_SHARED = {
    "9p", "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.juicefs",
    "fuse.sshfs", "gfs2", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "ocfs2", "panfs",
    "pvfs2", "smb3", "virtiofs", "wekafs",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """One use of a generation.

    Attributes:
        file: Its file's name.
        environment: Name of the environment.
        identifier: The generation's ID.
        host: Name of the machine.
        namespace: The PID namespace's number, `unit` for a unit.
        what: `PID@START`, or the unit's name.
        renewed: When it was last known to be so, seconds since 1970.
    """

    file: str
    environment: str
    identifier: str
    host: str
    namespace: str
    what: str
    renewed: float

    @property
    def text(self) -> str:
        """What uses it, in words."""
        day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.renewed))
        if self.namespace == _UNIT:
            return f"named by {self.what} on {self.host} ({day})"
        return f"used by {self.what.split('@')[0]} on {self.host} ({day})"

    @property
    def ours(self) -> bool:
        """Whether this process can tell if it still holds."""
        return self.host == _host() and self.namespace in {_UNIT, _namespace()}


def prepare(store: Store) -> None:
    """Make the folder where the store lies on a file system that hosts share.

    Raises:
        OSError: It cannot be made.
    """
    if not os.path.isdir(store.hosts) and file_system(store) in _SHARED:  # noqa: PTH112
        with contextlib.suppress(FileExistsError):
            store.hosts.mkdir()
            store.hosts.chmod(_MODE)  # every user who runs something leaves a file


def hold(generation: Generation, pid: int) -> bool:
    """Say that a process of this host uses a generation; return whether that could be said.

    Where the store is not shared there is nothing to say. Renewed where it was said before.
    """
    store = generation.place.store
    if not os.path.isdir(store.hosts):  # noqa: PTH112 - start-up time
        return True
    start = _start(pid)
    return start is None or _write(generation, _namespace(), f"{pid}@{start}")


def hold_for_unit(generation: Generation, unit: str) -> bool:
    """Say that a unit of this host names a generation; return whether that could be said."""
    if not os.path.isdir(generation.place.store.hosts):  # noqa: PTH112
        return True
    return _write(generation, _UNIT, unit)


def of_others(store: Store) -> tuple[Lease, ...]:
    """Return what other hosts use, as far as it was renewed."""
    now = time.time()
    return tuple(
        lease for lease in _all(store) if not lease.ours and now - lease.renewed < EXPIRES_S
    )


def renew(
    store: Store, *, units: set[tuple[str, str, str]], looked_at: set[tuple[str, str]]
) -> None:
    """Renew what this host uses still, and remove what it does not, or nobody has renewed.

    Args:
        store: The store.
        units: Environment, ID and unit for each generation that a unit of this host names.
        looked_at: Environment and ID of the generations for which units were looked at.
    """
    now = time.time()
    for lease in _all(store):
        if not lease.ours:
            holds = now - lease.renewed < EXPIRES_S
        elif lease.namespace == _UNIT:
            key = (lease.environment, lease.identifier)
            holds = key not in looked_at or (*key, lease.what) in units
        else:
            pid, _, start = lease.what.partition("@")
            holds = pid.isdecimal() and _start(int(pid)) == start
        with contextlib.suppress(OSError):  # another user's; that user renews it
            path = store.hosts / lease.file
            if not holds:
                path.unlink()
            elif lease.ours:
                os.utime(path)


def _all(store: Store) -> list[Lease]:
    leases: list[Lease] = []
    try:
        entries = list(os.scandir(store.hosts))
    except OSError:
        return leases
    for entry in entries:
        fields = entry.name.split("@", _FIELDS)
        with contextlib.suppress(OSError):
            if len(fields) == _FIELDS + 1:
                environment, identifier, host, namespace, what = fields
                leases.append(
                    Lease(
                        file=entry.name,
                        environment=environment,
                        identifier=identifier,
                        host=host,
                        namespace=namespace,
                        what=what,
                        renewed=entry.stat(follow_symlinks=False).st_mtime,
                    )
                )
    return sorted(leases, key=lambda lease: lease.file)


def _write(generation: Generation, namespace: str, what: str) -> bool:
    fields = (generation.place.name, generation.identifier, _host(), namespace, what)
    path = generation.place.store.hosts / "@".join(fields).replace("/", "-")
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o644)
        try:
            os.utime(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True


def _host() -> str:
    return os.uname().nodename.replace("@", "-").replace("/", "-")


def _namespace() -> str:
    try:
        return f"{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116
    except OSError:
        return "0"


def _start(pid: int) -> str | None:
    """Return when a process began, clock ticks since boot, or None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - start-up time
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return None


def file_system(store: Store) -> str:
    """Return the type of the file system on which a store lies (proc(5), mountinfo)."""
    root = os.path.realpath(store.root)
    best, kind = "", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            for line in file:
                before, _, after = line.partition(" - ")
                point = before.split()[4].replace("\\040", " ")
                below = point in {"/", root} or root.startswith(f"{point}/")
                if below and len(point) >= len(best):
                    best, kind = point, after.split()[0]
    except (OSError, IndexError):
        return ""
    return kind
