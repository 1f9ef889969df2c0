"""`envbuild triangle` as it is typed."""

import json
import shlex
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from envbuild.cli.main import commands, main


def test_listing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triangle", "list", "--gpu", "h100", "--framework", "pytorch==2.4.0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [
        *("pytorch", "2.4.0", "12.4", "9.1.0.70", ">=525.60.13", "3.8-3.12", "native"),
        "cu124",
    ]
    assert main(["triangle", "list", "--gpu", "b200", "--framework", "torch 2.4.0"]) == 1
    assert capsys.readouterr().out == ""


def test_what_is_next_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--gpu", "b200", "--gpu", "9.0", "--framework", "torch 2.4.0", "--driver", "570"]
    assert main(["triangle", "list", *words, "--platform", "linux-aarch64"]) == 1
    _, following = capsys.readouterr().err.splitlines()
    typed = shlex.split(following)
    asked = typed[typed.index("triangle") :]
    assert asked == ["triangle", "why", *words, "--platform", "linux-aarch64"]
    assert main(asked) == 1
    assert capsys.readouterr().out.startswith("does not work:\n")


def test_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triangle", "why", "--gpu", "b200", "--framework", "pytorch==2.4.0"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("does not work:\n")
    assert "it has no code for 10.0: it holds sm_50" in told
    assert "source: pytorch/builder release/2.4, manywheel/build_cuda.sh" in told
    assert "the first with code for it: torch 2.7.0, CUDA 12.8" in told
    assert "nearest that work:" in told


@pytest.mark.parametrize("gpu", ["h100", "v100", "b200"])
def test_a_list_fits_the_terminal(
    gpu: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["triangle", "list", "--gpu", gpu]) == 0
    narrow = capsys.readouterr().out.splitlines()
    assert max(map(len, narrow)) <= 80
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["triangle", "list", "--gpu", gpu, "--json"]) == 0
    count = len(json.loads(capsys.readouterr().out)["sets"])
    assert main(["triangle", "list", "--gpu", gpu]) == 0
    wide = capsys.readouterr().out.splitlines()
    assert len(wide) == 1 + count
    assert " ".join(narrow).split() == " ".join(wide).split()


def test_why_not_of_many_releases_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["triangle", "why", "--gpu", "b200", "--driver", "535"]
    assert main(words) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[:2] == ["does not work", "nearest that work:"]
    assert len(told) <= 30
    assert main([*words, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    for framework in ("pytorch", "jax"):
        judged = [one for one in data["against"] if one["framework"] == framework]
        at = next(n for n, line in enumerate(told) if line.startswith(f"against {framework} "))
        assert told[at].endswith(f" ({len(judged)} builds):")
        whats = {reason["what"].partition(": ")[0] for one in judged for reason in one["reasons"]}
        after = "\n".join(told[at:])
        assert all(f": {what}\n" in after for what in whats)


def test_why(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["triangle", "why", "--gpu", "h100", "--driver", "550.54.15", "--cuda", "12.4"]
    assert main([*words, "--framework", "pytorch==2.4.0", "--python", "3.11", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["works"] is True
    assert [(one["version"], one["origin"]) for one in told["sets"]] == [
        ("2.4.0", "cu124"),
        ("2.4.0", "pytorch"),
    ]
    assert told["against"] == []


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (
            ["--gpu", "h1000"],
            "--gpu: no card or compute capability 'h1000' is",
            "did you mean h100",
        ),
        (
            ["--gpu", "9.7"],
            "--gpu: no card or compute capability '9.7' is known",
            "did you mean 9.",
        ),
        (["--gpu", ""], "--gpu: no card or compute capability '' is known", "facts list gpu"),
        (["--driver", "new"], "--driver: 'new' is not a version", "550.54.15, or a branch such as"),
        (["--driver", "12.4"], "--driver: NVIDIA has no driver 12.4", "the nearest known is 450"),
        (["--driver", "5500"], "--driver: NVIDIA has no driver 5500", "branches have three digits"),
        (["--cuda", "12.7"], "--cuda: no CUDA 12.7 is known", "did you mean 12.6?"),
        (["--cuda", "99"], "--cuda: no CUDA 99 is known", "did you mean 13."),
        (["--cuda", "cu124"], "--cuda: 'cu124' is not a version", "such as 12.4"),
        (["--cudnn", "12"], "--cudnn: no cuDNN 12 is known", "did you mean 9."),
        (["--python", "2.17"], "--python: no Python 2.17 is known", "did you mean 3.15?"),
        (["--python", "3"], "--python: '3' is not a version", "such as 3.11, or 3.13t"),
        (["--python", "3.9t"], "--python: no free-threaded Python 3.9 is", "did you mean 3.9?"),
        (["--framework", "pytroch"], "--framework: 'pytroch' is none", "did you mean pytorch?"),
        (["--framework", "tensorflow"], "'tensorflow' is none", "known are pytorch and jax"),
        (["--framework", ""], "--framework: '' is none", "known are pytorch and jax"),
        (["--framework", "pytorch>>2"], "'>>2' is no version specifier", "such as 'pytorch>=2.3"),
        (
            ["--framework", "torch==2.4.7"],
            "--framework: no release of pytorch is known that is ==2.4.7",
            "the nearest is 2.4.1",
        ),
        (["--framework", "jax>99"], "no release of jax is known that is >99", "the nearest is 0."),
    ],
)
def test_bad_input_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], words: list[str], error: str, hint: str
) -> None:
    assert main(["triangle", "list", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith("error: ")
    assert error.lower() in first.lower()
    assert hint.lower() in second.lower()


@pytest.mark.parametrize("command", ["why", "plot"])
def test_bad_input_elsewhere(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main(["triangle", command, "--gpu", "h1000"]) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error == "error: --gpu: no card or compute capability 'h1000' is known"
    assert hint == "hint: did you mean h100?"


def test_a_python_has_two_numbers_that_count(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["triangle", "list", "--framework", "jax==0.9.0", "--python"]
    assert main([*words, "3.13.7"]) == 0
    exact = capsys.readouterr().out
    assert main([*words, "3.13"]) == 0
    assert capsys.readouterr().out == exact
    assert main([*words, "3.13t"]) == 0


def test_a_driver_newer_than_all_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triangle", "list", "--gpu", "h100", "--driver", "987.65.43"]) == 0
    assert "pytorch" in capsys.readouterr().out


def test_no_card_asks_for_no_code(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["triangle", "list", "--framework", "jax==0.9.0"]
    assert main(words) == 0
    assert [line.split()[-2:] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["-", "jax[cuda13]"],
        ["-", "jax[cuda12]"],
    ]
    assert main([*words, "--json"]) == 0
    assert {one["gpu_code"] for one in json.loads(capsys.readouterr().out)["sets"]} == {None}


def test_what_would_have_to_change(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--gpu", "v100", "--driver", "590", "--framework", "pytorch==2.4.0"]
    assert main(["triangle", "why", *words, "--python", "3.13", "--cudnn", "8"]) == 1
    told = capsys.readouterr().out
    assert "pypi: it takes cuDNN 9.1.0.70; it has no package for Python 3.13" in told
    changes = "(with cuDNN 9.1.0.70, Python 3.8 to 3.12, driver 525.60.13 to 580)"
    assert f"PyTorch's wheel index, cu124 {changes}" in told


def test_nothing_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--gpu", "gh200", "--framework", "jax==0.9.0", "--platform", "linux-aarch64"]
    assert main(["triangle", "why", *words]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "does not work:",
        "  no build of these versions is known",
        "nothing that is known runs on these cards",
    ]


def test_a_build_without_its_own_cudnn(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triangle", "why", "--framework", "pytorch==1.8.0"]) == 0
    assert capsys.readouterr().out.splitlines() == ["works:", "  torch 1.8.0, CUDA 10.2, PyPI"]


def test_a_site_s_build_says_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pytorch.toml").write_text(
        '[sources]\nwiki = "our wiki"\n[[build]]\nversion = "2.99.0"\norigin = "ours"\n'
        'platform = "linux-64"\ncuda = "12.4"\ncodes = ["sm_90"]\n'
        'sources = ["wiki"]\nread = "2026-12-01"\nconfidence = "low"\n'
    )
    monkeypatch.setenv("ENVBUILD_FACTS", str(tmp_path))
    words = ["--gpu", "h100", "--framework", "pytorch==2.99"]
    assert main(["triangle", "list", *words]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("native  ours (own facts)")
    assert main(["triangle", "list", *words, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["sets"]
    assert (one["site"], one["sources"]) == (str(tmp_path), ["our wiki"])
    assert main(["triangle", "plot", *words]) == 0
    assert f"(source: our wiki; the site's own facts, {tmp_path})" in capsys.readouterr().out


def test_plotting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["triangle", "plot", "--gpu", "h100", "--gpu", "9.0", "--framework", "pytorch==2.4.0"]
    for name, begins in (("x.svg", "<svg "), ("x.html", "<!DOCTYPE html>"), ("x.HTM", "<!DOC")):
        assert main([*words, "--output", str(tmp_path / name)]) == 0
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == f"wrote {tmp_path / name}: 3 rows, 2 columns\n"
        assert (tmp_path / name).read_text().startswith(begins)
    for options, name in (([], "x.svg"), (["--html"], "x.html"), (["--html", "-o", "-"], "x.html")):
        assert main([*words, *options]) == 0
        assert capsys.readouterr().out == (tmp_path / name).read_text()
    again = "Made by envbuild triangle plot --gpu h100 --gpu 9.0 --framework pytorch==2.4.0, from"
    assert again in (tmp_path / "x.html").read_text()


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--output", "x.png"], 2, "--output: x.png ends in .png, which is neither"),
        (["--output", "x"], 2, "--output: x has no suffix, which is neither .svg nor .html"),
        (["--html", "--output", "x.svg"], 2, "--html: x.svg ends in .svg"),
        (["--output", "nowhere/x.svg"], 3, "nowhere/x.svg cannot be written: No such file"),
        (["--framework", "jax", "--platform", "linux-aarch64"], 1, "no build of this to draw"),
    ],
)
def test_what_cannot_be_plotted(
    options: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["triangle", "plot", *options]) == code
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "begun", "offered"),
    [
        ("--gpu", "h2", {"h20", "h200"}),
        ("--gpu", "10", {"10.0", "10.3", "10.7"}),
        ("--framework", "", {"pytorch", "jax"}),
        (
            "--python",
            "3.1",
            {"3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t", "3.15", "3.15t"},
        ),
        ("--driver", "55", {"550", "555"}),
        ("--cuda", "12.8", {"12.8"}),
        ("--cudnn", "8", {"8.9"}),
    ],
)
def test_what_is_known_is_completed(option: str, begun: str, offered: set[str]) -> None:
    shell = ShellComplete(commands, {}, "envbuild", "_ENVBUILD_COMPLETE")
    found = shell.get_completions(["triangle", "list", option], begun)
    assert {item.value for item in found} == offered
