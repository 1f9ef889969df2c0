"""GPU code of packages that was read: what a card lacks, and what a host needs."""

import pytest

from envbuild.findings import Severity
from envbuild.store import gpu_code
from envbuild.store.gpu_code import Codes
from envbuild.target import Need, Needs

SITE = "lib/python3.11/site-packages"
_UNKNOWN = Need(value=None, origin=None)


def needs(capabilities: str | None) -> Needs:
    origin = None if capabilities is None else "facts"
    return Needs(
        driver=_UNKNOWN,
        gpus=_UNKNOWN,
        glibc=_UNKNOWN,
        cuda=_UNKNOWN,
        capabilities=Need(value=capabilities, origin=origin),
    )


def codes(**files: str) -> Codes:
    return {"pypi:k": {f"{SITE}/{name}.so": text for name, text in files.items()}}


@pytest.mark.parametrize(
    ("files", "cards", "severity", "what"),
    [
        ({"a": "sm_90"}, "9.0", None, ""),
        ({"a": "sm_80 compute_80"}, "9.0", None, ""),
        ({"a": "sm_90"}, None, None, ""),
        ({"a": "sm_90"}, "none", None, ""),
        ({"a": "sm_80"}, "9.0", Severity.ERROR, "it has no code for compute capability 9.0"),
        ({"a": "sm_100a"}, "10.3", Severity.ERROR, "a.so holds sm_100a"),
        ({"a": "sm_90 sm_90a", "b": "sm_80"}, "9.0", Severity.WARNING, "1 of its 2 libraries"),
    ],
)
def test_what_a_card_lacks(
    files: dict[str, str], cards: str | None, severity: Severity | None, what: str
) -> None:
    found = gpu_code.lacking(codes(**files), needs(cards))
    assert [one.severity for one in found] == [severity] * (severity is not None)
    assert all((one.code, one.where) == ("no-gpu-code", "pypi:k") for one in found)
    assert all(what in one.what for one in found)


def test_libraries_that_a_repair_tool_added_do_not_count() -> None:
    held = {"pypi:k": {"k/own.so": "sm_80", "k.libs/libother-0123abcd.so.1": "compute_52"}}
    (found,) = gpu_code.lacking(held, needs("9.0"))
    assert found.severity == Severity.ERROR
    assert gpu_code.completed(needs("9.0"), held).codes.value == "k: sm_80"


def test_needs_say_what_was_read() -> None:
    held = {"pypi:a": {"a": "sm_90 compute_90"}, "conda:b": {"b": "sm_90 compute_90"}}
    assert gpu_code.completed(needs("9.0"), held).codes.value == "b, a: sm_90 compute_90"
    assert gpu_code.completed(needs("9.0"), {}).codes == _UNKNOWN
    assert gpu_code.completed(needs("none"), held).codes == _UNKNOWN
