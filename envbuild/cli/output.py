"""What commands print: results on stdout, talk on stderr, findings, tables, JSON, quantities."""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from envbuild.cli.context import Here
from envbuild.errors import InputError
from envbuild.findings import Finding, Severity

_LOGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s\"'<>]*@")
_TOKEN = re.compile(r"(://[^\s\"'<>]*?/t/)[^/\s\"'<>]+")
_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
_UNIT = 1000


def mask(text: str) -> str:
    """Return a text with the logins and tokens of its URLs replaced by `***`."""
    return _TOKEN.sub(r"\1***", _LOGIN.sub(r"\1***@", text))


def result(text: str) -> None:
    """Print a result on stdout."""
    click.echo(text)


def say(here: Here, text: str) -> None:
    """Print talk on stderr, unless the user wants quiet."""
    if not here.quiet:
        click.echo(mask(text), err=True)


def next_step(here: Here, command: str) -> None:
    """Print what to type next, as it can be pasted here.

    The word `envbuild` in it becomes how it was called, with the places that options gave.
    """
    if here.quiet or here.as_json:
        return
    program = called_as(sys.argv[0], here.environment.get("PATH", ""))
    for option, value in (
        ("--store", here.store_option),
        ("--recipes", here.recipes_option),
        ("--locks", here.locks_option),
        ("--config-file", here.config_option),
    ):
        program += f" {option} {shlex.quote(value)}" if value else ""
    program += " --no-config" if here.no_config_option else ""
    typed = re.sub(r"\benvbuild\b", lambda _: program, command, count=1)
    click.echo(f"{click.style('next:', bold=True)} {typed}", err=True)


def called_as(program: str, search: str) -> str:
    """Return how `envbuild` is typed: by its name where the search path finds this one."""
    found = shutil.which("envbuild", path=search)
    if program.endswith("__main__.py"):
        return f"{shlex.quote(sys.executable)} -m envbuild"
    same = found is not None and os.path.realpath(found) == os.path.realpath(program)
    return "envbuild" if same else shlex.quote(program)


def print_json(data: Mapping[str, object]) -> None:
    """Print one JSON object on stdout, its format's version first."""
    click.echo(json.dumps({"version": 1, **data}, indent=2, ensure_ascii=False))


def write_file(path: Path, text: str) -> None:
    """Write a result into a file, whole or not at all.

    Raises:
        InputError: It cannot be written.
    """
    from envbuild.tools.files import write_atomic

    try:
        write_atomic(path, text)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise InputError(message, source=str(path), hint="name another FILE") from error


def finding_json(finding: Finding) -> dict[str, str | None]:
    """Return a finding as JSON has it."""
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "where": mask(finding.where),
        "what": mask(finding.what),
        "why": mask(finding.why),
        "hint": None if finding.hint is None else mask(finding.hint),
    }


def findings_json(findings: Iterable[Finding]) -> list[dict[str, str | None]]:
    """Return findings as JSON has them."""
    return [finding_json(finding) for finding in findings]


def print_findings(here: Here, findings: Sequence[Finding], *, err: bool = False) -> int:
    """Print findings as a list with a line that counts them; return 1 if one is an error.

    With `-q` only errors are printed. Nothing is printed where there is none.

    Args:
        here: How this command runs.
        findings: What a check answered.
        err: Print on stderr (beside another result) instead of stdout (as the result).
    """
    counts = {
        severity: sum(finding.severity is severity for finding in findings) for severity in Severity
    }
    for finding in findings:
        if finding.severity is Severity.ERROR or not here.quiet:
            click.echo(finding_text(finding), err=err)
    told = [f"{count} {severity}{'s' * (count > 1)}" for severity, count in counts.items() if count]
    if told and not here.quiet:
        click.echo(", ".join(told), err=err)
    return 1 if counts[Severity.ERROR] else 0


def finding_text(finding: Finding) -> str:
    """Return a finding as a terminal shows it."""
    color = _COLORS[finding.severity]
    label = click.style(f"{finding.severity.value}:", fg=color, bold=True)
    lines = [f"{label} {mask(finding.where)}: {mask(finding.what)} [{finding.code}]"]
    if finding.why:
        lines.append(f"  why:  {mask(finding.why)}")
    if finding.hint:
        lines.append(f"  hint: {mask(finding.hint)}")
    return "\n".join(lines)


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, width: int | None = None
) -> str:
    """Return rows in aligned columns below their headings.

    Args:
        headings: What stands above.
        rows: The cells.
        width: In characters; where a row is longer, its last cell goes to a line of its own, below
            the second. None for any length.
    """
    texts = [tuple(headings), *(tuple(row) for row in rows)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(headings))]
    lines: list[str] = []
    for row in texts:
        cells = [cell.ljust(each) for cell, each in zip(row, widths, strict=True)]
        line = "  ".join(cells).rstrip()
        if width is None or len(line) <= width:
            lines.append(line)
        else:
            lines += ["  ".join(cells[:-1]).rstrip(), f"{'':{widths[0]}}  {row[-1]}"]
    return "\n".join([click.style(lines[0], bold=True), *lines[1:]])


def bytes_text(size: int) -> str:
    """Return a number of bytes as a person reads it (`797 MB`)."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < _UNIT - 0.5:
            return f"{value:.0f} {unit}" if unit in {"B", "kB", "MB"} else f"{value:.1f} {unit}"
        value /= _UNIT
    return f"{value:.1f} TB"


def duration_text(seconds: float) -> str:
    """Return a duration as a person reads it (`0.7 s`, `2 min 5 s`)."""
    if seconds < 60:  # noqa: PLR2004
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def time_text(instant: datetime) -> str:
    """Return an instant as we write it everywhere (`2026-12-01T17:00:00Z`)."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
