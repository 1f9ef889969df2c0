"""Which files of an interpreter are taken, and what changes its digest."""

from pathlib import Path
from typing import Any

import pytest

from envbuild.channel import sources
from envbuild.channel.interpreter import HostPython
from envbuild.errors import HostError

TAKEN = (
    "lib/python3.11/os.py",
    "lib/python3.11/json/__init__.py",
    "lib/python3.11/ensurepip/_bundled/pip-23.0-py3-none-any.whl",
    "lib/python3.11/config-3.11-x86_64-linux-gnu/Makefile",
    "lib/python3.11/lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so",
    "include/python3.11/Python.h",
    "include/python3.11/cpython/object.h",
    "include/python3.11/pyconfig.h",
    "bin/python3.11",
    "bin/python3.11-config",
    "lib/pkgconfig/python-3.11.pc",
)
LEFT = (
    "lib/python3.11/test/test_os.py",
    "lib/python3.11/unittest/test/test_x.py",
    "lib/python3.11/idlelib/idle.py",
    "lib/python3.11/turtledemo/clock.py",
    "lib/python3.11/site-packages/numpy/__init__.py",
    "lib/python3.11/dist-packages/x.py",
    "lib/python3.11/__pycache__/os.cpython-311.pyc",
    "lib/python3.11/old.pyc",
    "lib/python3.11/sitecustomize.py",
    "lib/python3.11/usercustomize.py",
    "lib/python3.11/EXTERNALLY-MANAGED",
    "lib/python3.11/_distutils_system_mod.py",
    "lib/python3.11/config-3.11-x86_64-linux-gnu/libpython3.11.a",
    "lib/python3.11/config-3.11-x86_64-linux-gnu/libpython3.11.so",
    "lib/python3.11/lib-dynload/_testcapi.cpython-311-x86_64-linux-gnu.so",
    "lib/python3.11/lib2to3/Grammar3.11.7.final.0.pickle",
    "include/python3.11/numpy/arrayobject.h",
    "bin/pip",
)


def install(prefix: Path, **fields: Any) -> HostPython:  # noqa: ANN401
    """Lay out an interpreter of small files."""
    for name in (*TAKEN, *LEFT):
        path = prefix / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{Path(name).name}\n")
    (prefix / "bin/python3.11").chmod(0o755)
    values = {
        "path": prefix / "bin/python3.11",
        "version": "3.11.7",
        "platform": "linux-64",
        "prefix": prefix,
        "built_prefix": str(prefix),
        "stdlib": prefix / "lib/python3.11",
        "platstdlib": prefix / "lib/python3.11",
        "include": prefix / "include/python3.11",
        "libdir": prefix / "lib",
        "soname": "libpython3.11.a",
        "multiarch": "",
        "wheels": None,
        "scheme": "posix_prefix",
        **fields,
    }
    return HostPython(**values)


def digest(python: HostPython) -> str:
    taken = sources.collect(python)
    return sources.digest_of(taken, sources.hashes(taken))


def test_what_is_taken(tmp_path: Path) -> None:
    taken = sources.collect(install(tmp_path))
    assert [source.target for source in taken] == sorted(TAKEN)
    modes = {source.target: source.mode for source in taken}
    assert modes["bin/python3.11"] == modes["bin/python3.11-config"] == 0o755
    assert modes["lib/python3.11/os.py"] == 0o644


def test_the_digest_is_over_path_mode_and_content(tmp_path: Path) -> None:
    python = install(tmp_path / "a")
    first = digest(python)
    assert len(first) == 64
    assert digest(install(tmp_path / "b")) == first

    module = python.stdlib / "os.py"
    module.chmod(0o600)
    assert digest(python) == first
    module.chmod(0o755)
    assert digest(python) != first
    module.chmod(0o644)
    module.write_text("changed\n")
    changed = digest(python)
    assert changed != first
    module.rename(module.with_name("moved.py"))
    assert digest(python) not in {first, changed}


def test_what_is_left_out_does_not_change_it(tmp_path: Path) -> None:
    python = install(tmp_path)
    first = digest(python)
    for name in LEFT:
        (tmp_path / name).write_text("changed\n")
    (python.stdlib / "broken.py").symlink_to("nowhere")
    assert digest(python) == first


def test_the_format_of_the_packer_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = install(tmp_path)
    first = digest(python)
    monkeypatch.setattr(sources, "FORMAT", sources.FORMAT + 1)
    assert digest(python) != first


def test_links_are_followed(tmp_path: Path) -> None:
    python = install(tmp_path)
    (python.stdlib / "_sysconfigdata_a.py").symlink_to("os.py")
    taken = {source.target: source for source in sources.collect(python)}
    assert taken["lib/python3.11/_sysconfigdata_a.py"].mode == 0o644


def test_debian_headers_and_wheels(tmp_path: Path) -> None:
    wheels = tmp_path / "share/python-wheels"
    python = install(tmp_path, multiarch="x86_64-linux-gnu", wheels=wheels)
    real = tmp_path / "include/x86_64-linux-gnu/python3.11/pyconfig.h"
    for path in (
        real,
        wheels / "pip-24.0-py3-none-any.whl",
        wheels / "setuptools-66.0-py3-none-any.whl",
        wheels / "distlib-0.3-py3-none-any.whl",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    taken = {source.target: source.path for source in sources.collect(python)}
    assert taken["include/python3.11/pyconfig.h"] == real
    bundled = "lib/python3.11/ensurepip/_bundled"
    assert f"{bundled}/pip-24.0-py3-none-any.whl" in taken
    assert f"{bundled}/setuptools-66.0-py3-none-any.whl" in taken
    assert f"{bundled}/distlib-0.3-py3-none-any.whl" not in taken


def test_extension_modules_in_a_folder_of_their_own(tmp_path: Path) -> None:
    python = install(tmp_path, platstdlib=tmp_path / "lib64/python3.11")
    module = tmp_path / "lib64/python3.11/lib-dynload/_x.so"
    module.parent.mkdir(parents=True)
    module.write_text("x")
    targets = [source.target for source in sources.collect(python)]
    assert "lib/python3.11/lib-dynload/_x.so" in targets


def test_no_headers_and_no_scripts(tmp_path: Path) -> None:
    python = install(tmp_path)
    (python.include / "Python.h").unlink()
    (tmp_path / "bin/python3.11-config").unlink()
    targets = [source.target for source in sources.collect(python)]
    assert not [target for target in targets if target.startswith("include/")]
    assert "bin/python3.11-config" not in targets


def test_watched_shows_what_is_put_in_place(tmp_path: Path) -> None:
    python = install(tmp_path)
    seen = sources.watched(python)
    assert seen[0] == python.path
    assert python.stdlib in seen
    assert python.stdlib / "json" in seen
    assert not [path for path in seen if "site-packages" in path.parts or "test" in path.parts]


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    python = install(tmp_path, stdlib=tmp_path / "no", platstdlib=tmp_path / "no")
    with pytest.raises(HostError, match="cannot be packed") as caught:
        sources.collect(python)
    assert caught.value.hint
    with pytest.raises(HostError, match="cannot be read"):
        sources.watched(python)


def test_a_file_that_goes_away(tmp_path: Path) -> None:
    python = install(tmp_path)
    taken = sources.collect(python)
    (python.stdlib / "os.py").unlink()
    with pytest.raises(HostError, match="cannot be read"):
        sources.hashes(taken)


def test_digest_text_is_stable() -> None:
    source = sources.Source(target="bin/python3.11", path=Path("/x"), mode=0o755)
    found = sources.digest_of([source], ["00" * 32])
    assert found == "d2a4403119ea075d73a92e21fbac405b47e75db5c07f3e86848fe8966e91cdb5"
