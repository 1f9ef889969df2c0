"""Progress: lines, bars, nothing."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from envbuild.cli.context import Here
from envbuild.cli.progress import Bars, Lines, shown
from envbuild.progress import Progress, Quiet

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what moves the clock on by some seconds."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def move(seconds: float) -> None:
        now[0] += seconds

    return move


def test_lines_say_what_begins_and_now_and_then_how_far(
    capsys: Capture, clock: Callable[[float], None]
) -> None:
    with shown(Here({})) as progress:
        assert isinstance(progress, Lines)
        progress.step("fetching from https://me:pw@host/")
        for done in range(0, 1001, 10):
            clock(0.25)
            progress.amount("torch", done * 1000, 1_000_000)
        clock(20)
        progress.amount("other", 5000, None)
    assert capsys.readouterr().err.splitlines() == [
        "fetching from https://***@host/",
        "  torch: 390 kB of 1 MB",
        "  torch: 790 kB of 1 MB",
        "  other: 5 kB",
    ]


def test_verbose_lines_say_how_long(capsys: Capture, clock: Callable[[float], None]) -> None:
    here = Here({})
    here.verbosity = 1
    with shown(here) as progress:
        progress.step("one")
        clock(1.5)
        progress.step("two")
        clock(61)
    assert capsys.readouterr().err.splitlines() == [
        "one",
        "  took 1.5 s",
        "two",
        "  took 1 min 1 s",
    ]


def test_quiet_says_nothing(capsys: Capture) -> None:
    here = Here({})
    here.quiet = True
    with shown(here) as progress:
        assert isinstance(progress, Quiet)
        progress.step("one")
        progress.amount("x", 1, 2)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("variable", "option", "kind"),
    [("", False, Bars), ("1", False, Lines), ("0", False, Bars), ("", True, Lines)],
)
def test_bars_only_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, variable: str, kind: type[Progress], *, option: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    here = Here({"ENVBUILD_NO_PROGRESS": variable})
    here.no_progress_option = option
    with shown(here) as progress:
        assert isinstance(progress, kind)


def test_bars_from_several_threads(capsys: Capture) -> None:
    def download(name: str) -> None:
        for done in (0, 50, 100):
            bars.amount(name, done, 100)
        bars.amount(f"{name} unknown", 3, None)

    with Bars(color=False) as bars:
        bars.step("fetching [2]")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(download, [f"package {number}" for number in range(20)]))
        bars.step("linking")
        bars.amount("package 1", 100, 100)
        bars.amount("package 1", 100, 100)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "fetching [2]\n" in seen.err
    assert "linking\n" in seen.err
