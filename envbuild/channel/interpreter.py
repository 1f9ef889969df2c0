"""`HostPython`: a CPython of this machine, asked once what it is and where its parts lie."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envbuild.errors import EnvbuildError
from envbuild.target import MACHINES, Platform
from envbuild.tools.run import Completed, Runner, base_environment, run

_COMPLAINT_CHARACTERS = 160
_ASK_TIMEOUT_S = 20.0

# Runs under any Python, 2.7 included, so that a wrong one says what it is. With -S a venv's
# interpreter reports the prefix of the one it was made from.
_QUESTION = """
import json, os, platform, sys
answer = {
    "implementation": platform.python_implementation(),
    "version": ".".join(str(part) for part in sys.version_info[:3]),
    "level": sys.version_info[3],
}
if sys.version_info >= (3, 8):
    import importlib.util, sysconfig
    config = sysconfig.get_config_vars()
    data = __import__(sysconfig._get_sysconfigdata_name()).build_time_vars
    answer.update(
        path=os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
        prefix=os.path.realpath(sys.base_prefix),
        built_prefix=str(data.get("prefix") or ""),
        stdlib=sysconfig.get_path("stdlib", "posix_prefix"),
        platstdlib=sysconfig.get_path("platstdlib", "posix_prefix"),
        include=sysconfig.get_path("include", "posix_prefix"),
        libdir=str(config.get("LIBDIR") or ""),
        soname=str(config.get("INSTSONAME") or ""),
        multiarch=str(config.get("MULTIARCH") or ""),
        soabi=str(config.get("SOABI") or ""),
        wheels=str(config.get("WHEEL_PKG_DIR") or ""),
        scheme=sysconfig.get_default_scheme() if sys.version_info >= (3, 10) else "",
        debug=bool(config.get("Py_DEBUG")),
        free_threaded=bool(config.get("Py_GIL_DISABLED")),
        machine=platform.machine(),
        wide=sys.maxsize > 2**32,
        missing=[name for name in REQUIRED if importlib.util.find_spec(name) is None],
    )
sys.stdout.write(json.dumps(answer))
"""

# Without these Python starts, but uv, pip or half of PyPI do not work (Debian's `-minimal`).
_REQUIRED = (
    "asyncio", "ctypes", "email", "hashlib", "importlib", "json", "logging", "ssl", "unittest",
    "venv", "zipfile", "zlib", "_ctypes", "_ssl", "_struct", "math", "select",
)  # fmt: skip


class Unfit(EnvbuildError):
    """An interpreter that cannot be taken; the message is why, in a few words."""

    exit_code = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class HostPython:
    """A CPython of this machine.

    Attributes:
        path: Its executable, links resolved; a venv's is the one it was made from.
        version: Full version (`3.11.7`).
        platform: conda subdir that it belongs to.
        prefix: Where it is installed.
        built_prefix: The prefix that it was built for, where it was moved since.
        stdlib: Folder of the standard library.
        platstdlib: Folder that holds `lib-dynload`.
        include: Folder of its headers; need not be there.
        libdir: Folder that its build names for libpython.
        soname: File name of libpython (`libpython3.11.so.1.0`), or of the static library.
        multiarch: Debian's name of the architecture (`x86_64-linux-gnu`), may be empty.
        wheels: Folder of the distribution's wheels for ensurepip, or None.
        scheme: sysconfig's default scheme; Debian's is `posix_local`.
        origin: Where the choice came from (`--python`, `PATH`), for messages.
        archive: The package made of it by `channel add-python`; None for a live interpreter.
        archive_digest: The digest that it had then, where `archive` is set.
    """

    path: Path
    version: str
    platform: Platform
    prefix: Path
    built_prefix: str
    stdlib: Path
    platstdlib: Path
    include: Path
    libdir: Path
    soname: str
    multiarch: str
    wheels: Path | None
    scheme: str
    origin: str = ""
    archive: Path | None = None
    archive_digest: str = ""

    @property
    def minor(self) -> str:
        """Major and minor version (`3.11`)."""
        return ".".join(self.version.split(".")[:2])

    @property
    def is_system(self) -> bool:
        """Whether its prefix is shared with everything else of the machine."""
        return self.prefix in {Path("/usr"), Path("/usr/local"), Path("/")}


def ask(path: Path, *, origin: str = "", search: str = "", runner: Runner = run) -> HostPython:
    """Run an interpreter once and return what it says about itself.

    Args:
        path: The executable, or a link to it, or that of a venv.
        origin: Where the path came from, for messages.
        search: The PATH it runs with (pyenv's shims need one), or empty for the system's.
        runner: Starts it.

    Raises:
        Unfit: It does not answer, or is nothing that can be packed.
    """
    question = f"REQUIRED = {_REQUIRED!r}\n{_QUESTION}"
    env = base_environment(search) if search else base_environment()
    argv = (path, "-I", "-S", "-c", question)
    try:
        completed = runner(argv, env=env, timeout_s=_ASK_TIMEOUT_S, check=False)
    except (EnvbuildError, OSError) as error:
        message = f"it does not start ({error})"
        raise Unfit(message) from error
    if completed.status:
        message = f"it does not answer ({_complaint(completed)})"
        raise Unfit(message)
    try:
        answer = json.loads(completed.stdout)
        version, implementation = str(answer["version"]), str(answer["implementation"])
    except (ValueError, KeyError, TypeError) as error:
        message = "it answers like no Python"
        raise Unfit(message) from error
    _refuse(answer, version, implementation)
    return _host_python(answer, version, origin)


def _complaint(completed: Completed) -> str:
    """Return the telling line of what a program said: a traceback's last, else the first."""
    lines = completed.stderr.strip().splitlines() or [f"status {completed.status}"]
    line = lines[-1 if lines[0].startswith("Traceback") else 0].strip()
    return line if len(line) <= _COMPLAINT_CHARACTERS else f"{line[:_COMPLAINT_CHARACTERS]}…"


def _refuse(answer: Mapping[str, Any], version: str, implementation: str) -> None:
    """Raise for what is no plain, released CPython of this machine."""
    reasons = (
        (implementation != "CPython", f"it is {implementation} {version}, not CPython"),
        ("path" not in answer, f"it is Python {version}, too old"),
        (answer["level"] != "final", f"it is a pre-release of {version}"),
        (bool(answer.get("free_threaded")), f"it is a free-threaded {version}"),
        (bool(answer.get("debug")), f"it is a debug build of {version}"),
        (not answer.get("wide", True), f"it is a 32-bit {version}"),
        ("musl" in answer.get("soabi", ""), f"{version} is built for musl, not for glibc"),
        (
            bool(answer.get("missing")),
            f"{version} lacks {', '.join(answer.get('missing', ()))} of the standard library",
        ),
    )
    for applies, reason in reasons:
        if applies:
            raise Unfit(reason)


def _host_python(answer: Mapping[str, Any], version: str, origin: str) -> HostPython:
    platforms = {machine: platform for platform, machine in MACHINES.items()}
    machine = str(answer["machine"])
    if machine not in platforms:
        message = f"{version} is built for {machine}"
        raise Unfit(message)
    return HostPython(
        path=Path(answer["path"]),
        version=version,
        platform=platforms[machine],
        prefix=Path(answer["prefix"]),
        built_prefix=str(answer["built_prefix"]),
        stdlib=Path(answer["stdlib"]).resolve(),
        platstdlib=Path(answer["platstdlib"]).resolve(),
        include=Path(answer["include"]),
        libdir=Path(answer["libdir"]),
        soname=str(answer["soname"]),
        multiarch=str(answer["multiarch"]),
        wheels=Path(answer["wheels"]) if answer["wheels"] else None,
        scheme=str(answer["scheme"]),
        origin=origin,
    )
