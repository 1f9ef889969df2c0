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


@pytest.fixture(scope="module", params=["flock", "fcntl"])
def hung(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library under which one kind of lock never returns."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("hung")
    text = _SOURCE
    if request.param == "fcntl":
        text = text.replace("int flock(", "int unused(")
    else:
        text = text.replace("if (LOCKS(command)) hang();", "")
    (folder / "hung.c").write_text(text)
    words = [compiler, "-shared", "-fPIC", "-o", "hung.so", "hung.c", "-ldl"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "hung.so"


@pytest.mark.parametrize(
    "words",
    [
        ("create", "two", "--locked"),
        ("create", "one", "--reinstall", "--locked"),
        ("lock", "two"),
        ("switch", "one", "1"),
        ("rollback", "one"),
        ("gc", "--keep", "0", "-y"),
        ("remove", "one", "-y"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_command_waits_without_end(place: Site, hung: Path, words: tuple[str, ...]) -> None:
    folders = ("--recipes", "v1", "--locks", "v1") if words[0] in {"create", "lock"} else ()
    patience = () if words[0] == "lock" else ("--lock-timeout", "1")
    before = place.store.journal.read_bytes()
    code, _, err = place.run(*words, *folders, *patience, variables={"LD_PRELOAD": str(hung)})
    if "does not return" in err:
        assert code == 6, err
        assert "its file system does not answer" in err
        assert place.store.journal.read_bytes() == before
    else:  # a command that takes no such lock
        assert code in {0, 3}, err
