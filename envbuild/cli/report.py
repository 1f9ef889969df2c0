"""The error boundary's voice: an exception becomes text or JSON, an exit code, maybe a report."""

import errno
import os
import platform
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from envbuild import __version__
from envbuild.cli.context import Here
from envbuild.cli.output import mask, print_json
from envbuild.errors import EnvbuildError, FetchError, HostError, StoreError, UsageProblem
from envbuild.tools.files import NO_ROOM

_INTERNAL = 70
_NO_PERMISSION = {errno.EACCES, errno.EPERM, errno.EROFS}


def explain(error: Exception, words: Sequence[str], here: Here) -> int:
    """Print an exception and return the exit code.

    Args:
        error: What ended the command.
        words: The command line, for the report of an internal error.
        here: How the command ran.
    """
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True, color=here.forced_color())
        return error.exit_code
    known = _translate(error)
    if known is None:
        return _internal(error, words, here)
    if here.as_json or (isinstance(known, UsageProblem) and _asked_for_json(words)):
        print_json({"error": error_json(known)})
    else:
        show(here, known)
    return _code(here, known.exit_code)


def _translate(error: Exception) -> EnvbuildError | None:
    """Return the error as one of ours, or None if it is our fault."""
    if isinstance(error, EnvbuildError):
        return error
    if isinstance(error, click.ClickException):
        hint = None
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f"try `{error.ctx.command_path} --help`"
        return UsageProblem(error.format_message().rstrip("."), hint=hint)
    if isinstance(error, OSError) and error.errno in (*NO_ROOM, *_NO_PERMISSION):
        where = f"{error.filename}: " if error.filename else ""
        message = f"{where}{error.strerror}"
        if error.errno in NO_ROOM:
            return StoreError(message, hint="make room: `envbuild gc --dry-run` shows what is old")
        return HostError(message)
    return None


def _code(here: Here, code: int) -> int:
    """Return the code of a failure; `run` keeps all but three for the command that it runs."""
    return code if here.failure_code is None or code in {126, 127} else here.failure_code


def _asked_for_json(words: Sequence[str]) -> bool:
    """Say whether `--json` is on a command line that could not be parsed."""
    end = words.index("--") if "--" in words else len(words)
    return "--json" in words[:end]


def show(here: Here, error: EnvbuildError) -> None:
    """Print an error on stderr: what is wrong, what is known of it, what to do."""
    color = here.forced_color()
    lines = [f"{click.style('error:', fg='red', bold=True)} {error.message}"]
    if error.details.strip() and (here.verbosity or not isinstance(error, FetchError)):
        lines.append(error.details.rstrip())  # of the network, an engine's chain of causes
    log: Path | None = getattr(error, "log", None)
    if log is not None:
        lines.append(f"log: {log}")
    if error.hint:
        lines.append(f"{click.style('hint:', fg='cyan', bold=True)} {error.hint}")
    click.echo(mask("\n".join(lines)), err=True, color=color)


def error_json(error: EnvbuildError) -> dict[str, object]:
    """Return an error as JSON has it."""
    kind = type(error).__name__
    return _json(error.exit_code, kind, error.message, error.details, error.hint)


def _json(code: int, kind: str, message: str, details: str, hint: str | None) -> dict[str, object]:
    return {
        "kind": kind,
        "exit_code": code,
        "message": mask(message),
        "details": mask(details).splitlines(),
        "hint": None if hint is None else mask(hint),
    }


def _internal(error: Exception, words: Sequence[str], here: Here) -> int:
    text = mask("".join(traceback.format_exception(error)))
    path = _write_report(text, words, here)
    where = f"the report is {path}" if path else "no report could be written"
    message = mask(f"internal error: {type(error).__name__}: {error}").splitlines()[0]
    if here.as_json:
        told = _json(_INTERNAL, "InternalError", f"{message}; {where}", "", None)
        print_json({"error": told})
    else:
        label = click.style("error:", fg="red", bold=True)
        click.echo(f"{label} {message}; {where}", err=True, color=here.forced_color())
    if here.debug:
        click.echo(text.rstrip(), err=True)
    return _code(here, _INTERNAL)


def _write_report(text: str, words: Sequence[str], here: Here) -> Path | None:
    """Write versions, command line and traceback to a file of the user's; None if impossible."""
    system = os.uname()
    lines = [
        f"envbuild {__version__}, Python {platform.python_version()}, {_versions()}",
        f"{system.sysname} {system.release} {system.machine}",
        f"command: envbuild {mask(' '.join(words))}",
        "",
        text,
    ]
    state = here.environment.get("XDG_STATE_HOME") or ""
    base = Path(state) if state.startswith("/") else here.home / ".local/state"
    for folder in (base / "envbuild", None):
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, name = tempfile.mkstemp(
                prefix=f"envbuild-{here.now():%Y%m%dT%H%M%SZ}-", suffix=".txt", dir=folder
            )
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
        except OSError:
            continue
        return Path(name)
    return None


def _versions() -> str:
    """Return the versions of what a fault may come from."""
    from importlib.metadata import PackageNotFoundError, version

    found: list[str] = []
    for name in ("click", "pydantic", "py-rattler", "uv"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} missing")
    return ", ".join(found)
