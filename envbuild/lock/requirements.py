r"""`requirements.PLATFORM.txt`: the PyPI half of one platform, as pip and uv read it.

::

    # header: what it is, and the command that installs it

    numpy==2.4.6 ; python_version < "3.12" \
        --hash=sha256:… \
        --hash=sha256:…
        # via recipe, torch
        # index internal

The body, everything below the first empty line, is bound to `conda-lock.yml` by its SHA-256.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from envbuild.errors import LockError
from envbuild.packages import PipPackage
from envbuild.target import Platform

_PIN = re.compile(
    r"(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)==(?P<version>[A-Za-z0-9.!+_-]+)"
    r"(?: ; (?P<marker>[^\\]*[^\\\s]))? \\"
)
_HASH = re.compile(r" {4}--hash=sha256:(?P<hash>[0-9a-f]{64})(?P<more> \\)?")
_VIA = re.compile(r" {4}# via (?P<via>\S+(?:, \S+)*)")
_INDEX = re.compile(r" {4}# index (?P<index>\S+)")


def dumps(name: str, packages: tuple[PipPackage, ...], *, platform: Platform | None) -> str:
    """Return the text of a requirements file.

    Args:
        name: The recipe's name.
        packages: The packages, sorted.
        platform: The platform, or None for a universal lock, whose files are all equal.
    """
    return header(name, packages, platform=platform) + "\n" + body(packages)


def header(name: str, packages: tuple[PipPackage, ...], *, platform: Platform | None) -> str:
    """Return the comment above the body: what the file is and how it is installed."""
    file = f"requirements.{platform}.txt" if platform else "FILE"
    place = f" for {platform}" if platform else ", for every platform of the recipe"
    others = (
        "# Some of what these packages require may come from conda-lock.yml, so they are installed"
        if platform
        else "# All that these packages require is listed, so they are installed"
    )
    lines = [
        f"# The PyPI half of the lock of {name}{place}.",
        f"# Written by `envbuild lock {name}`; a change by hand is refused.",
        others,
        "# without their dependencies:",
        f"#   pip install --require-hashes --no-deps -r {file}",
        f"#   uv pip install --require-hashes --no-deps -r {file}",
    ]
    indexes = sorted({package.index for package in packages if package.index is not None})
    lines += [
        f"# Those marked `index {index}` are on that index: name it with --extra-index-url."
        for index in indexes
    ]
    return "".join(f"{line}\n" for line in lines)


def body(packages: tuple[PipPackage, ...]) -> str:
    """Return the lines of the packages, without the header."""
    return "".join(f"{line}\n" for package in packages for line in _lines(package))


def body_of(text: str) -> str:
    """Return the body of a requirements file's text: all below its first empty line."""
    return text.partition("\n\n")[2]


def loads(text: str, *, source: str) -> tuple[PipPackage, ...]:
    """Read a requirements file.

    Args:
        text: Its text.
        source: Its path, for messages.

    Raises:
        LockError: A line is not one that `dumps` writes; the message has its number.
    """
    lines = _Lines(source=source, lines=text.removesuffix("\n").split("\n"))
    while lines.peek():
        if not lines.take().startswith("#"):
            raise lines.refusal(what="only comments may stand above the first empty line")
    if not lines.left():
        raise lines.refusal(what="the empty line below the header is missing")
    lines.take()
    packages: list[PipPackage] = []
    while lines.left():
        package = _package(lines)
        if packages and _key(packages[-1]) >= _key(package):
            raise lines.refusal(what=f"{package.name} stands twice or out of order")
        packages.append(package)
    return tuple(packages)


def _key(package: PipPackage) -> tuple[str, str]:
    return package.name, package.marker or ""


def _lines(package: PipPackage) -> Iterator[str]:
    marker = f" ; {package.marker}" if package.marker else ""
    yield f"{package.name}=={package.version}{marker} \\"
    for digest in package.hashes:
        more = "" if digest == package.hashes[-1] else " \\"
        yield f"    --hash=sha256:{digest}{more}"
    if package.via:
        yield f"    # via {', '.join(package.via)}"
    if package.index is not None:
        yield f"    # index {package.index}"


@dataclass(kw_only=True)
class _Lines:
    """The lines of a file and how far it has been read."""

    source: str
    lines: list[str]
    at: int = 0

    def left(self) -> bool:
        return self.at < len(self.lines)

    def peek(self) -> str:
        return self.lines[self.at] if self.left() else ""

    def take(self) -> str:
        line = self.peek()
        self.at += 1
        return line

    def refusal(self, *, what: str) -> LockError:
        """Return the error about the line that was taken last."""
        line = max(1, min(self.at, len(self.lines)))
        return LockError(
            f"{self.source}:{line}: {what}",
            source=self.source,
            where=str(line),
            hint="lock files are not edited by hand: restore the file, or lock again",
        )


def _package(lines: _Lines) -> PipPackage:
    line = lines.take()
    pin = _PIN.fullmatch(line)
    if pin is None:
        raise lines.refusal(what=f"expected `name==version \\`, found {_shown(line)}")
    hashes: list[str] = []
    more = True
    while more:
        line = lines.take()
        found = _HASH.fullmatch(line)
        if found is None:
            raise lines.refusal(what=f"expected `    --hash=sha256:…`, found {_shown(line)}")
        hashes.append(found["hash"])
        more = found["more"] is not None
    if hashes != sorted(set(hashes)):
        raise lines.refusal(what=f"the hashes of {pin['name']} are not in order")
    via = index = None
    if (found := _VIA.fullmatch(lines.peek())) is not None:
        via = lines.take() and found["via"]
    if (found := _INDEX.fullmatch(lines.peek())) is not None:
        index = lines.take() and found["index"]
    return PipPackage(
        name=pin["name"],
        version=pin["version"],
        hashes=tuple(hashes),
        index=index,
        marker=pin["marker"],
        via=tuple(via.split(", ")) if via else (),
    )


def _shown(line: str) -> str:
    return repr(line if len(line) <= 60 else f"{line[:57]}…")  # noqa: PLR2004
