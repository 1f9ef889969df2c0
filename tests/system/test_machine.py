"""The machine of the tests itself: what is written survives, what was not flushed is lost."""

from system import marks
from system.machine import Machine
from system.test_services import WEB, unit


@marks.long
def test_what_is_enabled_starts_at_boot(guest: Machine) -> None:
    guest.run(["systemctl", "enable", "--quiet", WEB, "envbuild-plain.asked.socket"])
    before = guest.run("cat /proc/sys/kernel/random/boot_id").out
    guest.put("/var/unflushed", "lost")
    guest.run("sync")
    guest.put("/var/unflushed", "lost, too")
    guest.power_cut()
    assert guest.run("cat /proc/sys/kernel/random/boot_id").out != before
    guest.until(lambda: guest.show(WEB, "ActiveState")["ActiveState"] == "active")
    assert guest.run("cat /var/unflushed").out == "lost"
    assert guest.show("envbuild-plain.asked.socket", "ActiveState") == {"ActiveState": "active"}
    assert guest.show(unit("asked"), "ActiveState") == {"ActiveState": "inactive"}
    assert guest.run("envbuild --version").out.startswith("envbuild ")
