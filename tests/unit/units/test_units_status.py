"""What `units status` says of a unit whose files systemd takes for changed."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from envbuild.tools.run import Completed
from envbuild.tools.systemd import Systemd
from envbuild.units.status import rows

_CHANGED = "its file was changed after systemd read it: systemctl daemon-reload"
_SET = "/run/systemd/system.control/x.service.d/50-DeviceAllow.conf"


def _systemd(unit: Path, *drop_ins: Path | str) -> Systemd:
    """Return a manager that read its units a minute ago and wants to be reloaded."""
    told = {
        "Id": unit.name,
        "ActiveState": "active",
        "NeedDaemonReload": "yes",
        "FragmentPath": unit,
        "DropInPaths": " ".join(map(str, drop_ins)),
    }
    read_at = int((time.monotonic() - 60) * 1e6)

    def runner(argv: Sequence[str | os.PathLike[str]], **_: object) -> Completed:
        manager = "--property=UnitsLoadTimestampMonotonic" in argv
        shown = {"UnitsLoadTimestampMonotonic": read_at} if manager else told
        text = "".join(f"{name}={value}\n" for name, value in shown.items())
        return Completed(argv=tuple(map(str, argv)), status=0, stdout=text, stderr="")

    return Systemd(runner=runner)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    unit = tmp_path / "x.service"
    (tmp_path / "x.service.d").mkdir()
    for file in (unit, tmp_path / "x.service.d/own.conf"):
        file.write_text("[Service]\n")
    for path in (unit, tmp_path / "x.service.d/own.conf", tmp_path / "x.service.d"):
        os.utime(path, (time.time() - 3600,) * 2)
    return unit


def _why(systemd: Systemd) -> str:
    (row,) = rows(systemd, ["x.service"])
    return row.why


def test_a_unit_whose_properties_were_set_is_not_taken_for_changed(unit: Path) -> None:
    drop_in = unit.parent / "x.service.d/own.conf"
    assert _why(_systemd(unit, drop_in, _SET)) == ""
    assert _why(_systemd(unit, _SET)) == ""


def test_changed_files_are_told(unit: Path) -> None:
    drop_in = unit.parent / "x.service.d/own.conf"
    assert _why(_systemd(unit, drop_in)) == _CHANGED
    for changed in (drop_in, unit):
        os.utime(changed)
        assert _why(_systemd(unit, drop_in, _SET)) == _CHANGED
        os.utime(changed, (time.time() - 3600,) * 2)
    (drop_in.parent / "another.conf").write_text("")
    assert _why(_systemd(unit, drop_in, _SET)) == _CHANGED
    drop_in.unlink()
    assert _why(_systemd(unit, drop_in, _SET)) == _CHANGED
