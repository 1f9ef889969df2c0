"""What there is to say about services."""

import pytest

from envbuild.findings import Finding
from envbuild.recipe.load import loads
from envbuild.store.environment import Environment
from envbuild.units.judge import judge
from envbuild.units.model import Manager


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
