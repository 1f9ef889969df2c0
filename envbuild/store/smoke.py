"""The smoke test: what must work in a new generation before it may become current."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from envbuild.errors import Refused, ToolError, ToolFailed, ToolTimedOut
from envbuild.tools import run as runner

TIMEOUT_S = 600.0

_IMPORT = """\
import importlib, sys, traceback
failed = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException:
        traceback.print_exc()
        failed.append(name)
sys.stdout.flush()
if failed:
    sys.exit("cannot import " + ", ".join(failed))
"""


def smoke_test(
    prefix: Path,
    *,
    imports: Sequence[str],
    commands: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    run: runner.Runner = runner.run,
    keep: Sequence[int] = (),
) -> None:
    """Import modules in one process of the prefix's Python, then run commands, without a shell.

    Args:
        prefix: The generation's prefix.
        imports: Modules to import.
        commands: Command lines, split as a shell would, nothing expanded.
        environment: The activated environment.
        log: File that receives commands and output.
        run: How programs are started.
        keep: Descriptors that they inherit (the store's lock).

    Raises:
        Refused: One of them failed; the details are the tail of its output.
    """
    environment = {**environment, "PYTHONDONTWRITEBYTECODE": "1"}
    jobs: list[tuple[str, list[str]]] = []
    if imports:
        python = f"{prefix / 'bin/python'}"
        jobs.append((f"importing {', '.join(imports)}", [python, "-c", _IMPORT, *imports]))
    jobs.extend((f"command {text!r}", _split(text)) for text in commands)
    for what, argv in jobs:
        try:
            run(argv, env=environment, cwd=prefix, timeout_s=TIMEOUT_S, log=log, keep=keep)
        except ToolError as error:
            message = f"the smoke test failed: {what} {_ended(error)}"
            hint = f"the whole output is in {log}"
            raise Refused(message, hint=hint, details=error.details) from error
        except OSError as error:
            message = f"the smoke test failed: {what} could not be started: {error.strerror}"
            raise Refused(message, hint=f"{argv[0]} is not executable") from error


def _split(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        message = f"the smoke test has a command that cannot be split: {text!r} ({error})"
        raise Refused(message, hint="close its quotes in the recipe") from error
    if not words:
        message = "the smoke test has an empty command"
        raise Refused(message, hint="remove it from the recipe")
    return words


def _ended(error: ToolError) -> str:
    match error:
        case ToolTimedOut():
            return f"did not end within {TIMEOUT_S:g} s"
        case ToolFailed(status=int(status)) if status < 0:
            return f"was ended by signal {-status}"
        case ToolFailed():
            return f"ended with status {error.status}"
        case _:
            return "could not be started"
