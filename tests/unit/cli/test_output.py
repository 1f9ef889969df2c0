"""What commands print."""

import json
import sys
from datetime import datetime
from pathlib import Path

import pytest

from envbuild.cli import output
from envbuild.cli.context import Here
from envbuild.findings import Finding, Severity

Capture = pytest.CaptureFixture[str]

_ERROR = Finding(
    code="stale-lock",
    severity=Severity.ERROR,
    where="recipes/x.yaml:3",
    what="numpy is not answered",
    why="the lock has 1.26",
    hint="envbuild lock x",
)
_NOTE = Finding(code="weak-hash", severity=Severity.NOTE, where="zlib", what="md5 only")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://me:pw@host/x", "https://***@host/x"),
        ("https://me:p@w@host/x", "https://***@host/x"),
        ("see http://token@host and ftp://u:p@h", "see http://***@host and ftp://***@h"),
        ("https://host/t/abc/conda", "https://host/t/***/conda"),
        ("https://u:p@host/t/abc/conda", "https://***@host/t/***/conda"),
        ("https://host/a@b", "https://host/a@b"),
        ("me@example.org /t/x", "me@example.org /t/x"),
    ],
)
def test_logins_are_masked(text: str, masked: str) -> None:
    assert output.mask(text) == masked


def test_findings_as_a_list(capsys: Capture) -> None:
    assert output.print_findings(Here({}), (_ERROR, _NOTE)) == 1
    assert capsys.readouterr().out.splitlines() == [
        "error: recipes/x.yaml:3: numpy is not answered [stale-lock]",
        "  why:  the lock has 1.26",
        "  hint: envbuild lock x",
        "note: zlib: md5 only [weak-hash]",
        "1 error, 1 note",
    ]


def test_no_finding_prints_nothing(capsys: Capture) -> None:
    assert output.print_findings(Here({}), ()) == 0
    assert capsys.readouterr().out == ""


def test_quiet_prints_errors_only(capsys: Capture) -> None:
    here = Here({})
    here.quiet = True
    assert output.print_findings(here, (_NOTE,), err=True) == 0
    assert output.print_findings(here, (_ERROR, _NOTE), err=True) == 1
    output.say(here, "talk")
    output.next_step(here, "envbuild run x")
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.startswith("error: recipes/x.yaml:3")
    assert "note" not in seen.err
    assert "talk" not in seen.err


def test_talk_goes_to_stderr(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bin/envbuild"])
    output.result("result")
    output.say(Here({}), "from https://me:pw@host/")
    output.next_step(Here({}), "envbuild run x")
    seen = capsys.readouterr()
    assert seen.out == "result\n"
    assert seen.err == "from https://***@host/\nnext: bin/envbuild run x\n"


def test_json(capsys: Capture) -> None:
    output.print_json({"findings": output.findings_json((_ERROR, _NOTE))})
    data = json.loads(capsys.readouterr().out)
    assert list(data) == ["version", "findings"]
    assert data["version"] == 1
    assert data["findings"][1] == {
        "code": "weak-hash",
        "severity": "note",
        "where": "zlib",
        "what": "md5 only",
        "why": "",
        "hint": None,
    }


def test_tables_are_aligned() -> None:
    text = output.table(("name", "size"), [("a", "1 kB"), ("longer", "")])
    assert [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in text.splitlines()] == [
        "name    size",
        "a       1 kB",
        "longer",
    ]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (999_499, "999 kB"),
        (999_600, "1 MB"),
        (797_000_000, "797 MB"),
        (5_100_000_000, "5.1 GB"),
        (2_500_000_000_000, "2.5 TB"),
    ],
)
def test_bytes(size: int, text: str) -> None:
    assert output.bytes_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (59.9, "59.9 s"), (125, "2 min 5 s")]
)
def test_durations(seconds: float, text: str) -> None:
    assert output.duration_text(seconds) == text


def test_instants_are_utc() -> None:
    instant = datetime.fromisoformat("2026-12-01T18:00:00+09:00")
    assert output.time_text(instant) == "2026-12-01T09:00:00Z"


def test_the_next_command_has_the_places_that_were_given(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["bin/envbuild"])
    here = Here({})
    here.store_option = "my store"
    output.next_step(here, 'eval "$(envbuild activate x)"')
    expected = "next: eval \"$(bin/envbuild --store 'my store' activate x)\"\n"
    assert capsys.readouterr().err == expected


def test_the_next_command_is_typed_as_this_one_was(tmp_path: Path) -> None:
    program = tmp_path / "envbuild"
    program.touch(mode=0o755)
    assert output.called_as(str(program), f"/nowhere:{tmp_path}") == "envbuild"
    assert output.called_as(".venv/bin/envbuild", str(tmp_path)) == ".venv/bin/envbuild"
    assert output.called_as("my venv/bin/envbuild", "") == "'my venv/bin/envbuild'"
    assert output.called_as("/x/envbuild/__main__.py", "") == f"{sys.executable} -m envbuild"
