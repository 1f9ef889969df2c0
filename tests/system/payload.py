"""What the tests bring into a machine: envbuild, installed there, and environments made with it.

They are made in the files of the machine, by its own Python, but natively: it takes seconds where
the machine would take minutes. There they lie on a second disk.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import uv
from nvmlsim import simulator
from system.image import PAYLOAD_BYTES, Image, make_disk, run
from system.machine import Machine

import envbuild

PROGRAMS = Path(__file__).parent / "programs"
RECIPES = Path(__file__).parent / "recipes"
OWN = ("plain",)
SHIPPED = ("quickstart",)
RENDERED = (*OWN, *SHIPPED)  # their units are in the machine; others are installed by tests
MOVED = ("moved", "small")  # each with two generations
STORE = "/var/lib/envbuild"
HOME = "/srv"
_PROGRAM = "/opt/envbuild"
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
_MOUNTS: Mapping[str, str] = {
    "payload.mount": """[Unit]
DefaultDependencies=no
Before=local-fs.target
[Mount]
What=/dev/vdb
Where=/payload
Type=ext4
Options=ro,noload
""",
    "var-lib-envbuild.mount": f"""[Unit]
DefaultDependencies=no
Requires=payload.mount
After=payload.mount
Before=local-fs.target
[Mount]
What=overlay
Where={STORE}
Type=overlay
Options=lowerdir=/payload/store,upperdir=/var/payload/store,workdir=/var/payload/work
""",
}
_NVML = "usr/lib/x86_64-linux-gnu"
_DRIVER = "550.54.15"  # as driver/nvidia.c says it
_CARDS = 3  # of driver/cards.c
_ENGINES = ("bin/uv", "bin/uvx", "rattler")  # large, and only `lock` and `create` need them


def make_payload(image: Image, disk: Path, *, moves: bool = False) -> None:
    """Make a disk with envbuild, the recipes of the tests with their locks, and a store of both.

    Args:
        image: The machine's.
        disk: Where.
        moves: Whether there are environments with two generations, too; they take a while.
    """
    with tempfile.TemporaryDirectory(dir=image.folder) as work:
        with _opened(image, Path(work)) as (root, changed):
            _fill(root, moves=moves)
        files = Path(work) / "files"
        files.mkdir()
        for place, name in ((_PROGRAM, "program"), (STORE, "store"), (HOME, "home")):
            (changed / place[1:]).rename(files / name)
        make_disk(disk, files, PAYLOAD_BYTES)


def _fill(root: Path, *, moves: bool) -> None:
    site = _install(root)
    shutil.copytree(PROGRAMS, root / HOME[1:], dirs_exist_ok=True)
    shutil.copytree(RECIPES, root / HOME[1:] / "recipes")
    _write_nvml(root / HOME[1:] / "nvml")
    moved = MOVED if moves else ()
    for name in (*OWN, *moved):
        _envbuild(root, ["lock", name])
    for name in (*RENDERED, *moved):
        _envbuild(root, ["create", name])
    for name in moved:
        _envbuild(root, ["create", name, "--reinstall"])
    for name in RENDERED:
        _envbuild(root, ["units", name, "--output", "units"])
    for engine in _ENGINES:
        for path in (site / engine, site.parents[2] / engine):
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)
    _in(root, [f"{_PROGRAM}/bin/python", "-m", "compileall", "-q", f"{_PROGRAM}/lib"])


def bring(machine: Machine) -> None:
    """Put what is on the second disk to its places, now and after each boot; reloads once."""
    for name, text in _MOUNTS.items():
        machine.put(f"/etc/systemd/system/{name}", text)
    machine.run(
        f"""set -e
        mkdir -p /opt /payload /usr/local/bin /var/payload/store /var/payload/work
        rmdir {HOME}
        ln -s /payload/home {HOME}
        ln -s /payload/program {_PROGRAM}
        ln -s {_PROGRAM}/bin/envbuild /usr/local/bin
        mount -o ro,noload /dev/vdb /payload
        cp {HOME}/nvidia-* /usr/bin
        cp -P {HOME}/nvml/* /{_NVML}
        ldconfig
        cd /etc/systemd/system
        cp {HOME}/units/* .
        mkdir -p local-fs.target.wants
        ln -s ../payload.mount ../var-lib-envbuild.mount local-fs.target.wants
        systemctl daemon-reload
        systemctl start var-lib-envbuild.mount
        """
    )


def _write_nvml(folder: Path) -> None:
    """Write the driver's library, which is the simulator, and what it is to say of the cards."""
    folder.mkdir()
    library = folder / f"{simulator.LIBRARY.removesuffix('1')}{_DRIVER}"
    shutil.copyfile(simulator.built(), library)
    (folder / simulator.LIBRARY).symlink_to(library.name)
    lines = [
        *simulator.expanded("cards/h100.scn"),
        f"system.gpus = {_CARDS}",
        f"system.driver = {_DRIVER}",
        f"system.library = 12.{_DRIVER}",
        "system.cuda = 12040",
        f"gpu.*.gsp.version = {_DRIVER}",
    ]
    for card in range(_CARDS):
        lines += [
            f"gpu.{card}.uuid = GPU-00000000-0000-4000-8000-{card:012}",
            f"gpu.{card}.pci = 00000000:10:{card:02}.0",
            f"gpu.{card}.minor = {card}",
        ]
    (folder / "nvmlsim.scenario").write_text("".join(f"{line}\n" for line in lines))


@contextlib.contextmanager
def _opened(image: Image, work: Path) -> Iterator[tuple[Path, Path]]:
    """Give the files of a machine, to be changed, and where what is changed lies."""
    layers = {name: work / name for name in ("upper", "work", "root")}
    for folder in layers.values():
        folder.mkdir()
    words = f"lowerdir={image.root},upperdir={layers['upper']},workdir={layers['work']}"
    run(["mount", "-t", "overlay", "-o", words, "overlay", layers["root"]])
    try:
        yield layers["root"], layers["upper"]
    finally:
        run(["umount", layers["root"]])


def _install(root: Path) -> Path:
    """Install envbuild as a virtual environment of the machine's Python; return its packages."""
    python = (root / "usr/bin/python3").readlink().name
    program = root / _PROGRAM[1:]
    site = program / "lib" / python / "site-packages"
    (program / "bin").mkdir(parents=True)
    (program / "bin/python").symlink_to("/usr/bin/python3")
    (program / "pyvenv.cfg").write_text("home = /usr/bin\n")
    source = Path(envbuild.__file__).parents[1]
    minor = python.removeprefix("python")
    words = ["pip", "install", "--quiet", "--target", f"{site}", "--python-version", minor]
    run([uv.find_uv_bin(), *words, source])
    for file in (site / "bin").iterdir():
        file.rename(program / "bin" / file.name)
    script = program / "bin/envbuild"
    _, _, rest = script.read_text().partition("\n")
    script.write_text(f"#!{_PROGRAM}/bin/python\n{rest}")
    return site


def _envbuild(root: Path, words: Sequence[str]) -> None:
    for path in ("/etc/resolv.conf", os.environ.get("SSL_CERT_FILE", _CERTIFICATES)):
        target = root / path[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        if Path(path).exists():
            target.unlink(missing_ok=True)
            shutil.copyfile(path, target)
    _in(root, [f"{_PROGRAM}/bin/envbuild", *words])


def _in(root: Path, words: Sequence[str]) -> None:
    kept = ("SSL_CERT_FILE", "UV_", "HTTP", "http", "NO_PROXY", "no_proxy")
    env = {name: value for name, value in os.environ.items() if name.startswith(kept)}
    env |= {"PATH": "/usr/sbin:/usr/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    inside = ["/bin/sh", "-c", f'cd {HOME} && exec "$0" "$@"', *words]
    done = subprocess.run(
        ["/usr/sbin/chroot", root, *inside],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
