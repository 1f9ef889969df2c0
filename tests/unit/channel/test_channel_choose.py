"""Which interpreter is taken, in which order, and what is said where none fits."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envbuild.channel import added, host
from envbuild.channel.host import Wish
from envbuild.channel.interpreter import HostPython, Unfit, ask
from envbuild.errors import HostError, RecipeError, StoreError, ToolMissing
from envbuild.store.layout import Store
from envbuild.tools.run import Completed, Watch


def answer(path: str, version: str, **facts: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return what an interpreter says of itself."""
    minor = ".".join(version.split(".")[:2])
    return {
        "implementation": "CPython",
        "version": version,
        "level": "final",
        "path": path,
        "prefix": "/opt/python",
        "built_prefix": "/opt/python",
        "stdlib": f"/opt/python/lib/python{minor}",
        "platstdlib": f"/opt/python/lib/python{minor}",
        "include": f"/opt/python/include/python{minor}",
        "libdir": "/opt/python/lib",
        "soname": f"libpython{minor}.so.1.0",
        "multiarch": "x86_64-linux-gnu",
        "soabi": "cpython-311-x86_64-linux-gnu",
        "wheels": "",
        "scheme": "posix_prefix",
        "debug": False,
        "free_threaded": False,
        "machine": "x86_64",
        "wide": True,
        "missing": [],
        **facts,
    }


class Machine:
    """A machine with interpreters: path to what each answers (a text is what it complains of)."""

    def __init__(self, answers: Mapping[str, dict[str, Any] | str]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(  # noqa: PLR0913 - as a runner
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str],
        stdin: str | None = None,
        cwd: Path | None = None,
        timeout_s: float | None = None,
        log: Path | None = None,
        check: bool = True,
        keep: Sequence[int] = (),
        watch: Watch | None = None,
    ) -> Completed:
        del stdin, cwd, log, check, keep, watch
        assert timeout_s
        assert "PYTHONPATH" not in env
        words = tuple(os.fspath(word) for word in argv)
        assert words[1:4] == ("-I", "-S", "-c")
        self.asked.append(words[0])
        told = self.answers.get(words[0])
        if told is None:
            raise ToolMissing("no such program")  # noqa: TRY003, EM101
        if isinstance(told, str):
            return Completed(argv=words, status=1, stdout="", stderr=told)
        return Completed(argv=words, status=0, stdout=json.dumps(told), stderr="")


def programs(folder: Path, *names: str) -> str:
    """Make executable files, and return their folder as a PATH."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).touch(mode=0o755)
    return str(folder)


def test_the_option_comes_first() -> None:
    machine = Machine({"/a": answer("/a", "3.11.1"), "/b": answer("/b", "3.12.1")})
    wish = Wish(option="/a", variable="/b", running=Path("/b"))
    found = host.choose(">=3.11", wish, runner=machine)
    assert (found.path, found.version, found.origin) == (Path("/a"), "3.11.1", "--python")
    assert machine.asked == ["/a"]


def test_then_the_variable() -> None:
    machine = Machine({"/a": answer("/a", "3.11.1"), "/b": answer("/b", "3.12.1")})
    found = host.choose(">=3.11", Wish(variable="/b", running=Path("/a")), runner=machine)
    assert (found.path, found.origin) == (Path("/b"), "ENVBUILD_PYTHON")


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (Wish(option="/a", running=Path("/b")), "/a: 3.10.4 is not in >=3.11"),
        (Wish(variable="/a", running=Path("/b")), "ENVBUILD_PYTHON=/a: 3.10.4 is not in >=3.11"),
        (Wish(option="/no"), "/no: it does not start (no such program)"),
    ],
)
def test_one_that_is_named_is_never_skipped(wish: Wish, told: str) -> None:
    machine = Machine({"/a": answer("/a", "3.10.4"), "/b": answer("/b", "3.12.1")})
    with pytest.raises(HostError) as caught:
        host.choose(">=3.11", wish, runner=machine)
    assert caught.value.message == told
    assert caught.value.exit_code == 7
    assert caught.value.hint


def test_a_name_is_looked_up_on_path(tmp_path: Path) -> None:
    search = programs(tmp_path / "bin", "python3.12")
    path = f"{search}/python3.12"
    machine = Machine({path: answer(path, "3.12.1")})
    wish = Wish(option="python3.12", search=f"relative:{search}")
    assert host.choose("", wish, runner=machine).path == Path(path)


def test_the_running_one_before_path(tmp_path: Path) -> None:
    search = programs(tmp_path / "bin", "python3.13")
    path = f"{search}/python3.13"
    machine = Machine({"/a": answer("/base/a", "3.11.1"), path: answer(path, "3.13.1")})
    found = host.choose(">=3.11", Wish(running=Path("/a"), search=search), runner=machine)
    assert (found.path, found.origin) == (Path("/base/a"), "running")
    assert machine.asked == ["/a"]


def test_the_newest_on_path_in_range(tmp_path: Path) -> None:
    names = ("python3", "python3.9", "python3.12", "python3.13", "python3.14", "python3-config")
    search = programs(tmp_path / "bin", *names)
    bin_folder = tmp_path / "bin"
    machine = Machine(
        {
            f"{bin_folder}/python3": answer("/x/3", "3.11.2"),
            f"{bin_folder}/python3.12": answer("/x/12", "3.12.10"),
            f"{bin_folder}/python3.13": answer("/x/13", "3.13.9"),
            "/a": answer("/a", "3.10.1"),
        }
    )
    found = host.choose(">=3.11,<3.14", Wish(running=Path("/a"), search=search), runner=machine)
    assert (found.path, found.origin) == (Path("/x/13"), "PATH")
    # By their names alone these cannot fit.
    assert not [path for path in machine.asked if path.endswith(("3.9", "3.14", "config"))]


def test_none_fits_names_every_one_and_why(tmp_path: Path) -> None:
    search = programs(tmp_path / "bin", "python3", "python3.9", "python3.12", "python3.13")
    machine = Machine(
        {
            "/a": answer("/a", "3.10.1"),
            f"{search}/python3.12": "x" * 1000,
            f"{search}/python3": answer("/x", "3.11.2", implementation="PyPy"),
            f"{search}/python3.13": "Traceback (most recent call last):\nImportError: no json",
        }
    )
    with pytest.raises(HostError) as caught:
        host.choose(">=3.11", Wish(running=Path("/a"), search=search), runner=machine)
    message = caught.value.message
    assert "\n" not in message
    assert "/a: 3.10.1 is not in >=3.11" in message
    assert "python3: it is PyPy 3.11.2, not CPython" in message
    assert "python3.9: 3.9 is not in >=3.11" in message
    assert "python3.13: it does not answer (ImportError: no json)" in message
    assert f"python3.12: it does not answer ({'x' * 160}…)" in message


def test_no_python_at_all() -> None:
    with pytest.raises(HostError, match="there is none on PATH"):
        host.choose(">=3.11", Wish(search="/nonexistent"), runner=Machine({}))


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"implementation": "PyPy"}, "it is PyPy 3.11.7, not CPython"),
        ({"level": "candidate"}, "it is a pre-release of 3.11.7"),
        ({"free_threaded": True}, "it is a free-threaded 3.11.7"),
        ({"debug": True}, "it is a debug build of 3.11.7"),
        ({"wide": False}, "it is a 32-bit 3.11.7"),
        ({"soabi": "cpython-311-x86_64-linux-musl"}, "built for musl"),
        ({"missing": ["venv", "zlib"]}, "3.11.7 lacks venv, zlib of the standard library"),
        ({"machine": "riscv64"}, "3.11.7 is built for riscv64"),
    ],
)
def test_what_is_refused(facts: dict[str, Any], told: str) -> None:
    machine = Machine({"/a": answer("/a", "3.11.7", **facts)})
    with pytest.raises(Unfit) as caught:
        ask(Path("/a"), runner=machine)
    assert told in caught.value.message


def test_an_old_python_says_only_its_version() -> None:
    old = {"implementation": "CPython", "version": "3.6.1", "level": "final"}
    with pytest.raises(Unfit, match=r"it is Python 3\.6\.1, too old"):
        ask(Path("/a"), runner=Machine({"/a": old}))


def test_a_program_that_is_no_python() -> None:
    with pytest.raises(Unfit, match="it answers like no Python"):
        ask(Path("/a"), runner=Machine({"/a": {}}))


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (">=3.11,<3.15", "3.14.9", "3.15.0"),
        ("3.12", "3.12.7", "3.13.0"),
        ("3.12.*", "3.12.7", "3.11.0"),
        ("3.12.7", "3.12.7", "3.12.8"),
        ("", "3.9.1", None),
    ],
)
def test_ranges(text: str, inside: str, outside: str | None) -> None:
    assert inside in host.version_range(text)
    assert outside is None or outside not in host.version_range(text)


def test_what_is_no_range() -> None:
    with pytest.raises(RecipeError, match="'newest' is not a range"):
        host.choose("newest", Wish())


def an_added(channels: Path, version: str, digest: str) -> HostPython:
    python = ask(Path("/a"), runner=Machine({"/a": answer("/a", version)}))
    return replace(
        python,
        archive=channels / "host/linux-64" / f"python-{version}-h{digest}_host.conda",
        archive_digest=digest,
    )


def listed(channels: Path, *pythons: HostPython) -> None:
    """Write the list of added interpreters as it is on disk."""
    entries = [
        {
            **{key: None if value is None else str(value) for key, value in fields(python).items()},
            "archive": python.archive.name if python.archive else None,
        }
        for python in pythons
    ]
    added.index_of(channels).parent.mkdir(parents=True)
    added.index_of(channels).write_text(json.dumps({"version": 1, "pythons": entries}))


def fields(python: HostPython) -> dict[str, Any]:
    return {name: getattr(python, name) for name in python.__dataclass_fields__}


def test_an_added_one_comes_before_the_running_one(tmp_path: Path) -> None:
    listed(tmp_path, an_added(tmp_path, "3.12.1", "aa"), an_added(tmp_path, "3.12.1", "bb"))
    machine = Machine({"/a": answer("/a", "3.11.7")})
    wish = Wish(channels=tmp_path, running=Path("/a"))
    found = host.choose(">=3.11", wish, runner=machine)
    assert (found.version, found.origin) == ("3.12.1", "channel add-python")
    assert found.archive_digest == "bb"  # the newest of equal ones
    assert host.digest(found) == "bb"
    assert host.watched(found) == (found.archive,)
    listed_in = Store(root=tmp_path.parent).added_pythons
    assert host.watched(found, added.index_of(tmp_path)) == (
        found.archive,
        added.index_of(tmp_path),
    )
    assert listed_in == added.index_of(tmp_path.parent / "channels")
    assert host.choose("3.11", wish, runner=machine).origin == "running"


def test_a_damaged_list_of_added_ones(tmp_path: Path) -> None:
    listed(tmp_path)
    added.index_of(tmp_path).write_text("{")
    with pytest.raises(StoreError, match="is damaged"):
        host.choose("", Wish(channels=tmp_path))


def test_an_added_package_that_is_gone(tmp_path: Path) -> None:
    python = an_added(tmp_path, "3.12.1", "aa")
    with pytest.raises(HostError, match="cannot be used"):
        host.pack(python, tmp_path)


def test_a_changed_interpreter_is_a_finding(tmp_path: Path) -> None:
    python = an_added(tmp_path, "3.12.1", "aa")
    assert host.changed("/a", "aa", python) == ()
    (finding,) = host.changed("/a", "bb", python)
    assert (finding.code, finding.severity) == ("interpreter-changed", "warning")
    assert "it was updated" in finding.what
    assert finding.hint is None
    (finding,) = host.changed("/other", "bb", python)
    assert "/a would be taken now, not /other" in finding.what
    assert finding.hint == "to stay with the old one: --python /other"


def test_whether_it_is_still_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine({"/a": answer("/a", "3.11.7")})
    monkeypatch.setattr(host, "digest", lambda python: f"digest of {python.version}")
    assert host.still(Path("/a"), "digest of 3.11.7", runner=machine)
    assert not host.still(Path("/a"), "digest of 3.11.6", runner=machine)
    assert not host.still(tmp_path, "digest of 3.11.7", runner=machine)
