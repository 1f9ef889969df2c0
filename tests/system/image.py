"""Makes the machine of the tests: a Debian, its kernel, modules, a disk; kept between runs.

`python tests/system/image.py [SUITE]` makes and boots it where it is missing. Everything lies in
`$XDG_CACHE_HOME/envbuild-system-tests/SUITE-KEY`; the key comes from what it is made of, so that
a change of a script makes a new one. What nobody used for two weeks is removed when one is made.
"""

import contextlib
import fcntl
import gzip
import hashlib
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SUITES = ("bookworm", "trixie")
PROGRAMS = ("mmdebstrap", "mke2fs", "qemu-system-x86_64", "qemu-img", "gcc", "make", "dpkg-deb")
PAYLOAD_BYTES = 2 << 30
_KERNEL_SUITE = "bookworm"  # for every suite: one kernel, and one compiler that it agrees with
_PACKAGES = (
    *("base-files", "base-passwd", "bash", "busybox-static", "coreutils", "dash", "dbus"),
    *("findutils", "grep", "gzip", "kmod", "libc-bin", "libnss-systemd", "libstdc++6"),
    *("login", "mount", "procps", "python3", "sed", "systemd", "systemd-sysv", "tar", "udev"),
    "util-linux",
)
_INITRD = (
    *("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev"),
    *("virtio_pci", "virtio_blk"),
)
_MODULES = (
    *("block", "drivers/block", "drivers/char", "drivers/virtio"),
    *("fs/autofs", "fs/fuse", "fs/overlayfs"),
)
# In the folder of the last argument, with the suite's own apt: the newest kernel's packages.
_FETCH = """
cd "$0"
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
of() { apt-cache depends "$1" | sed -n 's/^ *Depends: //p'; }
headers=$(of linux-headers-cloud-amd64)
apt-get -qq -o APT::Sandbox::User=root download "$(of linux-image-cloud-amd64)" \
  "$headers" $(of "$headers" | grep -E '^linux-(headers-.*-common|kbuild)')
"""
_DISK_BYTES = 2 << 30
_UNUSED_S = 14 * 24 * 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """A machine that was never booted.

    Attributes:
        root: Its files.
        disk: The same as an ext4 disk.
        kernel: Its kernel.
        initrd: What mounts the disk.
        folder: Where all of it lies.
    """

    root: Path
    disk: Path
    kernel: Path
    initrd: Path
    folder: Path


def missing() -> str | None:
    """Say what this machine lacks to make an image and to run it, None where nothing is."""
    if os.getuid() != 0:
        return "root (the image is made of files of several users)"
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    lacking = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if os.uname().machine != "x86_64":
        return "an x86_64 processor (the kernel is built for it)"
    return ", ".join(lacking) or None


def image(suite: str) -> Image:
    """Return the image of a suite; make it where it is missing."""
    folder = _folder(suite)
    found = Image(
        root=folder / "root",
        disk=folder / "disk.raw",
        kernel=folder / "vmlinuz",
        initrd=folder / "initrd.gz",
        folder=folder,
    )
    with locked(folder):
        if not found.disk.exists():
            _make(suite, found)
        os.utime(folder)
    return found


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder against other processes."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def key(*files: Path) -> str:
    """Return a short name of the content of files."""
    text = b"".join(b"%s\0%s" % (file.name.encode(), file.read_bytes()) for file in files)
    return hashlib.sha256(text).hexdigest()[:12]


def make_disk(disk: Path, files: Path, size: int) -> None:
    """Make an ext4 disk of the files of a folder.

    Args:
        disk: Where.
        files: What is in it.
        size: How large it is, in bytes; what is not used takes no place.
    """
    features = ("-t", "ext4", "-E", "lazy_itable_init=0,root_owner=0:0")
    run(["mke2fs", "-q", "-F", *features, "-d", files, disk, f"{size >> 10}k"])


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "envbuild-system-tests"


def _folder(suite: str) -> Path:
    files = sorted(file for part in ("guest", "driver") for file in (HERE / part).iterdir())
    return _cache() / f"{suite}-{key(HERE / 'image.py', *files)}"


def _make(suite: str, made: Image) -> None:
    _forget_unused()
    with tempfile.TemporaryDirectory(dir=made.folder) as work:
        packages = Path(work) / "packages"
        packages.mkdir()
        root = Path(work) / "root"
        _unpack_suite(suite, root, packages if suite == _KERNEL_SUITE else None)
        kernel = Path(work) / "kernel"
        if suite == _KERNEL_SUITE:
            _kernel(packages, kernel)
        else:
            kernel = image(_KERNEL_SUITE).folder / "kernel"
        _furnish(root, kernel)
        _initrd(root, made.initrd)
        shutil.copyfile(next(kernel.glob("vmlinuz*")), made.kernel)
        disk = Path(work) / "disk.raw"
        make_disk(disk, root, _DISK_BYTES)
        for old in (made.root, made.folder / "kernel"):
            shutil.rmtree(old, ignore_errors=True)
        if kernel.parent == Path(work):
            kernel.rename(made.folder / "kernel")
        root.rename(made.root)
        disk.rename(made.disk)


def _forget_unused() -> None:
    for folder in _cache().iterdir():
        if time.time() - folder.stat().st_mtime > _UNUSED_S:
            shutil.rmtree(folder, ignore_errors=True)


def _unpack_suite(suite: str, root: Path, kernel: Path | None) -> None:
    """Unpack a suite's packages from where mmdebstrap finds them by itself.

    Without their scripts, which would take as long again: `guest/root.sh` does what is needed.
    """
    more = [] if kernel is None else [f"--extract-hook=sh -ec '{_quoted(_FETCH)}' {kernel}"]
    words = ["--quiet", "--variant=extract", f"--include={','.join(_PACKAGES)}", *more]
    run(["mmdebstrap", *words, suite, root])


def _quoted(text: str) -> str:
    return text.replace("'", "'\\''")


def _kernel(packages: Path, kernel: Path) -> None:
    """Unpack a kernel, build modules against it, keep it, them and its own that are used."""
    unpacked = packages / "unpacked"
    for package in packages.glob("*.deb"):
        run(["dpkg-deb", "--extract", package, unpacked])
    sources = unpacked / "usr/src"
    (headers,) = sources.glob("linux-headers-*-cloud-amd64")
    makefile = headers / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src", f"{sources}"))
    shutil.copytree(HERE / "driver", packages / "driver")
    # Its makefile names the compiler by the version that Debian built the kernel with.
    run(["make", "-s", "-C", headers, f"M={packages}/driver", "CC=gcc", "modules"])
    (modules,) = (unpacked / "lib/modules").iterdir()
    for folder in _MODULES:
        shutil.copytree(modules / "kernel" / folder, kernel / "modules/kernel" / folder)
    for file in modules.glob("modules.*"):
        shutil.copy(file, kernel / "modules")
    (kernel / "modules/extra").mkdir()
    for file in (packages / "driver").glob("*.ko"):
        shutil.copy(file, kernel / "modules/extra")
    (image_,) = (unpacked / "boot").glob("vmlinuz-*")
    shutil.copy(image_, kernel)


def _furnish(root: Path, kernel: Path) -> None:
    (image_,) = kernel.glob("vmlinuz-*")
    modules = root / "lib/modules" / image_.name.removeprefix("vmlinuz-")
    shutil.copytree(kernel / "modules", modules)
    shutil.copy(HERE / "guest/agent.service", root / "etc/systemd/system")
    (root / "usr/local/lib").mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "guest/agent.py", root / "usr/local/lib")
    run(["sh", HERE / "guest/root.sh", root])


def _initrd(root: Path, to: Path) -> None:
    modules = {file.name: file for file in (root / "lib/modules").rglob("virtio*.ko")}
    files = {"init": (HERE / "guest/init").read_bytes()}
    files["bin/busybox"] = (root / "bin/busybox").read_bytes()
    files |= {f"lib/{name}.ko": modules[f"{name}.ko"].read_bytes() for name in _INITRD}
    archive = b"".join(_entry(folder, None) for folder in ("bin", "lib", "dev", "new"))
    archive += _entry("bin/sh", b"busybox", kind=stat.S_IFLNK)
    archive += b"".join(_entry(name, content) for name, content in files.items())
    to.write_bytes(gzip.compress(archive + _entry("TRAILER!!!", b""), 6))


def _entry(name: str, content: bytes | None, *, kind: int = stat.S_IFREG) -> bytes:
    """Return an entry of a cpio archive, as the kernel's initramfs-buffer-format.txt has it."""
    mode = (stat.S_IFDIR if content is None else kind) | 0o755
    body = content or b""
    fields = (0, mode, 0, 0, 1, 0, len(body), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _even(head) + _even(body)


def _even(text: bytes) -> bytes:
    return text + b"\0" * (-len(text) % struct.calcsize("i"))


def run(words: Sequence[str | Path]) -> str:
    """Run a program and return what it says; what fails is a RuntimeError with its errors."""
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin", "LC_ALL": "C"}
    done = subprocess.run(
        words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        what = f"{words[0]} ended with {done.returncode}: {done.stderr[-2000:]}"
        raise RuntimeError(what)
    return done.stdout


if __name__ == "__main__":
    sys.path.insert(0, f"{HERE.parent}")
    from system.machine import booted

    booted(*(sys.argv[1:] or SUITES[:1]))
