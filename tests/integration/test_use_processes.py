"""`run`, `shell` and `activate` as real processes and in real shells."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import generations as made
import pytest

from envbuild.store.layout import Generation
from envbuild.tools import files

_SCRIPT = str(Path(sys.executable).with_name("envbuild"))
_TRICKY = 'it\'s a "test"\n$HOME `id` \\ *'


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    scripts = {
        "show": f"#!{sys.executable}\nimport json, os, sys\n"
        "print(json.dumps([sys.argv[1:], dict(os.environ), os.getpid()]))\n",
        "no-mark": "echo no mark $1\n",
        "lost": "#!/nowhere/python\n",
        "fail": "#!/bin/sh\nexit 42\n",
    }
    place = made.place_in(tmp_path)
    generation = made.make(place, made.FIRST, scripts=scripts, variables={"TRICKY": _TRICKY})
    made.make_current(generation)
    return generation


def _environment(generation: Generation, **more: str) -> dict[str, str]:
    store = str(generation.place.store.root)
    return {"PATH": "/usr/bin:/bin", "HOME": "/dev/null", "ENVBUILD_STORE": store, **more}


def _envbuild(
    generation: Generation, *words: str, **more: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [_SCRIPT, *words],
        env=_environment(generation, **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_command_replaces_the_process_and_gets_its_words(generation: Generation) -> None:
    words = ["--", "-h", "a b", "", "--store", "x"]
    process = subprocess.Popen(
        [_SCRIPT, "run", "demo", "--", "show", *words],
        env=_environment(generation, PYTHONPATH="/x"),
        stdout=subprocess.PIPE,
        text=True,
    )
    text, _ = process.communicate(timeout=60)
    arguments, environment, pid = json.loads(text)
    assert (arguments, pid) == (words, process.pid)
    assert environment["TRICKY"] == _TRICKY
    assert environment["CONDA_PREFIX"] == str(generation.prefix)
    assert environment["PATH"] == f"{generation.prefix}/bin:/usr/bin:/bin"
    assert "PYTHONPATH" not in environment


@pytest.mark.skipif(not Path("/usr/bin/env").exists(), reason="no /usr/bin/env")
def test_what_a_caller_set_stays_but_for_another_pythons_modules(generation: Generation) -> None:
    told = {"LD_LIBRARY_PATH": "/opt/lib", "PIP_INDEX_URL": "https://index.test/simple"}
    # envbuild's own interpreter: with another's home it would not begin.
    foreign = {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": "/opt/modules"}
    done = _envbuild(generation, "-v", "run", "demo", "/usr/bin/env", **told, **foreign)
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert seen.items() >= told.items()
    assert not seen.keys() & foreign.keys()
    said = [line.partition(" is not handed on")[0] for line in done.stderr.splitlines()]
    assert said == sorted(foreign)
    assert _envbuild(generation, "run", "demo", "/usr/bin/env", **foreign).stderr == ""


@pytest.mark.skipif(not Path("/usr/bin/env").exists(), reason="no /usr/bin/env")
def test_nothing_is_added_that_was_not_asked_for(generation: Generation) -> None:
    text = _envbuild(generation, "run", "demo", "/usr/bin/env", "-0").stdout
    names = {line.split("=", 1)[0] for line in text.split("\0") if line}
    assert names == {"PATH", "HOME", "ENVBUILD_STORE", "CONDA_PREFIX", "TRICKY"}
    kept = _envbuild(generation, "run", "demo", "/usr/bin/env", LC_CTYPE="C.UTF-8").stdout
    assert "LC_CTYPE=C.UTF-8" in kept.splitlines()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["demo", "fail"], 42),
        (["demo", "--", "fail"], 42),
        (["demo", "no-mark"], 0),
        (["demo", "lost"], 126),
        (["demo", "/dev/null"], 126),
        (["demo", "nowhere"], 127),
        (["demo"], 125),
        (["demo", "--"], 125),
        (["demos", "true"], 125),
        (["../demo", "true"], 125),
        (["--generation", "beef", "demo", "true"], 125),
        (["--generation", "11", "demo", "fail"], 42),
    ],
)
def test_exit_codes(generation: Generation, words: Sequence[str], code: int) -> None:
    done = _envbuild(generation, "run", *words)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_a_script_without_a_first_line_is_run_by_sh(generation: Generation) -> None:
    assert _envbuild(generation, "run", "demo", "no-mark", "x").stdout == "no mark x\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_the_command_as_itself(
    generation: Generation, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [_SCRIPT, "run", "demo", "--", "sh", "-c", "echo ready; exec sleep 60"],
        env=_environment(generation),
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.wait(10) == -number
    process.stdout.close()


def test_a_broken_pipe_ends_the_command_silently(generation: Generation) -> None:
    """Python ignores SIGPIPE; what it becomes must not."""
    endless = "i=0; while [ $i -lt 200000 ]; do echo x; i=$((i+1)); done"
    command = f"{_SCRIPT} run demo -- sh -c '{endless}' | head -n1; "
    done = subprocess.run(
        ["/bin/bash", "-c", command + 'echo "${PIPESTATUS[0]}"'],
        env=_environment(generation),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == ["x", "141"]
    assert done.stderr == ""


def test_descriptors_are_handed_on(generation: Generation) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader) as source:
        subprocess.run(
            [_SCRIPT, "run", "demo", "--", "bash", "-c", f"echo through >&{writer}; cat"],
            env=_environment(generation),
            pass_fds=[writer],
            input=b"stdin",
            check=True,
            timeout=60,
        )
        os.close(writer)
        assert source.read() == "through\n"


def test_a_running_command_stays_with_its_generation(generation: Generation) -> None:
    """The resolved path counts, never `current`, which may move meanwhile."""
    done = _envbuild(generation, "run", "demo", "--", "sh", "-c", 'echo "$CONDA_PREFIX:$PATH"')
    assert "/current" not in done.stdout


def test_a_moved_store_is_refused(generation: Generation, tmp_path: Path) -> None:
    (tmp_path / "store").rename(tmp_path / "moved")
    done = _envbuild(generation, "run", "--store", str(tmp_path / "moved"), "demo", "true")
    assert done.returncode == 125
    assert f"was made for {generation.prefix}" in done.stderr


def test_run_imports_little(generation: Generation) -> None:
    seen = subprocess.run(
        [sys.executable, "-X", "importtime", _SCRIPT, "run", "demo", "--", "true"],
        env=_environment(generation),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stderr
    loaded = set(re.findall(r"\| +([\w.]+)$", seen, re.MULTILINE))
    assert "envbuild.store.use" in loaded
    heavy = {"pydantic", "rattler", "rich", "ruamel", "subprocess", "tempfile", "hashlib"}
    assert not loaded & {*heavy, "requests", "packaging", "envbuild.tools.files"}


_SHELLS = ["bash", "zsh"]


def _in_shell(
    program: Callable[[str], str], shell: str, generation: Generation, text: str, **more: str
) -> "subprocess.CompletedProcess[str]":
    quiet = ["--norc", "--noprofile"] if shell == "bash" else ["-f"]
    activate = f'eval "$({_SCRIPT} activate demo)"'
    return subprocess.run(
        [program(shell), *quiet, "-c", f"set -euo pipefail\n{text.replace('ACTIVATE', activate)}"],
        env=_environment(generation, **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("shell", _SHELLS)
def test_activate_and_deactivate_under_strict_settings(
    program: Callable[[str], str], generation: Generation, shell: str
) -> None:
    text = """
    before="$(env | sort | grep -v '^_=')"
    ACTIVATE
    hello inside
    printf '%s|' "$TRICKY" "${PYTHONPATH-none}" "$CONDA_PREFIX"
    envbuild_deactivate
    after="$(env | sort | grep -v '^_=')"
    if [ "$before" = "$after" ]; then echo same; else echo "$before" "$after"; fi
    if hello 2>/dev/null; then echo still there; fi
    if typeset -f deactivate envbuild_deactivate >/dev/null; then echo left; fi
    set | grep -a '^_ENVBUILD' || echo clean
    """
    done = _in_shell(program, shell, generation, text, PYTHONPATH="/x", CONDA_PREFIX="/old env")
    assert done.stderr == ""
    expected = f"hello from {made.FIRST} inside\n{_TRICKY}|none|{generation.prefix}|same\nclean\n"
    assert done.stdout == expected
    assert done.returncode == 0


@pytest.mark.parametrize("shell", _SHELLS)
def test_activating_again_leaves_nothing_of_the_first(
    program: Callable[[str], str], generation: Generation, shell: str
) -> None:
    text = 'old="$PATH"; ACTIVATE\nACTIVATE\necho "$PATH"\ndeactivate\n[ "$PATH" = "$old" ]'
    done = _in_shell(program, shell, generation, text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{generation.prefix}/bin:/usr/bin:/bin\n"


@pytest.mark.parametrize("shell", _SHELLS)
def test_a_deactivate_of_the_users_own_stays(
    program: Callable[[str], str], generation: Generation, shell: str
) -> None:
    text = "deactivate() { echo mine; }\nACTIVATE\nenvbuild_deactivate\ndeactivate"
    assert _in_shell(program, shell, generation, text).stdout == "mine\n"


@pytest.mark.parametrize("shell", _SHELLS)
def test_the_prompt_shows_the_name(
    program: Callable[[str], str], generation: Generation, shell: str
) -> None:
    text = 'PS1="> "\nACTIVATE\necho "$PS1"\ndeactivate\necho "$PS1"'
    assert _in_shell(program, shell, generation, text).stdout == "(demo) > \n> \n"


@pytest.mark.parametrize("shell", _SHELLS)
def test_a_failed_activation_ends_a_strict_script(
    program: Callable[[str], str], generation: Generation, shell: str
) -> None:
    text = "ACTIVATE\necho went on"
    files.remove_tree(generation.place.root)
    done = _in_shell(program, shell, generation, text)
    assert (done.returncode, done.stdout) == (3, "")
    assert "no environment 'demo'" in done.stderr


class _Terminal:
    """A program on a terminal of its own."""

    def __init__(self, words: Sequence[str], environment: dict[str, str]) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.execve(words[0], list(words), environment)  # noqa: S606
        self.text = ""

    def type(self, line: str) -> None:
        os.write(self.descriptor, f"{line}\n".encode())

    def wait_for(self, pattern: str) -> "re.Match[str]":
        end = time.monotonic() + 20
        while time.monotonic() < end:
            found = re.search(pattern, self.text)
            if found:
                self.text = self.text[found.end() :]
                return found
            if select.select([self.descriptor], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.descriptor, 4096).decode(errors="replace")
                except OSError:
                    break
        pytest.fail(f"{pattern!r} did not come: {self.text!r}")

    def end(self) -> int:
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.descriptor)
        return status


@pytest.mark.parametrize("shell", _SHELLS)
def test_shell_shows_the_name_and_exit_returns(
    program: Callable[[str], str], generation: Generation, tmp_path: Path, shell: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    setting = "export MINE=rc PATH=/usr/bin:/bin; PS1='$ '\n"
    (home / ".bashrc").write_text(setting)
    (home / ".zshrc").write_text(setting)
    words = {"SHELL": program(shell), "HOME": str(home), "TERM": "dumb"}
    environment = _environment(generation, TMPDIR=str(tmp_path), **words)
    terminal = _Terminal([_SCRIPT, "shell", "demo"], environment)
    terminal.wait_for(r"\(demo\) \$ ")
    terminal.type('hello; echo "$MINE=$PATH=${ZDOTDIR-none}="')
    terminal.wait_for(f"hello from {made.FIRST}")
    terminal.wait_for(f"rc={generation.prefix}/bin:/usr/bin:/bin=none=")
    terminal.type(f"{_SCRIPT} shell demo")
    terminal.wait_for("inside the shell of demo")
    terminal.wait_for(r"\(demo\) \$ ")
    terminal.type("exit 3")
    terminal.wait_for(r"\(demo\) \$ ")
    terminal.type("ls -l /proc/self/fd; exit 7")
    listing = terminal.wait_for(r"(?s)exit 7(.*)")[1]
    assert terminal.end() == 7
    assert "memfd" not in listing
    assert not list(tmp_path.glob("envbuild-zsh-*"))


def test_shell_without_a_terminal_reads_its_input(generation: Generation) -> None:
    done = subprocess.run(
        [_SCRIPT, "shell", "demo"],
        env=_environment(generation, SHELL="/bin/sh"),
        input="hello there; exit 5\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (5, f"hello from {made.FIRST} there\n")
