"""What the driver wrote into the kernel's log: Xid lines, cards that did not start.

/dev/kmsg holds the log since the boot as far as the kernel's buffer goes (kmsg in the kernel's
Documentation/ABI/testing/dev-kmsg): each read gives one record, `LEVEL,NUMBER,MICROSECONDS,…;TEXT`.
Where `dmesg_restrict` keeps users out, the text files that a syslog daemon keeps are read.
"""

import os
import re
from collections.abc import Iterable, Iterator

from envbuild.host.machine import Event, EventKind
from envbuild.host.readings import NoAnswer, NoPermission, Reading, Unsupported, Value
from envbuild.host.tree import Tree

_KMSG = "dev/kmsg"
_FILES = ("var/log/kern.log", "var/log/messages", "var/log/syslog")
_RECORD = re.compile(rb"^\d+,\d+,(\d+),[^;]*;(.*)", re.DOTALL)
_RECORD_BYTES = 8192
_TAIL_BYTES = 2 << 20
_MOST_RECORDS = 200_000
_STAMP = re.compile(r"kernel: \[\s*(\d+\.\d+)\] ")
_BOOT = re.compile(r"kernel: (?:\[[^]]*\] )?Linux version ")
_PLACE = r"\((?:PCI:)?(?P<address>[0-9a-fA-F:.]+)[^)]*\): (?P<number>\d+)"
_EVENTS: tuple[tuple[EventKind, re.Pattern[str]], ...] = (
    ("xid", re.compile(rf"NVRM: Xid {_PLACE}")),
    ("sxid", re.compile(rf"SXid {_PLACE}")),
    ("version-mismatch", re.compile(r"NVRM: API mismatch")),
    ("not-started", re.compile(
        r"NVRM: (?:GPU|rm_init_adapter|RmInitAdapter)"
        r"(?: (?P<address>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})[0-9a-f.:]*:)?"
        r".*(?:RmInitAdapter failed|rm_init_adapter failed)"
    )),
)  # fmt: skip


def read(tree: Tree) -> Reading[tuple[Event, ...]]:
    """Return what the driver wrote since the boot, as far as it is still there."""
    try:
        descriptor = os.open(tree.at(_KMSG), os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return _from_files(tree, tree.silence(_KMSG, error))
    try:
        return Value(tuple(_events(_records(descriptor))))
    except OSError as error:
        return _from_files(tree, tree.silence(_KMSG, error))
    finally:
        os.close(descriptor)


def _records(descriptor: int) -> Iterator[tuple[float | None, str]]:
    """Yield time (seconds since the boot) and text of each record."""
    rest = b""
    for _ in range(_MOST_RECORDS):
        try:
            data = os.read(descriptor, _RECORD_BYTES)
        except BlockingIOError:
            break
        except BrokenPipeError:  # records were overwritten meanwhile; the next read goes on
            continue
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if match := _RECORD.match(line):
                yield int(match[1]) / 1e6, match[2].decode(errors="replace")


def _events(lines: Iterable[tuple[float | None, str]]) -> Iterator[Event]:
    for at_s, text in lines:
        if "NVRM" not in text and "SXid" not in text:
            continue
        for kind, pattern in _EVENTS:
            if match := pattern.search(text):
                found = match.groupdict()
                yield Event(
                    kind=kind,
                    at_s=at_s,
                    address=(found.get("address") or "").lower(),
                    number=int(found.get("number") or 0),
                    text=text[match.start() :].strip(),
                )
                break


def _from_files(
    tree: Tree, silence: Unsupported | NoPermission | NoAnswer
) -> Reading[tuple[Event, ...]]:
    """Return what a syslog daemon's file has since the last boot in it; else why there is none."""
    for path in _FILES:
        try:
            with tree.at(path).open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:
            continue
        lines = text.splitlines()
        boots = [number for number, line in enumerate(lines) if _BOOT.search(line)]
        return Value(tuple(_events(map(_stamped, lines[boots[-1] if boots else 0 :]))))
    return silence


def _stamped(line: str) -> tuple[float | None, str]:
    match = _STAMP.search(line)
    return (float(match[1]) if match else None), line
