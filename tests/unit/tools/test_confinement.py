"""What the kernel says of SELinux, AppArmor and user namespaces."""

from pathlib import Path

import pytest

from envbuild.tools import confinement
from envbuild.tools.confinement import Confinement


def _host(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def test_nothing(tmp_path: Path) -> None:
    assert confinement.read(tmp_path) == Confinement(
        selinux=None, apparmor=False, user_namespaces=None
    )


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"sys/fs/selinux/enforce": "1"}, ("enforcing", False, None)),
        ({"sys/fs/selinux/enforce": "0"}, ("permissive", False, None)),
        ({"sys/module/apparmor/parameters/enabled": "Y"}, (None, True, None)),
        ({"sys/module/apparmor/parameters/enabled": "N"}, (None, False, None)),
        ({"proc/sys/user/max_user_namespaces": "100"}, (None, False, True)),
        ({"proc/sys/user/max_user_namespaces": "0"}, (None, False, False)),
    ],
)
def test_each(
    tmp_path: Path, files: dict[str, str], found: tuple[str | None, bool, bool | None]
) -> None:
    seen = confinement.read(_host(tmp_path, **files))
    assert (seen.selinux, seen.apparmor, seen.user_namespaces) == found


@pytest.mark.parametrize(
    ("name", "text"),
    [("unprivileged_userns_clone", "0"), ("apparmor_restrict_unprivileged_userns", "1")],
)
def test_distributions_close_user_namespaces(tmp_path: Path, name: str, text: str) -> None:
    files = {"proc/sys/user/max_user_namespaces": "100", f"proc/sys/kernel/{name}": text}
    assert confinement.read(_host(tmp_path, **files)).user_namespaces is False


def test_a_file_without_a_label(tmp_path: Path) -> None:
    assert confinement.label(tmp_path / "gone") is None
