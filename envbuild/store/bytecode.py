"""Compiling a generation's sources: bytecode that is never checked against them (PEP 552).

A generation never changes, so its bytecode is `unchecked-hash`: valid whatever a copy does to
times, and no source is looked at when it is imported.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from envbuild.errors import ToolFailed
from envbuild.store import modes
from envbuild.store.check import Row
from envbuild.tools import run as runner
from envbuild.tools.hashing import hash_files

TIMEOUT_S = 3600.0

_DRIVER = """\
import os, sys
from concurrent.futures import ProcessPoolExecutor
from importlib.util import cache_from_source
from multiprocessing import get_context
from py_compile import PycInvalidationMode, compile

UNCHECKED = PycInvalidationMode.UNCHECKED_HASH

def work(paths):
    made = 0
    for path in paths:
        try:
            compile(path, doraise=True, invalidation_mode=UNCHECKED, quiet=2)
            os.chmod(cache_from_source(path), 0o644)
            made += 1
        except Exception:
            pass
    return made

if __name__ == "__main__":
    paths = sys.stdin.read().split("\\0")
    size = 48
    chunks = [paths[at:at + size] for at in range(0, len(paths), size)]
    count = int(sys.argv[1])
    if count > 1:
        with ProcessPoolExecutor(count, get_context("fork")) as pool:
            print(sum(pool.map(work, chunks)))
    else:
        print(sum(map(work, chunks)))
"""


def sources(paths: Sequence[str]) -> list[str]:
    """Return the paths that are compiled: Python files in a `lib/python3.*` folder.

    Code for other programs' Pythons and templates elsewhere are left alone.
    """
    return [path for path in paths if path.endswith(".py") and path.startswith("lib/python3")]


def compile_sources(
    prefix: Path,
    paths: Sequence[str],
    *,
    environment: Mapping[str, str],
    run: runner.Runner = runner.run,
    keep: Sequence[int] = (),
) -> int:
    """Compile sources with the prefix's Python, on all cores, and return how many it could.

    A source that this Python does not take (a template, Python 2) is left without bytecode.

    Args:
        prefix: The generation's prefix.
        paths: Sources, relative to it.
        environment: The activated environment.
        run: How programs are started.
        keep: Descriptors that they inherit (the store's lock).

    Raises:
        ToolFailed: The prefix's Python failed.
        ToolTimedOut: It did not end.
    """
    if not paths:
        return 0
    cores = len(os.sched_getaffinity(0))
    argv = [f"{prefix / 'bin/python'}", "-I", "-S", "-W", "ignore", "-c", _DRIVER, f"{cores}"]
    text = "\0".join(f"{prefix}/{path}" for path in paths)
    done = run(argv, env=environment, stdin=text, timeout_s=TIMEOUT_S, keep=keep)
    try:
        return int(done.stdout)
    except ValueError as error:
        message = "compiling bytecode gave no answer"
        raise ToolFailed(message, argv=argv, status=0, details=done.stderr[-2000:]) from error


def rows(prefix: Path, targets: Mapping[str, str], owners: Mapping[str, object]) -> list[Row]:
    """Return the manifest's rows of bytecode, of what could be compiled.

    Args:
        prefix: The generation's prefix.
        targets: Source by path of its bytecode, relative to the prefix.
        owners: Whose each source is.

    Raises:
        OSError: Bytecode that is there cannot be read.
    """
    sizes: dict[str, int] = {}
    for target in targets:
        with contextlib.suppress(FileNotFoundError):
            sizes[target] = os.stat(f"{prefix}/{target}").st_size  # noqa: PTH116
    digests = hash_files((f"{prefix}/{target}", size) for target, size in sizes.items())
    found: list[Row] = []
    for target, size in sizes.items():
        digest = digests[f"{prefix}/{target}"]
        if isinstance(digest, OSError):
            raise digest
        owner = owners.get(targets[target])
        found.append([target, "bytecode", digest, modes.PLAIN, size, owner])
    return found
