"""What confines programs on this host: SELinux, AppArmor, user namespaces. Only read, never set."""

import os
from dataclasses import dataclass
from pathlib import Path

_LABEL = "security.selinux"


@dataclass(frozen=True, kw_only=True, slots=True)
class Confinement:
    """What the kernel says.

    Attributes:
        selinux: `enforcing`, `permissive`, or None where it is off.
        apparmor: Whether AppArmor is on.
        user_namespaces: Whether a user who is not root may make user namespaces; None where the
            kernel does not say.
    """

    selinux: str | None
    apparmor: bool
    user_namespaces: bool | None


def read(root: Path = Path("/")) -> Confinement:
    """Return what confines programs.

    SELinux: `enforce` in selinuxfs is 1 while it refuses, 0 while it only tells (selinux(8)).
    AppArmor: its module's parameter `enabled`. User namespaces: `max_user_namespaces`
    (user_namespaces(7)), Debian's `unprivileged_userns_clone`, and Ubuntu's
    `apparmor_restrict_unprivileged_userns`
    (https://ubuntu.com/blog/ubuntu-23-10-restricted-unprivileged-user-namespaces).

    Args:
        root: Where `/sys` and `/proc` are.
    """
    enforce = _text(root / "sys/fs/selinux/enforce")
    most = _text(root / "proc/sys/user/max_user_namespaces")
    clone = _text(root / "proc/sys/kernel/unprivileged_userns_clone")
    restricted = _text(root / "proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    return Confinement(
        selinux={"1": "enforcing", "0": "permissive"}.get(enforce or ""),
        apparmor=_text(root / "sys/module/apparmor/parameters/enabled") == "Y",
        user_namespaces=None
        if most is None
        else most != "0" and clone != "0" and restricted in {None, "0"},
    )


def label(path: Path) -> str | None:
    """Return the SELinux type of a file (`var_lib_t`), links followed, or None if it has none."""
    try:
        context = os.getxattr(path, _LABEL).decode(errors="replace").rstrip("\0")
    except OSError:
        return None
    parts = context.split(":")
    return parts[2] if len(parts) > 2 else None  # noqa: PLR2004 - user:role:type[:level]


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
