"""GPU code of packages in a prefix: what is read, what is known already, and what a card lacks."""

from pathlib import Path

import pytest
from fuzz.made import code_library, record_row

from envbuild.findings import Severity
from envbuild.store import gpu_code, installed
from envbuild.store.gpu_code import Codes
from envbuild.store.ledger import Ledger
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


def wheel(prefix: Path, **libraries: bytes) -> None:
    """Put an installed wheel with libraries into a prefix."""
    site = prefix / SITE
    (site / "k").mkdir(parents=True, exist_ok=True)
    (site / "k-1.dist-info").mkdir(exist_ok=True)
    record = ""
    for name, data in libraries.items():
        (site / f"k/{name}.so").write_bytes(data)
        record += record_row(f"k/{name}.so", data)
    (site / "k-1.dist-info/RECORD").write_text(record)


def read(prefix: Path, ledger: Ledger) -> Codes:
    seen = installed.walk(prefix)
    return gpu_code.read(prefix, seen, installed.wheel_owners(prefix, seen, ledger), ledger)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def test_what_is_read_is_kept_by_content(tmp_path: Path, ledger: Ledger) -> None:
    """One version with other files is another package; files that are known stay closed."""
    one, two = tmp_path / "one", tmp_path / "two"
    wheel(one, a=code_library("sm_90"), b=b"no ELF file".ljust(5000))
    wheel(two, a=code_library("sm_80"))
    assert read(one, ledger) == {"pypi:k": {f"{SITE}/k/a.so": "sm_90"}}
    assert read(two, ledger) == {"pypi:k": {f"{SITE}/k/a.so": "sm_80"}}
    (one / f"{SITE}/k/a.so").write_bytes(bytes(5000))
    assert read(one, ledger) == {"pypi:k": {f"{SITE}/k/a.so": "sm_90"}}


def test_a_library_that_launches_nothing_has_no_code(tmp_path: Path, ledger: Ledger) -> None:
    """Its fat binary holds nvcc's default target, and no kernel in it (libcufftw of CUDA 12)."""
    wheel(tmp_path, a=code_library("sm_52", payload=bytes(760)))
    assert read(tmp_path, ledger) == {}


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


def test_a_ledger_from_before_gets_its_table(ledger: Ledger) -> None:
    ledger.note_wheels("half")
    assert ledger.texts(["k"]) == {}
    ledger.note_texts({"k": {"a": "sm_90"}})
    ledger.forget(["k"])
    assert ledger.texts(["k", "other"]) == {"k": {"a": "sm_90"}}
