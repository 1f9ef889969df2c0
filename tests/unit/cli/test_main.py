"""The command line's frame: finding commands, options everywhere, errors as text and code."""

import errno
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import click
import pytest

from envbuild import __version__, errors
from envbuild.cli import options
from envbuild.cli.context import Here
from envbuild.cli.main import main
from envbuild.cli.table import ALIASES, HELP

Install = Callable[..., list[Here]]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Install:
    """Return what adds a command `probe`, which raises or returns what it is told to."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def add(answer: object = None, failure_code: int | None = None) -> list[Here]:
        seen: list[Here] = []

        @options.command("probe", examples="envbuild probe", failure_code=failure_code)
        @options.json_option
        @options.offline_option
        @options.locked_options
        @click.argument("words", nargs=-1)
        @click.pass_obj
        def command(here: Here, words: tuple[str, ...], *, as_json: bool) -> object:
            """Try."""
            assert here.as_json is as_json
            assert isinstance(words, tuple)
            seen.append(here)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        module = ModuleType("envbuild.cli.commands.probe")
        vars(module)["command"] = command
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(HELP, "probe", "Try.")
        return seen

    return add


def test_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"envbuild {__version__}\n"


def test_help_names_every_command_and_loads_none(capsys: Capture) -> None:
    before = set(sys.modules)
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in HELP)
    assert not [name for name in set(sys.modules) - before if name.startswith("envbuild.cli.comm")]


def test_no_command_prints_the_help_and_is_a_usage_error(capsys: Capture) -> None:
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("Usage: envbuild [OPTIONS] COMMAND")


def test_unknown_command_names_the_nearest(capsys: Capture) -> None:
    assert main(["creat", "x"]) == 2
    assert "did you mean 'create'?" in capsys.readouterr().err
    assert main(["qqqq"]) == 2
    assert "error: there is no command 'qqqq'\n" in capsys.readouterr().err


def test_aliases_stand_for_commands() -> None:
    assert set(ALIASES.values()) <= set(HELP)


def test_options_work_before_and_after_the_command(install: Install) -> None:
    seen = install()
    before = ["-v", "--store", "a", "--color", "never", "--recipes", ".", "--locks", "l"]
    after = ["-v", "--store", "b", "--no-progress", "--debug", "-q", "--offline", "--frozen"]
    assert main([*before, "probe", *after]) == 0
    assert main([*before, "probe"]) == 0
    assert main(["probe", *before]) == 0
    first, second, third = seen
    assert (first.verbosity, first.quiet, first.color) == (2, True, "never")
    assert first.store.root == Path("b").absolute()
    assert (first.no_progress_option, first.debug, first.offline, first.frozen) == (True,) * 4
    for here in (second, third):
        assert (here.verbosity, here.quiet, here.offline, here.frozen) == (1, False, False, False)
        assert here.store.root == Path("a").absolute()
        assert here.recipe_folders[0] == Path()
        assert here.lock_output == Path("l")


@pytest.mark.parametrize(("answer", "code"), [(None, 0), (0, 0), (1, 1), ("text", 0)])
def test_what_a_command_returns_is_the_exit_code(
    install: Install, answer: object, code: int
) -> None:
    install(answer)
    assert main(["probe"]) == code


_OURS = [
    (errors.Refused("m", hint="h"), 1),
    (errors.UsageProblem("m", hint="h"), 2),
    (errors.RecipeError("m", hint="h"), 3),
    (errors.LockError("m", hint="h"), 3),
    (errors.NoSolution("m", hint="h"), 4),
    (errors.ToolFailed("m", hint="h"), 5),
    (errors.StoreError("m", hint="h"), 6),
    (errors.HostError("m", hint="h"), 7),
    (errors.FetchError("m", hint="h"), 8),
]


@pytest.mark.parametrize(("error", "code"), _OURS)
def test_our_errors_have_their_codes_and_the_hint_last(
    install: Install, capsys: Capture, error: errors.EnvbuildError, code: int
) -> None:
    install(error)
    assert main(["probe"]) == code
    seen = capsys.readouterr()
    assert (seen.out, seen.err) == ("", "error: m\nhint: h\n")


def test_every_problem_of_a_file_is_printed(install: Install, capsys: Capture) -> None:
    problems = ["x.yaml:1:2: a: first", "x.yaml:3:4: b: second"]
    install(errors.RecipeError("x.yaml is wrong", problems=problems, hint="h"))
    assert main(["probe"]) == 3
    assert capsys.readouterr().err.splitlines() == [
        "error: x.yaml is wrong",
        *problems,
        "hint: h",
    ]


def test_a_tool_error_names_its_log(install: Install, capsys: Capture) -> None:
    install(errors.ToolFailed("uv failed", log=Path("/tmp/uv.log"), details="tail\n"))  # noqa: S108
    assert main(["probe"]) == 5
    assert capsys.readouterr().err == "error: uv failed\ntail\nlog: /tmp/uv.log\n"


def test_errors_as_json(install: Install, capsys: Capture) -> None:
    install(errors.NoSolution("no", details="a\nb", hint="h"))
    assert main(["probe", "--json"]) == 4
    seen = capsys.readouterr()
    assert seen.err == ""
    assert json.loads(seen.out) == {
        "version": 1,
        "error": {
            "kind": "NoSolution",
            "exit_code": 4,
            "message": "no",
            "details": ["a", "b"],
            "hint": "h",
        },
    }


def test_usage_errors_as_json(install: Install, capsys: Capture) -> None:
    install()
    assert main(["probe", "--json", "--bogus"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["exit_code"] == 2
    assert main(["probe", "--bogus", "--", "--json"]) == 2
    assert capsys.readouterr().err.startswith("error: No such option")


def test_logins_are_masked_everywhere(install: Install, capsys: Capture) -> None:
    url = "https://me:s3cr@t@example.org/t/tk-123/conda/x"
    install(errors.FetchError(f"{url} said 403", details=url, hint=url))
    assert main(["probe"]) == 8
    assert main(["probe", "--json"]) == 8
    install(ValueError(url))
    assert main(["probe", "--debug", url]) == 70
    seen = capsys.readouterr()
    report = next(Path(os.environ["XDG_STATE_HOME"]).rglob("*.txt")).read_text()
    for text in (seen.out, seen.err, report):
        assert "***@example.org/t/***/conda/x" in text
        assert "s3cr" not in text
        assert "tk-123" not in text


def test_an_unknown_error_is_one_line_and_a_report(
    install: Install, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVBUILD_SECRET", "hunter2")
    install(ValueError("first\nsecond"))
    assert main(["probe", "word"]) == 70
    (line,) = capsys.readouterr().err.splitlines()
    (report,) = (tmp_path / "state" / "envbuild").iterdir()
    assert line == f"error: internal error: ValueError: first; the report is {report}"
    text = report.read_text()
    assert f"envbuild {__version__}, Python 3." in text
    assert ", uv " in text
    assert "command: envbuild probe word" in text
    assert "ValueError: first\nsecond" in text
    assert "hunter2" not in text
    assert report.stat().st_mode & 0o077 == 0


def test_a_report_goes_elsewhere_where_the_state_folder_cannot_be(
    install: Install, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    install(KeyError("x"))
    assert main(["probe"]) == 70
    assert f"the report is {tmp_path}/envbuild-" in capsys.readouterr().err
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    assert main(["probe"]) == 70
    assert "no report could be written" in capsys.readouterr().err


def test_debug_shows_the_traceback(install: Install, capsys: Capture) -> None:
    install(ValueError("x"))
    assert main(["--debug", "probe"]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err
    assert main(["probe", "--json"]) == 70
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "InternalError"


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 6), (errno.EACCES, 7)])
def test_no_room_and_no_permission_are_not_our_fault(
    install: Install, capsys: Capture, number: int, code: int
) -> None:
    install(OSError(number, os.strerror(number), "/x/y"))
    assert main(["probe"]) == code
    assert f"error: /x/y: {os.strerror(number)}\n" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_is_130(install: Install, capsys: Capture, error: BaseException) -> None:
    install(error)
    assert main(["probe"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_run_keeps_other_codes_for_its_command(install: Install, capsys: Capture) -> None:
    class NotFound(errors.HostError):
        exit_code = 127

    for error, code in [
        (errors.StoreError("m"), 125),
        (NotFound("m"), 127),
        (ValueError("m"), 125),
    ]:
        install(error, failure_code=125)
        assert main(["probe"]) == code
    install(errors.StoreError("m"), failure_code=125)
    assert main(["probe", "--bogus"]) == 125
    assert "No such option" in capsys.readouterr().err


def test_locked_and_frozen_together_are_a_usage_error(install: Install) -> None:
    seen = install()
    assert main(["probe", "--locked", "--frozen"]) == 0
    with pytest.raises(errors.UsageProblem, match="cannot be used together"):
        _ = seen[0].locked
