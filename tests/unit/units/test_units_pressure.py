"""Pressure of a control group, from files as the kernel writes them."""

from pathlib import Path

from envbuild.units import pressure

_CPU = """\
some avg10=43.21 avg60=12.00 avg300=1.00 total=123
full avg10=1.00 avg60=0.00 avg300=0.00 total=12
"""


def test_what_some_task_waited_for(tmp_path: Path) -> None:
    group = tmp_path / "sys/fs/cgroup/envbuild.slice/a.service"
    group.mkdir(parents=True)
    (group / "cpu.pressure").write_text(_CPU)
    (group / "memory.pressure").write_text(_CPU.replace("43.21", "0.00"))
    told = pressure.read("/envbuild.slice/a.service", root=tmp_path)
    assert told == {"cpu": 43.21, "memory": 0.0}
    assert pressure.read("/envbuild.slice/gone.service", root=tmp_path) == {}
