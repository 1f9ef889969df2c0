"""Text files of an interpreter: what must follow the prefix, and what must stay."""

from pathlib import Path
from typing import Any

import pytest

from envbuild.channel import rewrite
from envbuild.channel.interpreter import HostPython
from envbuild.channel.rewrite import PLACEHOLDER, rewritten
from envbuild.errors import HostError

DATA = "lib/python3.11/_sysconfigdata__linux_x86_64-linux-gnu.py"
MAKEFILE = "lib/python3.11/config-3.11-x86_64-linux-gnu/Makefile"


def python_at(prefix: str, **fields: Any) -> HostPython:  # noqa: ANN401
    root = Path(prefix)
    values = {
        "path": root / "bin/python3.11",
        "version": "3.11.7",
        "platform": "linux-64",
        "prefix": root,
        "built_prefix": prefix,
        "stdlib": root / "lib/python3.11",
        "platstdlib": root / "lib/python3.11",
        "include": root / "include/python3.11",
        "libdir": root / "lib",
        "soname": "libpython3.11.so.1.0",
        "multiarch": "x86_64-linux-gnu",
        "wheels": None,
        "scheme": "posix_prefix",
        **fields,
    }
    return HostPython(**values)


def text(content: str, python: HostPython, target: str = DATA) -> str:
    """Return a rewritten text with the placeholder as `@`."""
    return rewritten(target, content.encode(), python).decode().replace(PLACEHOLDER, "@")


def test_the_placeholder_is_long_enough_for_any_prefix() -> None:
    assert len(PLACEHOLDER) == 255
    assert PLACEHOLDER.startswith("/")


@pytest.mark.parametrize(
    "target",
    [
        DATA,
        MAKEFILE,
        "lib/python3.14/_sysconfig_vars__linux_x86_64-linux-gnu.json",
        "lib/python3.14/build-details.json",
        "lib/pkgconfig/python-3.11.pc",
        "bin/python3.11-config",
    ],
)
def test_an_own_prefix_is_replaced_everywhere(target: str) -> None:
    python = python_at("/opt/py/3.11.7")
    seen = text("-L/opt/py/3.11.7/lib '/opt/py/3.11.7' /opt/py/3.11.70 x/usr", python, target)
    assert seen == "-L@/lib '@' /opt/py/3.11.70 x/usr"


def test_modules_are_left_as_they_are() -> None:
    python = python_at("/opt/py/3.11.7")
    assert rewritten("lib/python3.11/os.py", b"/opt/py/3.11.7", python) == b"/opt/py/3.11.7"


def test_one_that_was_moved_after_it_was_built() -> None:
    python = python_at("/home/me/python", built_prefix="/install")
    seen = text("'/install' -L/install/lib /usr/install /installed '/home/me/python/x'", python)
    assert seen == "'@' -L/install/lib /usr/install /installed '@/x'"


DEBIAN = """\
 'BINDIR': '/usr/bin',
 'BINLIBDEST': '/usr/lib/x86_64-linux-gnu/python3.11',
 'CONFINCLUDEPY': '/usr/include/python3.11',
 'DESTDIRS': '/usr /usr/lib/x86_64-linux-gnu '
 'INSTALL': '/usr/bin/install -c',
 'LIBDIR': '/usr/lib/x86_64-linux-gnu',
 'LIBPC': '/usr/lib/x86_64-linux-gnu/pkgconfig',
 'LIBPL': '/usr/lib/python3.11/config-3.11-x86_64-linux-gnu',
 'MODULE__UUID_CFLAGS': '-I/usr/include/uuid',
 'OTHER': '-I/usr/include/python3.11 -I/usr/include/python3.110',
 'SCRIPTDIR': '/usr/lib',
 'TZPATH': '/usr/share/zoneinfo:/usr/lib/zoneinfo:/usr/share/lib/zoneinfo:/etc/zoneinfo',
 'WASM_STDLIB': './usr/lib/python3.11/os.py',
 'WHEEL_PKG_DIR': '/usr/share/python-wheels/',
 'datarootdir': '/usr/share',
 'prefix': '/usr'}
"""
DEBIAN_REWRITTEN = """\
 'BINDIR': '@/bin',
 'BINLIBDEST': '@/lib/python3.11',
 'CONFINCLUDEPY': '@/include/python3.11',
 'DESTDIRS': '@ @/lib '
 'INSTALL': '/usr/bin/install -c',
 'LIBDIR': '@/lib',
 'LIBPC': '@/lib/pkgconfig',
 'LIBPL': '@/lib/python3.11/config-3.11-x86_64-linux-gnu',
 'MODULE__UUID_CFLAGS': '-I/usr/include/uuid',
 'OTHER': '-I@/include/python3.11 -I/usr/include/python3.110',
 'SCRIPTDIR': '@/lib',
 'TZPATH': '/usr/share/zoneinfo:/usr/lib/zoneinfo:/usr/share/lib/zoneinfo:/etc/zoneinfo',
 'WASM_STDLIB': './usr/lib/python3.11/os.py',
 'WHEEL_PKG_DIR': '@/lib/python3.11/ensurepip/_bundled/',
 'datarootdir': '/usr/share',
 'prefix': '@'}
"""


def test_below_usr_only_cpythons_own_paths_change() -> None:
    python = python_at("/usr", wheels=Path("/usr/share/python-wheels"))
    assert text(DEBIAN, python) == DEBIAN_REWRITTEN


def test_debians_makefile_and_pkg_config() -> None:
    python = python_at("/usr")
    makefile = "prefix=\t\t/usr\nLIBDIR=\t\t/usr/lib/x86_64-linux-gnu\n"
    assert text(makefile, python, MAKEFILE) == "prefix=\t\t@\nLIBDIR=\t\t@/lib\n"
    pc = "prefix=/usr\nlibdir=${prefix}/lib/x86_64-linux-gnu\n"
    assert text(pc, python, "lib/pkgconfig/python-3.11.pc") == "prefix=@\nlibdir=${prefix}/lib\n"


def test_fedoras_lib64() -> None:
    python = python_at("/usr", multiarch="", stdlib=Path("/usr/lib64/python3.11"))
    assert text("'/usr/lib64/python3.11' '/usr/lib64'", python) == "'@/lib64/python3.11' '@/lib64'"
    assert ("lib64", "lib") in list(rewrite.links(python, frozenset()))


SCHEMES = """\
_INSTALL_SCHEMES = {'posix_local': {}}

def _get_preferred_schemes():
    layout = os.environ.get('DEB_PYTHON_INSTALL_LAYOUT', 'posix_local')
    prefix_scheme = 'posix_local'
    return {'prefix': prefix_scheme}

def other():
    return 'posix_local'
"""


@pytest.mark.parametrize(
    "target", ["lib/python3.11/sysconfig.py", "lib/python3.13/sysconfig/__init__.py"]
)
def test_debians_default_scheme(target: str) -> None:
    python = python_at("/usr", scheme="posix_local")
    seen = text(SCHEMES, python, target)
    assert seen.count("posix_local") == 2
    assert "prefix_scheme = 'posix_prefix'" in seen
    assert "LAYOUT', 'posix_prefix')" in seen
    assert text(SCHEMES, python_at("/usr"), target) == SCHEMES


def test_a_sysconfig_that_is_not_known() -> None:
    python = python_at("/usr", scheme="posix_local")
    with pytest.raises(HostError, match="in a way not known"):
        text(
            "def _get_preferred_schemes():\n    pass\n\nx = 1\n",
            python,
            "lib/python3.11/sysconfig.py",
        )


def test_links() -> None:
    targets = frozenset({"bin/python3.11-config", "lib/libpython3.11.so.1.0"})
    assert dict(rewrite.links(python_at("/opt/x"), targets)) == {
        "bin/python": "python3.11",
        "bin/python3": "python3.11",
        "bin/python3-config": "python3.11-config",
        "lib/libpython3.11.so": "libpython3.11.so.1.0",
    }
    debian = dict(rewrite.links(python_at("/usr", scheme="posix_local"), frozenset()))
    assert debian == {
        "bin/python": "python3.11",
        "bin/python3": "python3.11",
        "lib/python3.11/dist-packages": "site-packages",
    }
