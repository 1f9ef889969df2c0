"""What there is to say about services."""

import pytest

from envbuild.findings import Finding
from envbuild.recipe.load import loads
from envbuild.store.environment import Environment
from envbuild.units import hidden
from envbuild.units.judge import judge
from envbuild.units.model import Manager

_TMP = "/tmp"  # noqa: S108 - a name, nothing is there


def _found(
    fields: str, *, version: int = 252, activation: Environment | None = None
) -> list[Finding]:
    loaded = loads(f"name: x\nservices:\n  a: {{{fields}}}\n", source="x.yaml")
    return list(judge(loaded, Manager(version=version), activation=activation))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("exec: x, restart: {delay: 10s, limit: 5, interval: 10s}", "never-gives-up"),
        ("exec: torchrun t.py, stop: {checkpoint_time: 120s}", "torchrun-kills"),
        (
            "exec: python -m torch.distributed.run t, stop: {checkpoint_time: 2min}",
            "torchrun-kills",
        ),
        ("exec: x, environment: {HF_TOKEN: abc}", "secret-in-unit"),
        ("exec: x, restart: {max_delay: 1min}", "systemd-lacks"),
    ],
)
def test_what_is_said(fields: str, code: str) -> None:
    (found,) = _found(fields)
    assert found.code == code
    assert found.where.startswith("x.yaml:3:")


@pytest.mark.parametrize(
    "fields",
    [
        "exec: x, restart: {delay: 10s, limit: 5, interval: 1h}",
        "exec: x, restart: {delay: 1h, limit: 5}",
        "exec: x, restart: {policy: no, delay: 10s, limit: 5, interval: 10s}",
        "exec: torchrun t.py, stop: {checkpoint_time: 20s}",
        "exec: python t.py, stop: {checkpoint_time: 120s}",
        "exec: x, environment: {TOKENIZERS_PARALLELISM: true, KEYS: a}",
    ],
)
def test_what_is_fine(fields: str) -> None:
    assert _found(fields) == []


def test_the_longest_delay_counts() -> None:
    (found,) = _found("exec: x, restart: {max_delay: 1h, limit: 5, interval: 1h}", version=254)
    assert found.code == "never-gives-up"
    assert found.hint == "interval: 36000s"


def test_a_newer_systemd_lacks_nothing() -> None:
    assert _found("exec: x, restart: {max_delay: 1min}", version=254) == []


def test_a_variable_that_activation_sets() -> None:
    activation = Environment(set={"CUDA_HOME": "/p", "SAME": "1"})
    fields = "exec: x, environment: {CUDA_HOME: /q, SAME: 1, OWN: 2}"
    (found,) = _found(fields, activation=activation)
    assert found.code == "variable-of-activation"
    assert "CUDA_HOME" in found.what


@pytest.mark.parametrize(
    ("fields", "prefix", "where", "what"),
    [
        ("exec: x", f"{_TMP}/store/envs/x/generations/0", _TMP, "the generation lies in /tmp,"),
        ("exec: x", f"/var{_TMP}/s/envs/x/generations/0", f"/var{_TMP}/s/", "PrivateTmp=yes"),
        ("exec: /tmp/tool", "/srv/store", "x.yaml:3:", "services.a.exec lies in /tmp"),
        ("exec: x, write: [/srv, /tmp/out]", "/srv/store", "x.yaml:3:", "services.a.write.1"),
        ("exec: x, working_directory: /var/tmp", "/srv/store", "x.yaml:3:", "working_directory"),
    ],
)
def test_what_private_folders_hide_is_said(fields: str, prefix: str, where: str, what: str) -> None:
    loaded = loads(f"name: x\nservices:\n  a: {{{fields}}}\n", source="x.yaml")
    (found,) = hidden.judge(loaded, Manager(), prefix=prefix)
    assert (found.code, found.hint is not None) == ("path-hidden", True)
    assert found.where.startswith(where)
    assert what in found.what
    assert hidden.judge(loaded, Manager(scope="user"), prefix=prefix) == ()


def test_what_is_shown_of_a_home_is_not_hidden() -> None:
    fields = "exec: /home/t/x, working_directory: /home/t, read: [/root/y], write: [/tmpfs/z]"
    loaded = loads(f"name: x\nservices:\n  a: {{{fields}}}\n", source="x.yaml")
    assert hidden.judge(loaded, Manager(), prefix="/home/t/store/envs/x/generations/0") == ()
