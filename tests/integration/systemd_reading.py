"""What systemd's own parser makes of unit files, without a running systemd.

`SYSTEMD_LOG_LEVEL=debug systemd-analyze verify` prints every unit as it was read. Its "Command
Line" is quoted for shells and still has `$$`, which becomes `$` when the program is started.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_ESCAPES = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
}


def verify(files: Sequence[Path]) -> subprocess.CompletedProcess[str]:
    """Run `systemd-analyze verify`; it says nothing of units that are right."""
    return _run(["verify", *files], {})


def read(files: Sequence[Path]) -> Mapping[str, bytes]:
    """Return what systemd prints of each unit that it read, by its name."""
    done = _run(["verify", *files], {"SYSTEMD_LOG_LEVEL": "debug"})
    seen = done.stdout.encode("utf-8", "surrogateescape")
    names = sorted(file.name for file in files)
    starts = {name: seen.index(f"\t-> Unit {name}:\n".encode()) for name in names}
    ends = sorted(starts.values())[1:]
    return {
        name: seen[start : next((end for end in ends if end > start), None)]
        for name, start in starts.items()
    }


def exposure(file: Path, *, at_most: float) -> subprocess.CompletedProcess[str]:
    """Run `systemd-analyze security`, which fails where the score is above the threshold."""
    threshold = f"--threshold={round(at_most * 10)}"
    return _run(["security", "--offline=true", "--no-pager", threshold, file], {})


def command(dump: bytes) -> tuple[str, ...]:
    """Return the words that a program gets: the first command of a dump, undone."""
    found = re.search(rb"\t\t-> ExecStart:\n\t\t\tCommand Line: (.*)\n", dump)
    assert found
    path, *words = _words(found[1])
    return (path, *(word.replace("$$", "$") for word in words))


def _words(line: bytes) -> list[str]:
    found: list[str] = []
    position = 0
    while position < len(line):
        if line[position : position + 1] == b'"':
            word, position = _quoted(line, position + 1)
        else:
            end = line.find(b" ", position)
            end = len(line) if end < 0 else end
            word, position = line[position:end], end
        found.append(word.decode())
        position += 1
    return found


def _quoted(line: bytes, position: int) -> tuple[bytes, int]:
    word = b""
    while (byte := line[position : position + 1]) != b'"':
        position += 1
        if byte != b"\\":
            word += byte
            continue
        escaped = line[position : position + 1]
        if escaped.isdigit():
            word += bytes([int(line[position : position + 3], 8)])
            position += 3
        else:
            word += _ESCAPES.get(escaped, escaped)
            position += 1
    return word, position + 1


def _run(words: Sequence[str | Path], more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    assert program is not None
    done = subprocess.run(
        [program, *words],
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **more},
        capture_output=True,
        check=False,
    )
    streams = [text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr)]
    return subprocess.CompletedProcess(done.args, done.returncode, *streams)
