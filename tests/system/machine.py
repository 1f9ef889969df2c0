"""Machines under qemu: booted once, saved, forked from there; commands run in them as root.

    with booted("bookworm").fork() as machine:
        assert machine.run("systemctl is-system-running").out == "running\\n"

Without KVM, so that it is the same everywhere; it is ten to fifteen times slower than the host.
"""

import contextlib
import hashlib
import io
import json
import os
import select
import shlex
import shutil
import socket
import struct
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from system.image import PAYLOAD_BYTES, Image, image, locked, run

_KERNEL_WORDS = (
    "root=/dev/vda rw console=ttyS0 quiet loglevel=4 mitigations=off nokaslr no_timer_check "
    "tsc=reliable audit=0 systemd.show_status=0 random.trust_cpu=on panic=-1"
)
_MEMORY_MIB = 1024
_BOOT_S = 400.0
_COMMAND_S = 300.0
_PIECE = 1 << 16
_PORT = "virtio-serial-pci", "virtserialport,chardev=agent,name=agent"


class Gone(Exception):
    """A machine does not answer; the text has what it last said on its console."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What a command in a machine said.

    Attributes:
        code: Its exit code; 124 where it took too long.
        out: Its output; bytes that are no UTF-8 are escaped.
        err: Its errors, likewise.
    """

    code: int
    out: str
    err: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """A running machine, saved.

    Attributes:
        image: What it was booted from.
        disk: Its disk, as an overlay.
        memory: Its memory and devices.
    """

    image: Image
    disk: Path
    memory: Path

    def fork(self, payload: Path | None = None) -> "Machine":
        """Return a machine that goes on from here, with a disk of its own above this one's.

        Args:
            payload: The second disk, /dev/vdb; an empty one where there is none.
        """
        folder = Path(tempfile.mkdtemp(prefix="envbuild-machine-"))
        disk = {"driver": "qcow2", "file": f"{folder}/disk.qcow2"}
        _overlay(folder / "disk.qcow2", self.disk, "qcow2")
        return self.resume(folder, _drive(disk["file"]), payload)

    def resume(self, folder: Path, drive: Sequence[str], payload: Path | None) -> "Machine":
        """Return a machine that goes on from here with a disk that is said.

        Args:
            folder: The machine's; it is removed with it.
            drive: qemu's words for a disk with the node name `root`; it has to hold what this
                one's has.
            payload: The second disk.
        """
        more = ("-incoming", f"exec:cat {shlex.quote(f'{self.memory}')}")
        machine = Machine(image=self.image, folder=folder)
        machine.start(drive, payload, more)
        while machine.ask("query-status")["status"] == "inmigrate":
            time.sleep(0.02)
        machine.ask("cont")
        machine.connect()
        return machine


@dataclass(kw_only=True, slots=True)
class Machine:
    """A machine that runs.

    Attributes:
        image: What it was booted from.
        folder: Its disk, sockets and console; removed with it.
    """

    image: Image
    folder: Path
    payload: Path | None = None
    _process: "subprocess.Popen[bytes] | None" = None
    _agent: socket.socket | None = None
    _monitor: Any = None
    _number: int = 0
    _seen: bytearray = field(default_factory=bytearray)

    def __enter__(self) -> Self:
        """Return the machine."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it and remove what it had."""
        self.close()

    def start(self, drive: Sequence[str], payload: Path | None, more: Sequence[str]) -> None:
        """Start qemu; nothing runs in the machine yet where it goes on from a snapshot."""
        self.payload = payload
        second = payload or _empty(self.folder)
        words = [*_words(self.image, self.folder), *drive, *_payload(second), *more]
        with (self.folder / "qemu").open("wb") as log:
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=log)
        with self._connected("monitor") as connection:
            self._monitor = connection.makefile("rw")
        self._monitor.readline()
        self.ask("qmp_capabilities")

    def connect(self) -> None:
        """Reach for the agent in the machine."""
        self._agent = self._connected("agent")

    def ready(self) -> None:
        """Wait until the agent answers after a boot."""
        self._answer(_BOOT_S)

    def run(
        self,
        command: str | Sequence[str],
        *,
        check: bool = True,
        stdin: bytes = b"",
        timeout_s: float = _COMMAND_S,
    ) -> Done:
        """Run a command as root, a text by the shell.

        Args:
            command: What.
            check: An exit code that is not 0 is an AssertionError.
            stdin: What it reads.
            timeout_s: When it is ended.
        """
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        self._number += 1
        question = {"number": self._number, "argv": argv, "timeout_s": timeout_s}
        self._say(json.dumps(question | {"input": stdin.decode("latin-1")}).encode())
        answer = self._answer(timeout_s + 30)
        while answer["number"] != self._number:
            answer = self._answer(timeout_s + 30)
        out, err = (
            answer[stream].encode("latin-1").decode("utf-8", "backslashreplace")
            for stream in ("out", "err")
        )
        done = Done(code=answer["code"], out=out, err=err)
        if check:
            assert done.code == 0, f"{command}: {done.code}\n{done.out}{done.err}"
        return done

    def put(self, path: str, text: str | bytes, mode: str = "644") -> None:
        """Write a file, and the folders above it."""
        content = text.encode() if isinstance(text, str) else text
        where = shlex.quote(path)
        make = f"mkdir -p $(dirname {where}) && cat >{where} && chmod {mode} {where}"
        self.run(make, stdin=content)

    def put_all(self, files: Mapping[str, str]) -> None:
        """Write files by their paths, all at once."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path, text in files.items():
                member = tarfile.TarInfo(path.lstrip("/"))
                member.size, member.mode = len(text.encode()), 0o644
                archive.addfile(member, io.BytesIO(text.encode()))
        self.run("tar -C / --no-same-owner -xf -", stdin=packed.getvalue())

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Return properties of a unit, as systemd has them now."""
        said = self.run(["systemctl", "show", unit, *(f"-p{name}" for name in names)]).out
        return dict(line.split("=", 1) for line in said.splitlines())

    def journal(self, *words: str) -> str:
        """Return messages of the journal, without times."""
        self.run(["journalctl", "--sync"])
        return self.run(["journalctl", "--output=cat", "--no-pager", *words]).out

    def until(self, what: Callable[[], object], *, timeout_s: float = 180) -> None:
        """Wait until something is true."""
        end = time.monotonic() + timeout_s
        while not what():
            assert time.monotonic() < end, f"not within {timeout_s} s"
            time.sleep(0.1)

    def ask(self, command: str, **arguments: object) -> dict[str, Any]:
        """Ask qemu for something, and return what it says."""
        self._monitor.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._monitor.flush()
        while True:
            line = self._monitor.readline()
            if not line:
                raise Gone(self._last_words())
            said = json.loads(line)
            if "error" in said:
                raise Gone(str(said["error"]))
            if "return" in said:
                found: dict[str, Any] = said["return"]
                return found

    def save(self, folder: Path) -> Snapshot:
        """Save it as it is now, and end it.

        Args:
            folder: Where its disk and memory go.
        """
        self.run("sync")
        self.ask("stop")
        memory = folder / "memory"
        self.ask("migrate", uri=f"exec:cat >{shlex.quote(f'{memory}')}")
        while (state := self.ask("query-migrate")["status"]) != "completed":
            assert state not in {"failed", "cancelled"}, self._last_words()
            time.sleep(0.05)
        self.cut()
        disk = folder / "disk.qcow2"
        shutil.move(self.folder / "disk.qcow2", disk)
        self.close()
        return Snapshot(image=self.image, disk=disk, memory=memory)

    def reboot(self) -> None:
        """Boot it anew, in good order."""
        self._say(json.dumps(_quick(["systemctl", "reboot"])).encode())
        self._rebooted()

    def power_cut(self) -> None:
        """Take its power, with all that it has not written to its disk, and boot it again."""
        self.cut()
        self._hang_up()
        self.start(_drive(f"{self.folder}/disk.qcow2"), self.payload, ())
        self.connect()
        self.ready()

    def cut(self) -> None:
        """Take its power: what it has written reached the disk, the rest is lost."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self.cut()
        self._hang_up()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _hang_up(self) -> None:
        for each in (self._agent, self._monitor):
            if each is not None:
                each.close()
        self._agent, self._monitor = None, None
        self._seen.clear()

    def _rebooted(self) -> None:
        # The agent's greeting says that it is there again.
        while self._answer(_BOOT_S)["number"] != 0:
            pass

    def _connected(self, name: str) -> socket.socket:
        end = time.monotonic() + 20
        assert self._process is not None
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(f"{self.folder}/{name}")
            except OSError:
                connection.close()
                if self._process.poll() is not None or time.monotonic() > end:
                    raise Gone(self._last_words()) from None
                time.sleep(0.02)
            else:
                return connection

    def _say(self, text: bytes) -> None:
        assert self._agent is not None
        self._agent.sendall(struct.pack(">I", len(text)) + text)

    def _answer(self, timeout_s: float) -> dict[str, Any]:
        end = time.monotonic() + timeout_s
        (size,) = struct.unpack(">I", self._bytes(4, end))
        answer: dict[str, Any] = json.loads(self._bytes(size, end))
        return answer

    def _bytes(self, size: int, end: float) -> bytes:
        assert self._agent is not None
        while len(self._seen) < size:
            waiting, _, _ = select.select([self._agent], [], [], max(0, end - time.monotonic()))
            piece = self._agent.recv(_PIECE) if waiting else b""
            if not piece:
                raise Gone(self._last_words())
            self._seen += piece
        found = bytes(self._seen[:size])
        del self._seen[:size]
        return found

    def _last_words(self) -> str:
        said = ""
        for name in ("qemu", "console"):
            with contextlib.suppress(FileNotFoundError):
                said += (self.folder / name).read_text(errors="replace")[-2000:]
        return f"the machine does not answer: {said}"


def booted(suite: str) -> Snapshot:
    """Return a machine of a suite that has just booted, made and booted where there is none."""
    base = image(suite)
    version = run(["qemu-system-x86_64", "--version"])
    nowhere = Path("/")
    hardware = repr((version, _words(base, nowhere), _drive("disk"), _payload(nowhere)))
    folder = base.folder / f"booted-{hashlib.sha256(hardware.encode()).hexdigest()[:12]}"
    with locked(base.folder):
        if not folder.exists():
            work = Path(tempfile.mkdtemp(prefix="work-", dir=base.folder))
            try:
                _boot(base).save(work)
                work.rename(folder)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    return Snapshot(image=base, disk=folder / "disk.qcow2", memory=folder / "memory")


def _boot(base: Image) -> Machine:
    machine = Machine(image=base, folder=Path(tempfile.mkdtemp(prefix="envbuild-machine-")))
    try:
        _overlay(machine.folder / "disk.qcow2", base.disk, "raw")
        machine.start(_drive(f"{machine.folder}/disk.qcow2"), None, ())
        machine.connect()
        machine.ready()
        state = machine.run("systemctl is-system-running --wait", check=False).out
        assert state == "running\n", machine.run("systemctl --failed", check=False).out
    except BaseException:
        machine.close()
        raise
    return machine


def _quick(argv: Sequence[str]) -> dict[str, Any]:
    return {"number": -1, "argv": list(argv), "timeout_s": 30, "input": ""}


def _words(image: Image, folder: Path) -> list[str]:
    return [
        *("qemu-system-x86_64", "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max"),
        *("-smp", "2", "-m", f"{_MEMORY_MIB}", "-M", "q35", "-nodefaults"),
        *("-no-user-config", "-display", "none"),
        *("-kernel", f"{image.kernel}", "-initrd", f"{image.initrd}", "-append", _KERNEL_WORDS),
        *("-chardev", f"file,id=console,path={folder}/console", "-serial", "chardev:console"),
        *("-chardev", f"socket,id=agent,path={folder}/agent,server=on,wait=off"),
        *(word for device in _PORT for word in ("-device", device)),
        *("-qmp", f"unix:{folder}/monitor,server=on,wait=off"),
        *("-device", "virtio-blk-pci,drive=root,addr=8"),
        *("-device", "virtio-blk-pci,drive=payload,addr=9"),
    ]


def _payload(disk: Path) -> tuple[str, ...]:
    return ("-blockdev", f"driver=file,filename={disk},node-name=payload,read-only=on")


def _drive(path: str) -> tuple[str, ...]:
    return (
        *("-blockdev", f"driver=file,filename={path},node-name=file,cache.direct=off"),
        *("-blockdev", "driver=qcow2,file=file,node-name=root"),
    )


def _overlay(disk: Path, below: Path, kind: str) -> None:
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", below, disk])


def _empty(folder: Path) -> Path:
    path = folder / "empty"
    path.touch()
    os.truncate(path, PAYLOAD_BYTES)
    return path
