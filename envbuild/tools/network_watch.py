"""Whether a program's transfers go on: an engine without a limit of its own would wait for ever.

The kernel counts what each socket has received (sock_diag(7), tcp_info), so nothing has to be
known of the program. Where it does not tell, nothing is ever found.
"""

import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

_SHORTEST_S = 3.0
_LOOKS = 4
LEAST_BYTES_PER_S = 256
_ANSWER_BYTES = 1 << 18

SILENT = "no answer in time"
SLOW = f"the answer comes too slowly (less than {LEAST_BYTES_PER_S} bytes a second)"

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, linux/tcp.h
_SOCK_DIAG, _BY_FAMILY, _REQUEST_DUMP = 4, 20, 0x301
_ERROR, _DONE = 2, 3
_INFO_ATTRIBUTE = 2
_ESTABLISHED, _SYN_SENT = 1, 2
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_INODE_AT, _ATTRIBUTES_AT, _RECEIVED_AT = 68, 72, 128


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    """What was seen of a program at one moment."""

    at_s: float
    busy: bool
    received: dict[int, int]


class NetworkWatch:
    """Looks at a program from time to time, and says when its transfers do not go on.

    They do not where, for a whole time limit, connections were open, no thread of the program
    computed or waited for a disk or a lock, and nothing arrived, or next to nothing.

    Attributes:
        interval_s: Seconds between two looks.
    """

    def __init__(self, timeout_s: float, *, silence: bool) -> None:
        """Look at nothing yet.

        Args:
            timeout_s: Seconds that it may take; at least three, for an engine that waits a little
                before it tries again.
            silence: Whether it counts that nothing arrives at all: not for an engine that ends
                such a transfer itself.
        """
        self._limit_s = max(timeout_s, _SHORTEST_S)
        self._silence = silence
        self._looks: list[_Look] = []
        self.interval_s = self._limit_s / _LOOKS

    def look(self, pid: int) -> str | None:
        """Look at a process once; return what is wrong with its transfers, None for nothing."""
        self._looks = [*self._looks, _look(pid)][-_LOOKS - 1 :]
        first, last = self._looks[0], self._looks[-1]
        if last.at_s - first.at_s < 0.9 * self._limit_s or len(self._looks) <= _LOOKS:
            return None
        if any(look.busy or not look.received for look in self._looks):
            return None
        arrived = [
            sum(count - old.received.get(inode, 0) for inode, count in new.received.items())
            for old, new in zip(self._looks, self._looks[1:], strict=False)
        ]
        if not any(arrived):
            return SILENT if self._silence else None
        if all(arrived) and sum(arrived) < LEAST_BYTES_PER_S * self._limit_s:
            return SLOW
        return None


def _look(pid: int) -> _Look:
    try:
        mine = _inodes(pid)
        busy = _computes(pid) or _waits_for_lock(pid)
        counts = {**_counts(socket.AF_INET), **_counts(socket.AF_INET6)} if mine else {}
    except OSError:
        mine, busy, counts = set(), True, {}
    received = {inode: count for inode, count in counts.items() if inode in mine}
    return _Look(at_s=time.monotonic(), busy=busy, received=received)


def _inodes(pid: int) -> set[int]:
    """Return the inodes of a process's sockets."""
    found: set[int] = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(path.readlink())
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            found.add(int(target[8:-1]))
    return found


def _computes(pid: int) -> bool:
    """Say whether a thread runs, could run, or waits for a disk (proc_pid_stat(5), state)."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            state = (task / "stat").read_text(errors="replace").rpartition(") ")[2][:1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state in {"R", "D"}:
            return True
    return False


def _waits_for_lock(pid: int) -> bool:
    """Say whether the process waits for a lock on a file (proc_locks(5): `->` before the kind)."""
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[1] == "->" and words[5] == str(pid):
            return True
    return False


def _counts(family: int) -> dict[int, int]:
    """Return how many bytes each TCP socket here has received, by its inode.

    Raises:
        OSError: The kernel does not tell.
    """
    wanted = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 1 << (_INFO_ATTRIBUTE - 1), 0,
                         1 << _ESTABLISHED | 1 << _SYN_SENT) + bytes(48)  # fmt: skip
    found: dict[int, int] = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as asked:
        asked.settimeout(1)
        header = _HEADER.pack(_HEADER.size + len(wanted), _BY_FAMILY, _REQUEST_DUMP, 1, 0)
        asked.send(header + wanted)
        while True:
            data = asked.recv(_ANSWER_BYTES)
            while data:
                length, kind, *_ = _HEADER.unpack_from(data)
                if kind == _DONE:
                    return found
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", data, _HEADER.size)[0], "sock_diag")
                _add(found, data[_HEADER.size : length])
                data = data[length + 3 & ~3 :]


def _add(found: dict[int, int], message: bytes) -> None:
    """Add what one message says of one socket."""
    (inode,) = struct.unpack_from("=I", message, _INODE_AT)
    found[inode] = 0
    at = _ATTRIBUTES_AT
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if kind == _INFO_ATTRIBUTE and length >= _ATTRIBUTE.size + _RECEIVED_AT + 8:
            (found[inode],) = struct.unpack_from("=Q", message, at + 4 + _RECEIVED_AT)
        at += length + 3 & ~3
