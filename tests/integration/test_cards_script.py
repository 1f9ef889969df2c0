"""The script that gives cards to services, as their units run it, on hosts that are folders."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from integration import tracing
from nvmlsim.simulator import LIBRARY, place

from envbuild.host.gpus import read_nvml
from envbuild.host.readings import Value
from envbuild.store import cards, compute_mode

_STEP = 1 if os.environ.get("ENVBUILD_KILLS") == "all" else 3
_MINORS = (0, 1, 2)
_SYSTEMCTL = """#!/bin/sh
printf '%s\\n' "$*" >> {log}
exit {status}
"""


class Host:
    """A host of three cards, the first two next to one memory node."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "systemctl.log"
        for minor in _MINORS:
            address = f"0000:{minor}b:00.0"
            self.write(
                f"proc/driver/nvidia/gpus/{address}/information",
                f"Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-{minor}\nDevice Minor: \t {minor}\n",
            )
            self.write(f"sys/bus/pci/devices/{address}/numa_node", f"{minor // 2}\n")
            near = f"{minor // 2 * 8}-{minor // 2 * 8 + 7}\n"
            self.write(f"sys/bus/pci/devices/{address}/local_cpulist", near)
        self.program()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def program(self, status: int = 0) -> None:
        path = self.root / "systemctl"
        path.write_text(_SYSTEMCTL.format(log=self.log, status=status))
        path.chmod(0o755)

    def start(self, unit: str) -> None:
        """Make the unit's cgroup, and be in it."""
        (self.root / f"sys/fs/cgroup/{unit}").mkdir(parents=True, exist_ok=True)
        self.write("proc/self/cgroup", f"0::/{unit}\n")

    def end(self, unit: str) -> None:
        (self.root / f"sys/fs/cgroup/{unit}").rmdir()

    def argv(self, what: str, unit: str, *words: str) -> list[str]:
        own = ["--root", f"{self.root}", "--systemctl", f"{self.root / 'systemctl'}"]
        if what == "take":
            script = Path(cards.__file__).with_suffix(".sh")
            return ["/bin/sh", f"{script}", sys.executable, unit, *words, *own]
        return [sys.executable, "-I", "-S", cards.__file__, what, unit, *words, *own]

    def run(self, what: str, unit: str, *words: str) -> tuple[int, str]:
        done = subprocess.run(
            self.argv(what, unit, *words), capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr.strip()

    def take(self, unit: str, *words: str) -> tuple[int, str]:
        self.start(unit)
        return self.run("take", unit, *words)

    def variables(self, unit: str) -> dict[str, str]:
        lines = (self.root / f"run/envbuild/cards/{unit}.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if not line.startswith("#"))

    def told(self) -> list[str]:
        return self.log.read_text().splitlines()

    def held(self) -> dict[str, list[str]]:
        found = json.loads((self.root / "run/envbuild/cards.json").read_text())
        return {unit: one["cards"] for unit, one in found.items()}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_two_services_get_different_cards(host: Host) -> None:
    assert host.take("a.service", "--affinity", "auto") == (0, "a.service has GPU-2")
    assert host.take("b.service", "--affinity", "auto") == (0, "b.service has GPU-0")
    assert host.variables("a.service") == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "GPU-2",
    }
    assert host.told()[1] == (
        "set-property --runtime b.service AllowedCPUs=0-7 AllowedMemoryNodes=0 "
        "DeviceAllow= DeviceAllow=/dev/nvidiactl rw "
        "DeviceAllow=char-nvidia-uvm rw DeviceAllow=/dev/nvidia0 rw"
    )


def test_several_cards_lie_next_to_one_node(host: Host) -> None:
    assert host.take("a.service", "--count", "2") == (0, "a.service has GPU-0, GPU-1")
    code, why = host.take("b.service", "--count", "2")
    assert code == cards.LATER
    assert why == (
        "b.service: it wants 2 of 3 cards, and 1 are free; a.service has 0000:0b:00.0; "
        "a.service has 0000:1b:00.0"
    )
    assert host.take("c.service") == (0, "c.service has GPU-2")


def test_cards_come_back_after_an_end_and_after_a_crash(host: Host) -> None:
    words = ("--card", "1")
    assert host.take("a.service", *words)[0] == 0
    assert host.take("b.service", *words)[0] == cards.LATER
    assert host.run("give", "a.service")[0] == 0
    assert not (host.root / "run/envbuild/cards/a.service.env").exists()
    assert host.take("b.service", *words)[0] == 0
    host.end("b.service")  # its machine's systemd never ran what comes after its end
    assert host.take("a.service", *words)[0] == 0
    assert host.held() == {"a.service": ["GPU-1"]}
    assert not (host.root / "run/envbuild/cards/b.service.env").exists()


@pytest.mark.parametrize("word", ["1", "GPU-1", "0000:1b:00.0", "00000000:1B:00.0", "1b:00.0"])
def test_pins(host: Host, word: str) -> None:
    assert host.take("a.service", "--card", word) == (0, "a.service has GPU-1")
    assert host.take("b.service", "--card", "7") == (
        cards.LATER,
        "b.service: there are no cards 7, only 0 of them",
    )


def test_a_start_again_keeps_nothing_of_the_last(host: Host) -> None:
    assert host.take("a.service", "--card", "0")[0] == 0
    assert host.take("a.service", "--card", "1")[0] == 0
    assert host.held() == {"a.service": ["GPU-1"]}
    assert "DeviceAllow=/dev/nvidia0 rw" not in host.told()[-1]


def test_what_systemd_was_told_before_is_not_told_again(host: Host) -> None:
    assert host.take("a.service", "--card", "0")[0] == 0
    _told_before(host, "a.service")
    (host.root / "run/envbuild/cards/a.service.env").unlink()
    assert host.take("a.service", "--card", "0")[0] == 0
    assert len(host.told()) == 1
    assert host.take("a.service", "--card", "1")[0] == 0
    assert len(host.told()) == 2
    _told_before(host, "a.service", 1)
    assert host.take("a.service", "--card", "0")[0] == 0
    assert len(host.told()) == 3


def _told_before(host: Host, unit: str, minor: int = 0) -> None:
    """Write the drop-in that systemd writes when it is told of a card."""
    lines = ["DeviceAllow=", f"/dev/nvidia{minor} rw", "char-nvidia-uvm rw", "/dev/nvidiactl rw"]
    text = "\nDeviceAllow=".join(lines)
    drop_in = f"run/systemd/system.control/{unit}.d/50-DeviceAllow.conf"
    host.write(drop_in, f"# This is a drop-in\n[Service]\n{text}\n")


def test_a_service_keeps_its_card_where_nobody_took_it(host: Host) -> None:
    kept = (0, "a.service keeps its cards")
    assert host.take("a.service") == (0, "a.service has GPU-2")
    _told_before(host, "a.service", 2)
    variables = host.variables("a.service")
    assert host.take("a.service") == kept
    host.end("a.service")
    assert host.take("a.service") == kept
    assert host.variables("a.service") == variables
    assert host.take("b.service") == (0, "b.service has GPU-0")
    assert host.held() == {"a.service": ["GPU-2"], "b.service": ["GPU-0"]}

    host.end("a.service")
    assert host.take("c.service", "--card", "2") == (0, "c.service has GPU-2")
    assert host.take("a.service") == (0, "a.service has GPU-1")
    assert host.held()["c.service"] == ["GPU-2"]


@pytest.mark.parametrize("what", ["another wish", "no card", "cut", "not told", "no lock"])
def test_a_service_does_not_keep_what_is_no_more(host: Host, what: str) -> None:
    assert host.take("a.service") == (0, "a.service has GPU-2")
    _told_before(host, "a.service", 2)
    if what == "no card":
        gone = host.root / "proc/driver/nvidia/gpus/0000:2b:00.0"
        (gone / "information").unlink()
        gone.rmdir()
    if what == "cut":
        (host.root / "proc/driver/nvidia/capabilities/gpu2/mig/gi3").mkdir(parents=True)
    if what == "not told":
        (host.root / "run/systemd/system.control/a.service.d/50-DeviceAllow.conf").unlink()
    if what == "no lock":
        (host.root / "run/envbuild/cards.lock").unlink()
    words = ("--card", "0") if what == "another wish" else ()
    other = "GPU-2" if what in {"not told", "no lock"} else "GPU-0"
    assert host.take("a.service", *words) == (0, f"a.service has {other}")


def test_what_systemd_refuses_is_not_held(host: Host) -> None:
    host.program(status=1)
    assert host.take("a.service") == (
        cards.LATER,
        "a.service: systemd does not let it open its cards",
    )
    assert host.held() == {}


def test_a_host_without_cards(tmp_path: Path) -> None:
    host = Host(tmp_path)
    for minor in _MINORS:
        (tmp_path / f"proc/driver/nvidia/gpus/0000:{minor}b:00.0/information").unlink()
        (tmp_path / f"proc/driver/nvidia/gpus/0000:{minor}b:00.0").rmdir()
    assert host.take("a.service")[1] == (
        "a.service: the driver shows no card in /proc/driver/nvidia/gpus"
    )


def test_a_card_that_never_woke_is_named_by_its_number(host: Host) -> None:
    host.write(
        "proc/driver/nvidia/gpus/0000:1b:00.0/information",
        "GPU UUID: \t GPU-????????-????-????-????-????????????\nDevice Minor: 1\n",
    )
    assert host.take("a.service", "--card", "1")[0] == 0
    assert host.variables("a.service")["CUDA_VISIBLE_DEVICES"] == "1"


def test_clients_get_the_card_of_their_server(host: Host) -> None:
    server = "envbuild-x._mps-any.service"
    words = ("--mode", "mps", "--server", server, "--memory", "8G")
    assert host.take("a.service", *words) == (
        cards.LATER,
        f"a.service: {server} has no card: it does not run",
    )
    assert host.take(server, "--mode", "mps", "--card", "1")[0] == 0
    assert host.take("a.service", *words)[0] == 0
    assert host.take("b.service", *words)[0] == 0
    assert host.variables("b.service") == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "GPU-1",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=8G",
    }
    assert host.take("c.service", "--card", "1")[0] == cards.LATER


def test_after_a_killed_client_the_server_starts_anew(host: Host) -> None:
    words = host.argv("give", "a.service", "--server", "envbuild-x._mps-any.service")
    for result in ("success", "exit-code", "signal"):
        subprocess.run(words, env={"SERVICE_RESULT": result}, check=True)
    assert host.told() == ["restart --no-block envbuild-x._mps-any.service"]


def _instance(host: Host, number: int, job: str, memory_mib: int) -> dict[str, object]:
    folder = f"proc/driver/nvidia/capabilities/gpu0/mig/gi{number}"
    host.write(f"{folder}/access", f"DeviceFileMinor: {number * 9 + 3}\nDeviceFileMode: 292\n")
    host.write(f"{folder}/ci0/access", f"DeviceFileMinor: {number * 9 + 4}\n")
    return {
        "uuid": f"MIG-{number}",
        "card_uuid": "GPU-0",
        "address": "0000:0b:00.0",
        "index": 0,
        "minor": 0,
        "gpu_instance": number,
        "compute_instance": 0,
        "memory_mib": memory_mib,
        "card_mib": 81920,
        "sm_percent": 3 / 7 * 100,
        "job": job,
    }


def test_mig_instances(host: Host) -> None:
    made = [_instance(host, 3, "x.b", 40448), _instance(host, 4, "x.a", 40448)]
    gone = {**made[0], "gpu_instance": 5, "uuid": "MIG-5"}
    host.write("run/envbuild/instances.json", json.dumps([gone, *made]))
    words = ("--mode", "mig", "--memory", "39G", "--sm", "40%")
    assert host.take("a.service", "--job", "x.a", *words) == (0, "a.service has MIG-4")
    assert host.take("b.service", "--job", "x.c", *words) == (0, "b.service has MIG-3")
    assert host.told()[0].endswith(
        "DeviceAllow=/dev/nvidia0 rw DeviceAllow=/dev/nvidia-caps/nvidia-cap39 r "
        "DeviceAllow=/dev/nvidia-caps/nvidia-cap40 r"
    )
    assert host.variables("a.service")["CUDA_VISIBLE_DEVICES"] == "MIG-4"
    code, why = host.take("c.service", *words)
    assert code == cards.LATER
    assert why.startswith("c.service: none of 2 MIG instances is free and has what it wants")
    # A card that is cut is nobody's whole.
    assert host.take("d.service", "--card", "0")[1].endswith("0000:0b:00.0 is cut by MIG")


def test_many_at_once_never_share(host: Host) -> None:
    units = [f"s{number}.service" for number in range(8)]
    for unit in units:
        host.start(unit)
    running = [
        subprocess.Popen(host.argv("take", unit), stderr=subprocess.PIPE, text=True)
        for unit in units
    ]
    codes = [one.wait(timeout=60) for one in running]
    for one in running:
        one.communicate()
    assert sorted(codes) == [0, 0, 0, *[cards.LATER] * 5]
    assert len({card for cards_ in host.held().values() for card in cards_}) == 3


@pytest.mark.skipif(tracing.missing() is not None, reason=f"{tracing.missing()}")
def test_killed_anywhere_the_card_is_there_for_the_next(host: Host) -> None:
    argv = host.argv("take", "a.service", "--card", "0")
    host.take("a.service", "--card", "0")
    calls = len(tracing.run(argv, root=host.root, env={}).calls)
    assert calls > 3
    for at in range(0, calls, _STEP):
        assert tracing.run(argv, root=host.root, env={}, at=at).status == -signal.SIGKILL
        host.end("a.service")
        assert host.take("c.service", "--card", "0") == (0, "c.service has GPU-0")
        assert host.held() == {"c.service": ["GPU-0"]}
        host.end("c.service")
        host.start("a.service")


def test_a_server_has_its_card_alone_until_it_ends(host: Host) -> None:
    place(host.root, "h100x8-idle", "system.gpus = 3")
    library = host.root / "usr/lib64" / LIBRARY
    for minor in _MINORS:
        with (host.root / "usr/lib64/nvmlsim.scenario").open("a") as file:
            file.write(f"gpu.{minor}.pci = 00000000:{minor}B:00.0\n")
    server = "envbuild-x._mps-any.service"
    assert host.take(server, "--mode", "mps", "--card", "1")[0] == 0

    def mode(what: str) -> int:
        own = ["--root", f"{host.root}", "--nvml", f"{library}"]
        argv = [sys.executable, "-I", compute_mode.__file__, what, server, *own]
        return subprocess.run(argv, check=False).returncode

    def modes() -> list[object]:
        return [gpu.compute_mode for gpu in read_nvml(host.root).gpus]

    default, exclusive = Value("default"), Value("exclusive-process")
    assert mode("exclusive") == 0
    assert modes() == [default, exclusive, default]
    assert mode("exclusive") == 0  # as after a crash: what it was before is not forgotten
    words = ("--mode", "mps", "--server", server)
    assert host.take("a.service", *words, "--memory", "60G")[0] == 0
    assert host.take("b.service", *words, "--memory", "30G")[1] == (
        "b.service: it wants 30.0G of its card, which has 79.6G, and others have 60.0G of that"
    )
    assert host.take("a.service", *words, "--memory", "70G")[0] == 0
    assert mode("back") == 0
    assert modes() == [default] * 3
    assert mode("back") == 0
