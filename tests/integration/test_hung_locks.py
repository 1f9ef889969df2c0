"""Locks on a file system that does not answer: flock(2) and fcntl(2) never return."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.site import Site, site

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

static void hang(void) { for (;;) pause(); }

int flock(int descriptor, int operation) { hang(); return -1; }

#define LOCKS(command) ((command) == F_SETLK || (command) == F_SETLKW)
#define BODY(name) \
  va_list list; va_start(list, command); void *argument = va_arg(list, void *); va_end(list); \
  if (LOCKS(command)) hang(); \
  int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, name); \
  return real(descriptor, command, argument);

int fcntl(int descriptor, int command, ...) { BODY("fcntl") }
int fcntl64(int descriptor, int command, ...) { BODY("fcntl64") }
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("site")) as made:
        assert made.run(*made.create("one"))[0] == 0
        yield made


@pytest.fixture(scope="module")
def compiler() -> str:
    """Return a C compiler, or skip."""
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("no C compiler")
    return found


@pytest.fixture(scope="module")
def no_flock(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library under which flock(2) never returns."""
    text = _SOURCE.replace("if (LOCKS(command)) hang();", "")
    return _built(compiler, text, tmp_path_factory.mktemp("flock"))


@pytest.fixture(scope="module")
def no_fcntl(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library under which locks of fcntl(2) never return: SQLite's."""
    text = _SOURCE.replace("int flock(", "int unused(")
    return _built(compiler, text, tmp_path_factory.mktemp("fcntl"))


def _built(compiler: str, text: str, folder: Path) -> Path:
    (folder / "hung.c").write_text(text)
    words = [compiler, "-shared", "-fPIC", "-o", "hung.so", "hung.c", "-ldl"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "hung.so"


@pytest.mark.parametrize(
    "words",
    [
        ("create", "two", "--locked"),
        ("create", "one", "--reinstall", "--locked"),
        ("switch", "one", "1"),
        ("rollback", "one"),
        ("pin", "one", "1"),
        ("remove", "one", "-y"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_command_waits_without_end(place: Site, no_flock: Path, words: tuple[str, ...]) -> None:
    folders = ("--recipes", "v1", "--locks", "v1") if words[0] == "create" else ()
    before = place.store.journal.read_bytes()
    variables = {"LD_PRELOAD": str(no_flock), "ENVBUILD_LOCK_TIMEOUT": "1"}
    code, _, err = place.run(*words, *folders, variables=variables)
    lock = place.store.place(words[1]).lock
    assert (code, f"locking {lock} does not return" in err) == (6, True), err
    assert f"waiting: {lock} does not answer yet" in err
    assert place.store.journal.read_bytes() == before


def test_what_takes_no_lock_goes_on(place: Site, no_flock: Path) -> None:
    for words in (("run", "one", "--", "one"), ("list",), ("verify", "one"), ("gc", "-n")):
        code, _, err = place.run(*words, variables={"LD_PRELOAD": str(no_flock)})
        assert code == 0, err


@pytest.mark.slow
def test_the_ledger_ends_too(place: Site, no_fcntl: Path) -> None:
    words = ("create", "one", "--reinstall", "--locked", "--recipes", "v1", "--locks", "v1")
    code, _, err = place.run(*words, variables={"LD_PRELOAD": str(no_fcntl)})
    assert (code, f"locking {place.store.ledger} does not return" in err) == (6, True), err
    assert place.run("verify", "one")[0] == 0
