"""What `self check` finds in the way."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envbuild.access import Access
from envbuild.findings import Severity
from envbuild.pipeline.self_check import Facts, StoreFacts, judge, look
from envbuild.store.layout import STORE_FORMAT, Store
from envbuild.tools.confinement import Confinement
from envbuild.tools.trying import Abilities

_ABLE = Abilities(
    free_bytes=1, hard_links=True, reflinks=False, tells_case=True, executes=True, locks=True
)
_STORE = StoreFacts(
    root=Path("/store"), format=STORE_FORMAT, environments=1, file_system="ext4", abilities=_ABLE
)
_FINE = Facts(
    engines={"uv": "1"},
    store=_STORE,
    confinement=Confinement(selinux=None, apparmor=True, user_namespaces=True),
    systemd=True,
    cgroup2=True,
    compilers={},
    encoding="utf-8",
)


def _store(**changes: Any) -> Facts:  # noqa: ANN401
    return replace(_FINE, store=replace(_STORE, **changes))


def _able(**changes: bool) -> Facts:
    return _store(abilities=replace(_ABLE, **changes))


def test_nothing_is_in_the_way() -> None:
    assert judge(_FINE) == ()
    assert judge(_store(format=None)) == ()
    assert judge(_able(hard_links=False, reflinks=True)) == ()


@pytest.mark.parametrize(
    ("facts", "code", "severity"),
    [
        (replace(_FINE, engines={"uv": None}), "engine-missing", Severity.ERROR),
        (_store(format=STORE_FORMAT + 1), "store-newer", Severity.ERROR),
        (_store(abilities=None, problem="closed"), "store-closed", Severity.ERROR),
        (_able(executes=False), "store-no-programs", Severity.ERROR),
        (_able(locks=False), "store-no-locks", Severity.ERROR),
        (_able(tells_case=False), "store-ignores-case", Severity.WARNING),
        (_able(hard_links=False), "store-copies", Severity.WARNING),
        (replace(_FINE, encoding="ANSI_X3.4-1968"), "locale-not-utf8", Severity.WARNING),
        (
            replace(_FINE, reached={"http://a": "", "http://b": "no"}),
            "network-unreachable",
            Severity.ERROR,
        ),
    ],
)
def test_what_is_in_the_way(facts: Facts, code: str, severity: Severity) -> None:
    (found,) = judge(facts)
    assert (found.code, found.severity) == (code, severity)
    assert found.hint


@pytest.mark.parametrize(
    ("selinux", "label", "severity"),
    [
        ("enforcing", "var_lib_t", Severity.WARNING),
        ("permissive", "user_home_t", Severity.NOTE),
        ("enforcing", "bin_t", None),
        ("enforcing", "httpd_exec_t", None),
        ("enforcing", None, None),
        (None, "var_lib_t", None),
    ],
)
def test_selinux_labels(selinux: str | None, label: str | None, severity: Severity | None) -> None:
    confined = replace(_FINE.confinement, selinux=selinux)
    found = judge(replace(_store(label=label), confinement=confined))
    assert [one.severity for one in found] == ([] if severity is None else [severity])
    if found:
        assert found[0].code == "selinux-label"
        assert found[0].hint == (
            "semanage fcontext -a -t bin_t '/store/envs/[^/]+/generations/[^/]+/bin(/.*)?'"
            " && restorecon -R /store/envs"
        )


def test_looking_changes_nothing_and_shows_no_login(tmp_path: Path) -> None:
    access = Access(environment={"https_proxy": "http://bob:s3cret@p:1", "NETRC": "/n"})
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    store = Store(root=tmp_path / "none/store")
    found = look(store, access, search="", encoding="UTF-8", network=False, root=tmp_path)
    assert found.proxies == {"https_proxy": "http://p:1"}
    assert found.systemd
    assert not found.cgroup2
    assert found.compilers == {}
    assert found.store.format is None
    assert found.reached is None
    assert judge(found) == ()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_format_that_cannot_be_read(tmp_path: Path) -> None:
    store = Store(root=tmp_path)
    store.format.write_text("{}")
    found = look(store, Access(), search="", encoding="UTF-8", network=False, root=tmp_path)
    assert [one.code for one in judge(found)] == ["store-closed"]


def test_the_label_of_a_program_is_read(tmp_path: Path) -> None:
    store = Store(root=tmp_path / "store")
    program = store.place("demo").current / "bin/python"
    program.parent.mkdir(parents=True)
    (store.place("demo").generations).mkdir()
    program.touch()
    try:
        os.setxattr(program, "security.selinux", b"system_u:object_r:var_lib_t:s0\0")
    except OSError:
        pytest.skip("extended attributes of security cannot be set here")
    (tmp_path / "sys/fs/selinux").mkdir(parents=True)
    (tmp_path / "sys/fs/selinux/enforce").write_text("1")
    found = look(store, Access(), search="", encoding="UTF-8", network=False, root=tmp_path)
    assert found.store.label == "var_lib_t"
    assert [one.code for one in judge(found)] == ["selinux-label"]
