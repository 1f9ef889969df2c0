"""A wheel that needs a newer libstdc++ than the host's, where the conda half brings one.

Both are stand-ins of a few lines with libstdc++'s name and versions: what counts is which file
the loader maps. The Python comes from a channel and finds libraries as conda's does.
"""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from integration.channel_server import serve
from integration.index_server import Index, serving, wheel
from integration.networking import CHANNEL, Network
from integration.packages import File, Made, make_package, write_index

from envbuild.channel import host
from envbuild.channel.interpreter import ask
from envbuild.store.layout import Store

_MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"
_TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
_LIBRARY = "int of_the_future(void) { return 42; }\n"
_VERSIONS = "GLIBCXX_3.4.99 { global: of_the_future; local: *; };\n"
_MODULE = """\
#include <Python.h>
int of_the_future(void);
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "NAME", 0, -1, 0};
PyMODINIT_FUNC PyInit_NAME(void) {
    PyObject *made = PyModule_Create(&module);
    PyModule_AddIntConstant(made, "answer", of_the_future());
    return made;
}
"""
_ASK = """\
import NAME, sys
print(NAME.answer, flush=True)
sys.stdin.read()
"""
_SEARCHES = {
    "bare": (),
    "rpath": ("-Wl,--disable-new-dtags,-rpath,$ORIGIN/newer.libs",),
    "runpath": ("-Wl,--enable-new-dtags,-rpath,$ORIGIN/newer.libs",),
}


@contextmanager
def _project(tmp_path: Path, warm: Store, gcc: str) -> Iterator[Network]:
    """Serve a Python, a libstdc++ and the wheel; yield a project that asks for them."""
    folder = tmp_path / "channel"
    python = _python(folder, warm)
    library, modules = _compiled(tmp_path, gcc)
    content = {"lib/libstdc++.so.6": File(content=library, mode=0o755)}
    brings = make_package(folder, "libstdcxx-ng", "99.1", content=content)
    write_index(folder, [python, brings])
    made = wheel("newer", "1", tag=f"{_TAG}-{_TAG}-linux_{os.uname().machine}", files=modules)
    with serve(folder) as served, serving(main=Index(wheels=[made])) as index:
        net = Network(root=tmp_path / "net", channel=served, index=index)
        net.write(
            f"name: net\npython: '{_MINOR}'\nchannels: [{CHANNEL}]\nconda: [libstdcxx-ng]\n"
            "pypi: [newer]\n"
        )
        yield net


def _python(folder: Path, warm: Store) -> Made:
    """Put the interpreter of the tests, packed, into a channel."""
    python = ask(Path(sys.executable))
    (folder / python.platform).mkdir(parents=True)
    for path in (warm.cache / "host" / python.platform).glob("*.conda"):
        os.link(path, folder / python.platform / path.name)
    record, archive = host.pack(python, folder / python.platform)
    data = {
        "name": record.name,
        "version": record.version,
        "build": record.build,
        "build_number": 0,
        "depends": list(record.depends),
        "constrains": [],
        "subdir": python.platform,
        "timestamp": 1_700_000_000_000,
        "sha256": record.sha256,
        "md5": record.md5,
        "size": record.size,
    }
    return Made(archive=archive, record=data)


def _compiled(folder: Path, gcc: str) -> tuple[bytes, dict[str, str | bytes]]:
    """Return a libstdc++, and modules that need it and say differently where to look for it."""
    made = [gcc, "-shared", "-fPIC", "-o"]
    (folder / "a.c").write_text(_LIBRARY)
    (folder / "a.map").write_text(_VERSIONS)
    own = ["a.c", "-Wl,-soname,libstdc++.so.6", "-Wl,--version-script=a.map"]
    subprocess.run([*made, "libstdc++.so.6", *own], cwd=folder, check=True)
    include = f"-I{sysconfig.get_path('include')}"
    modules: dict[str, str | bytes] = {}
    for name, search in _SEARCHES.items():
        (folder / "m.c").write_text(_MODULE.replace("NAME", name))
        file = f"{name}.{sysconfig.get_config_var('SOABI')}.so"
        words = [*made, file, "m.c", include, *search, "libstdc++.so.6"]
        subprocess.run(words, cwd=folder, check=True)
        modules[file] = (folder / file).read_bytes()
    return (folder / "libstdc++.so.6").read_bytes(), modules


@pytest.fixture
def gcc(program: Callable[[str], str]) -> str:
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        pytest.skip("no headers of this Python")
    return program("gcc")


@pytest.mark.slow
def test_the_environments_own_is_loaded_or_create_says_that_it_is_not(
    tmp_path: Path, warm: Store, gcc: str
) -> None:
    with _project(tmp_path, warm, gcc) as net:
        net.good("lock", "net")
        created = json.loads(net.run("create", "net", "--json").stdout)
        prefix = Path(created["prefix"]).resolve()
        (told,) = (one for one in created["findings"] if one["code"] == "libstdcxx-too-old")
        assert told["where"] == "pypi:newer"
        assert "it needs libstdc++ GLIBCXX_3.4.99, and it gets one with GLIBCXX_3.4" in told["what"]
        assert "bare" not in told["what"]
        assert "/rpath" not in told["what"]
        assert "its RUNPATH keeps the loader from the environment's own" in told["why"]
        for module in ("bare", "rpath"):
            assert _mapped(prefix, module) == {f"{prefix}/lib/libstdc++.so.6"}
        done = net.run("run", "net", "--", "python", "-c", "import runpath")
        assert "GLIBCXX_3.4.99' not found" in done.stderr


def _mapped(prefix: Path, module: str) -> set[str]:
    """Return the libstdc++ that a running Python has in its memory; nothing says where it is."""
    process = subprocess.Popen(
        [prefix / "bin/python", "-c", _ASK.replace("NAME", module)],
        env={},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"42\n"
    maps = Path(f"/proc/{process.pid}/maps").read_text().splitlines()
    process.communicate(b"")
    return {line.split()[-1] for line in maps if "libstdc++" in line}
