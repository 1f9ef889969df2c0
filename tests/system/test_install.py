"""`units install` in a machine: what it starts, puts back and changes as it runs."""

from system import marks
from system.machine import Machine

WEB = "envbuild-small.web.service"
UNITS = "/etc/systemd/system"


def reloads(guest: Machine) -> int:
    return guest.journal("-b", "--identifier=systemd").count("Reloading.")


def change(guest: Machine, old: str, new: str, *, name: str = "small") -> None:
    """Write a changed recipe where the changed one is looked for."""
    # /srv is read-only in the machine: the second disk.
    guest.run(f"mkdir -p /root/recipes && cp -n /srv/recipes/{name}.yaml /root/recipes")
    guest.run(["sed", "-i", f"s/{old}/{new}/", f"/root/recipes/{name}.yaml"])


def install(guest: Machine, *words: str, name: str = "small", check: bool = True) -> int:
    guest.run(f"mkdir -p /root/recipes && cp -n /srv/recipes/{name}.yaml /root/recipes")
    return envbuild(guest, "units", "install", name, *words, check=check)


def envbuild(guest: Machine, *words: str, check: bool = True) -> int:
    """Run envbuild where recipes and locks are found."""
    command = f"cd /root && ENVBUILD_LOCKFILES=/srv/lockfiles envbuild {' '.join(words)}"
    return guest.run(command, check=check, timeout_s=600).code


@marks.long
def test_install_starts_and_puts_back_what_fails(guest: Machine) -> None:
    before = reloads(guest)
    install(guest)
    assert reloads(guest) == before + 1
    assert guest.show(WEB, "ActiveState", "UnitFileState") == {
        "ActiveState": "active",
        "UnitFileState": "enabled",
    }
    there = guest.run(f"cd {UNITS} && sha256sum envbuild-small*").out
    pid = guest.show(WEB, "MainPID")
    change(guest, "http.server", "no_such_module")
    assert install(guest, check=False) != 0
    assert guest.run(f"cd {UNITS} && sha256sum envbuild-small*").out == there
    assert guest.show(WEB, "ActiveState") == {"ActiveState": "active"}
    assert guest.show(WEB, "MainPID") != pid  # it was tried, and started as it was
    change(guest, "no_such_module", "http.server")
    change(guest, "tasks_max: 50", "tasks_max: 60")
    pid = guest.show(WEB, "MainPID")
    install(guest)
    assert guest.show(WEB, "MainPID") == pid  # a limit is changed while it runs
    limit = guest.run("cat /sys/fs/cgroup/envbuild.slice/envbuild-small.slice/pids.max").out
    assert limit == "60\n"
