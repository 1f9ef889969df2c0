"""What must change in an interpreter's text files so that it runs from any prefix.

Only files that name the prefix on purpose are touched: sysconfig's data, the Makefile and its
neighbours, config scripts and pkg-config files. Below `/usr` much else lies that stays on the
machine (`/usr/bin/install`, `/usr/share/zoneinfo`), so there only CPython's own paths change.
"""

import re
from collections.abc import Iterator

from envbuild.channel.interpreter import HostPython
from envbuild.errors import HostError

PLACEHOLDER = ("/envbuild-host-python" + "-prefix-placeholder" * 13)[:255]

_NAMES_PREFIX = re.compile(
    r"bin/[^/]*-config|lib/pkgconfig/.*\.pc|lib/python[\d.]+/"
    r"(_sysconfigdata[^/]*\.py|_sysconfig_vars[^/]*\.json|build-details\.json|config-[^/]*/.*)"
)
_SYSCONFIG = re.compile(r"lib/python[\d.]+/sysconfig(/__init__)?\.py")
_PREFERRED = re.compile(r"^def _get_preferred_schemes\(.*?(?=^\S)", re.DOTALL | re.MULTILINE)
_DEBIAN_SCHEME = "'posix_local'"


def rewritten(target: str, content: bytes, python: HostPython) -> bytes:
    """Return a text file's content as it goes into the package.

    Args:
        target: Its path in the package.
        content: What it holds on this machine.
        python: The interpreter it belongs to.

    Raises:
        HostError: It is a Debian's sysconfig in a form that is not known.
    """
    if _NAMES_PREFIX.fullmatch(target):
        return _relocatable(content, python)
    if python.scheme == "posix_local" and _SYSCONFIG.fullmatch(target):
        return _with_usual_scheme(content.decode(), python).encode()
    return content


def links(python: HostPython, targets: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the links of the package: where each lies, and what it says.

    Args:
        python: The interpreter.
        targets: The files of the package.
    """
    executable = f"python{python.minor}"
    yield "bin/python", executable
    yield "bin/python3", executable
    if f"bin/{executable}-config" in targets:
        yield "bin/python3-config", f"{executable}-config"
    if f"lib/{python.soname}" in targets:
        yield f"lib/lib{executable}.so", python.soname
    if python.scheme == "posix_local":
        # The frozen `site` of Debian's CPython looks nowhere else.
        yield f"lib/{executable}/dist-packages", "site-packages"
    if python.stdlib.is_relative_to(python.prefix / "lib64"):
        # Fedora's CPython has `lib64` compiled in (sys.platlibdir).
        yield "lib64", "lib"


def _relocatable(content: bytes, python: HostPython) -> bytes:
    if python.wheels is not None:
        wheels = str(python.wheels).encode()
        bundled = f"{PLACEHOLDER}/lib/python{python.minor}/ensurepip/_bundled".encode()
        content = re.sub(re.escape(wheels) + rb"(?![\w.-])", bundled, content)
    for prefix in dict.fromkeys((str(python.prefix), python.built_prefix)):
        if prefix == "/usr":
            content = _without_usr(content, python)
        elif prefix.startswith("/") and prefix != "/":
            own = rb"(?<![\w.-])" if prefix.count("/") == 1 else b""
            content = re.sub(
                own + re.escape(prefix.encode()) + rb"(?![\w.-])", PLACEHOLDER.encode(), content
            )
    return content


def _without_usr(content: bytes, python: HostPython) -> bytes:
    """Replace `/usr` where CPython itself lies below it, and nowhere else."""
    placeholder = PLACEHOLDER.encode()
    multiarch = re.escape(f"/{python.multiarch}".encode()) if python.multiarch else rb"(?!)"
    own = rb"python" + re.escape(python.minor.encode()) + rb"\b|pkgconfig\b"
    content = re.sub(
        rb"(?<!\.)/usr(/lib|/lib64|/include)(?:%b)?(?=/(?:%b))" % (multiarch, own),
        placeholder + rb"\1",
        content,
    )
    content = re.sub(
        rb"(?<![\w/.-])/usr(?:(/lib)%b|(/bin|/include|/lib|/lib64)|)(?![\w/.-])" % multiarch,
        lambda match: placeholder + (match[1] or match[2] or b""),
        content,
    )
    return re.sub(rb"(\$\{(?:exec_)?prefix\}/lib)%b\b" % multiarch, rb"\1", content)


def _with_usual_scheme(text: str, python: HostPython) -> str:
    """Make `posix_prefix` the default scheme, as upstream's CPython has it."""
    found = _PREFERRED.search(text)
    if found is None or _DEBIAN_SCHEME not in found[0]:
        message = f"{python.path}: its sysconfig chooses {_DEBIAN_SCHEME} in a way not known"
        raise HostError(message, hint="take another interpreter with --python")
    usual = found[0].replace(_DEBIAN_SCHEME, "'posix_prefix'")
    return text[: found.start()] + usual + text[found.end() :]
