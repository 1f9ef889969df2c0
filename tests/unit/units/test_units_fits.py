"""What a host's systemd can do, from made-up trees of its files."""

import grp
import os
from pathlib import Path

import pytest
from unit.units.rendering import rendered

from envbuild.findings import Severity
from envbuild.units import fits
from envbuild.units.fits import Seat
from envbuild.units.model import Manager, Scope, UnitFile

_LIMITS = (
    "services: {a: {exec: x, limits: {cpu_quota: 50%, cpus: 0-1, memory_high: 1G, io_weight: 5}}}"
)
_CARD = "services: {a: {exec: x, gpu: 1}, b: {exec: x}}"


def _files(text: str, scope: Scope = "system") -> tuple[UnitFile, ...]:
    found = rendered(text, manager=Manager(scope=scope))
    return tuple(UnitFile(name=name, text=text) for name, text in found.items())


def _seat(root: Path, scope: Scope = "system") -> Seat:
    return Seat(scope=scope, uid=1000, user="trainer", root=root)


def _write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _v2(root: Path) -> None:
    _write(root / "sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")


@pytest.mark.parametrize("hybrid", [False, True])
def test_version_1_is_refused_with_the_names_of_directives(tmp_path: Path, hybrid: bool) -> None:  # noqa: FBT001
    (tmp_path / "sys/fs/cgroup/memory").mkdir(parents=True)
    if hybrid:
        _write(tmp_path / "sys/fs/cgroup/unified/cgroup.controllers")
    (found,) = fits.judge(_files(_LIMITS), _seat(tmp_path))
    assert (found.code, found.severity) == ("directives-idle", Severity.ERROR)
    assert ("beside version 2" in found.what) == hybrid
    assert "MemoryHigh" in found.what
    assert "AllowedCPUs" in found.what
    assert "CPUQuota" not in found.what


def test_version_2_is_fine(tmp_path: Path) -> None:
    _v2(tmp_path)
    assert fits.judge(_files(_LIMITS), _seat(tmp_path)) == ()


def _disk(root: Path, name: str, number: str, scheduler: str) -> None:
    (root / "sys/block" / name / "device").mkdir(parents=True)
    _write(root / "sys/block" / name / "dev", f"{number}\n")
    _write(root / "sys/block" / name / "queue/scheduler", f"{scheduler}\n")


def test_weights_that_no_scheduler_heeds(tmp_path: Path) -> None:
    _v2(tmp_path)
    _disk(tmp_path, "sda", "8:0", "none mq-deadline [bfq]")
    _disk(tmp_path, "nvme0n1", "259:0", "[none] mq-deadline kyber")
    _disk(tmp_path, "nvme1n1", "259:1", "[none]")
    _write(tmp_path / "sys/block/loop0/queue/scheduler", "[none]\n")  # of a file, not of a device
    _write(
        tmp_path / "sys/fs/cgroup/io.cost.qos",
        "259:0 enable=0 ctrl=auto\n259:1 enable=1 ctrl=user\n",
    )
    (found,) = fits.judge(_files(_LIMITS), _seat(tmp_path))
    assert (found.code, found.severity) == ("io-weight-idle", Severity.WARNING)
    assert "on nvme0n1 (none):" in found.what
    assert str(found.hint).startswith("echo bfq >/sys/block/nvme0n1/queue/scheduler")
    assert fits.judge(_files("services: {a: {exec: x}}"), _seat(tmp_path)) == ()


def test_controllers_that_did_not_reach_a_user(tmp_path: Path) -> None:
    _v2(tmp_path)
    manager = tmp_path / "sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service"
    _write(manager / "cgroup.controllers", "cpuset cpu memory pids\n")
    _write(manager / "app.slice/cgroup.controllers", "cpu memory pids\n")
    _write(tmp_path / "var/lib/systemd/linger/trainer")
    first, second = fits.judge(_files(_LIMITS, "user"), _seat(tmp_path, "user"))
    assert (first.severity, second.severity) == (Severity.NOTE, Severity.ERROR)
    assert "cpuset is delegated to this user, and not enabled in app.slice" in first.what
    assert "AllowedCPUs" in first.what
    assert "io is not delegated" in second.what
    assert "IOWeight" in second.what
    assert "Delegate=cpu cpuset io memory pids" in str(second.hint)


def test_what_needs_root_is_an_error_in_a_users_unit(tmp_path: Path) -> None:
    """The templates that ship never say it; a site's may."""
    _v2(tmp_path)
    _write(tmp_path / "var/lib/systemd/linger/trainer")
    unit = UnitFile(name="envbuild-x.a.service", text="[Service]\nDeviceAllow=/dev/nvidia0 rw\n")
    (found,) = fits.judge((unit,), _seat(tmp_path, "user"))
    assert (found.code, found.severity) == ("controller-missing", Severity.ERROR)
    assert "a user's systemd cannot enforce DeviceAllow" in found.what


def test_a_user_who_does_not_linger(tmp_path: Path) -> None:
    _v2(tmp_path)
    found = fits.judge(_files("services: {a: {exec: x}}", "user"), _seat(tmp_path, "user"))
    assert [one.code for one in found] == ["ends-at-logout"]
    assert found[0].hint == "loginctl enable-linger trainer"


@pytest.mark.parametrize(
    ("mode", "group", "line"),
    [
        (0o660, 44, "SupplementaryGroups=video"),
        (0o660, 59999, "SupplementaryGroups=59999"),
        (0o666, 0, None),
    ],
)
def test_the_groups_of_nodes_come_from_the_host(
    tmp_path: Path, mode: int, group: int, line: str | None
) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving files to a group needs root")
    _v2(tmp_path)
    for name, own in (("nvidia0", mode), ("nvidiactl", mode), ("nvidia-uvm", 0o666)):
        path = tmp_path / "dev" / name
        _write(path)
        os.chown(path, 0, group)
        path.chmod(own)
    files = _files(_CARD)
    assert fits.judge(files, _seat(tmp_path)) == ()
    made = fits.drop_ins(files, _seat(tmp_path))
    if line is None:
        assert made == ()
    else:
        (drop_in,) = made
        assert drop_in.name == "envbuild-x.a.service.d/50-envbuild-host.conf"
        assert line in drop_in.text.splitlines()


def test_nodes_for_root_alone_are_an_error(tmp_path: Path) -> None:
    _v2(tmp_path)
    _write(tmp_path / "dev/nvidiactl")
    (tmp_path / "dev/nvidiactl").chmod(0o600)
    files = _files(_CARD.replace("gpu: 1", "gpu: 1, user: trainer"))
    (found,) = fits.judge(files, _seat(tmp_path))
    assert (found.code, found.where) == ("device-node-permission", "/dev/nvidiactl")
    group = grp.getgrgid((tmp_path / "dev/nvidiactl").stat().st_gid).gr_name
    assert found.what == f"trainer may not open /dev/nvidiactl (0600, group {group})"
    assert fits.judge(_files(_CARD.replace("gpu: 1", "gpu: 1, user: root")), _seat(tmp_path)) == ()
