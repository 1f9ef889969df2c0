"""Reading all binaries of a tree: one way for wheels, conda packages, prefixes and files."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from envbuild.native import declared, elf
from envbuild.native.model import ElfFacts, NativeFacts
from envbuild.native.package import PackageFacts
from envbuild.native.resolve import resolved
from envbuild.native.tree import Member, Unreadable, members


@dataclass(slots=True)
class _Seen:
    """What was read so far of a tree."""

    files: list[ElfFacts] = field(default_factory=list)
    others: int = 0
    content: dict[str, tuple[str, int]] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    odd: list[tuple[str, str]] = field(default_factory=list)

    def add(self, member: Member) -> None:
        if member.problem is not None:
            self.odd.append((member.path, member.problem))
        if member.target is not None:
            self.links[member.path] = member.target
            return
        if member.sha256 is not None:
            self.content[member.path] = (member.sha256, member.size)
        if member.data is not None:
            self.texts[member.path] = member.data
        if member.elf is None:
            self.others += not member.path.startswith("info/")
        else:
            facts = elf.read(member.elf, path=member.path)
            self.files.append(replace(facts, sha256=member.sha256))


def inspect(path: Path) -> NativeFacts:
    """Return what the binaries of a wheel, a conda package, a folder or a file say of themselves.

    Nothing is run or loaded; what is compressed is unpacked one member at a time, each once.

    Args:
        path: What to read.

    Raises:
        Unreadable: It cannot be read.
    """
    try:
        name = path.name or path.resolve().name or f"{path}"  # of `.`, of `/`
        return gathered(members(path), name=name, is_folder=path.is_dir())
    except ValueError as error:
        message = f"{path}: {error}"
        raise Unreadable(message) from error
    except OSError as error:  # no room for what is read again
        message = f"{path}: {error.strerror or error}"
        raise Unreadable(message) from error


def gathered(found: Iterable[Member], *, name: str, is_folder: bool = False) -> NativeFacts:
    """Return what the members of a wheel, a package, a folder or a file say of themselves.

    Args:
        found: The members.
        name: What they are of.
        is_folder: Whether that is a folder, which has no list of its own.

    Raises:
        ValueError: The package's own list cannot be read.
        Unreadable: A member cannot be read.
    """
    seen = _Seen()
    for member in found:
        seen.add(member)
    seen.files.sort(key=lambda facts: facts.path)
    return NativeFacts(
        name=name,
        files=resolved(seen.files, seen.links),
        other_files=seen.others,
        package=None if is_folder else _package(name, seen),
    )


def _package(name: str, seen: _Seen) -> PackageFacts | None:
    if name.endswith(".whl"):
        return declared.wheel(name, seen.texts, seen.content, tuple(seen.odd))
    if name.endswith((".conda", ".tar.bz2")):
        links = frozenset(seen.links)
        return declared.conda(name, seen.texts, seen.content, links, tuple(seen.odd))
    return None
