"""What is read of packages' libraries in a prefix, and what is known already."""

from pathlib import Path

import pytest
from fuzz.made import code_library, elf, record_row

from envbuild.store import gpu_code, installed, libraries
from envbuild.store.ledger import Ledger
from envbuild.store.libraries import Libraries, Library

_SITE = "lib/python3.11/site-packages"
_LIBC = "libc.so.6"


def _wheel(prefix: Path, **files: bytes) -> None:
    """Put an installed wheel with libraries into a prefix."""
    site = prefix / _SITE
    (site / "k").mkdir(parents=True, exist_ok=True)
    (site / "k-1.dist-info").mkdir(exist_ok=True)
    record = ""
    for name, data in files.items():
        (site / f"k/{name}.so").write_bytes(data)
        record += record_row(f"k/{name}.so", data)
    (site / "k-1.dist-info/RECORD").write_text(record)


def _read(prefix: Path, ledger: Ledger) -> Libraries:
    seen = installed.walk(prefix)
    owners = installed.wheel_owners(prefix, seen, ledger)
    return libraries.read(prefix, seen, owners, ledger, platform="linux-64")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def test_what_is_read_is_kept_by_content(tmp_path: Path, ledger: Ledger) -> None:
    """One version with other files is another package; files that are known stay closed."""
    one, two = tmp_path / "one", tmp_path / "two"
    _wheel(one, a=code_library("sm_90"), b=b"no ELF file".ljust(5000))
    _wheel(two, a=code_library("sm_80"))
    held = {"pypi:k": {f"{_SITE}/k/a.so": "sm_90"}}
    assert gpu_code.of(_read(one, ledger)) == held
    assert gpu_code.of(_read(two, ledger)) == {"pypi:k": {f"{_SITE}/k/a.so": "sm_80"}}
    (one / f"{_SITE}/k/a.so").write_bytes(bytes(5000))
    assert gpu_code.of(_read(one, ledger)) == held


def test_a_library_that_launches_nothing_has_no_code(tmp_path: Path, ledger: Ledger) -> None:
    """Its fat binary holds nvcc's default target, and no kernel in it (libcufftw of CUDA 12)."""
    _wheel(tmp_path, a=code_library("sm_52", payload=bytes(760)))
    assert gpu_code.of(_read(tmp_path, ledger)) == {}


def test_links_are_read_and_come_back_from_the_ledger(tmp_path: Path, ledger: Ledger) -> None:
    texts = {"NEEDED": [_LIBC, libraries.LIBSTDCXX], "RUNPATH": ["$ORIGIN/a:$ORIGIN/b"]}
    versions = {_LIBC: ["GLIBC_2.4", "GLIBC_2.34"], libraries.LIBSTDCXX: ["GLIBCXX_3.4.29"]}
    own = {"NEEDED": [_LIBC, "libstdc++-0123abcd.so.6"]}
    _wheel(
        tmp_path,
        a=elf(texts=texts, versions=versions),
        b=elf(texts=own, versions={_LIBC: ["GLIBC_2.4"], own["NEEDED"][1]: ["GLIBCXX_3.4.29"]}),
        c=elf(texts={"NEEDED": ["libm.so"]}),
    )
    expected = {
        f"{_SITE}/k/a.so": Library(
            codes="",
            glibc=(2, 34),
            glibcxx=(3, 4, 29),
            rpath=(),
            runpath=("$ORIGIN/a", "$ORIGIN/b"),
        ),
        f"{_SITE}/k/b.so": Library(codes="", glibc=(2, 4), glibcxx=None, rpath=(), runpath=()),
    }
    assert _read(tmp_path, ledger) == {"pypi:k": expected}
    for name in "abc":
        (tmp_path / f"{_SITE}/k/{name}.so").write_bytes(b"")
    assert _read(tmp_path, ledger) == {"pypi:k": expected}


def test_a_ledger_from_before_gets_its_table(ledger: Ledger) -> None:
    ledger.note_wheels("half")
    assert ledger.texts(["k"]) == {}
    ledger.note_texts({"k": {"a": "sm_90"}})
    ledger.forget(["k"])
    assert ledger.texts(["k", "other"]) == {"k": {"a": "sm_90"}}
