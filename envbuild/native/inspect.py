"""Reading all binaries of a tree: one way for wheels, conda packages, prefixes and files."""

from pathlib import Path

from envbuild.native import elf
from envbuild.native.model import ElfFacts, NativeFacts
from envbuild.native.tree import members


def inspect(path: Path) -> NativeFacts:
    """Return what the binaries of a wheel, a conda package, a folder or a file say of themselves.

    Nothing is run or loaded; what is compressed is unpacked one member at a time.

    Args:
        path: What to read.

    Raises:
        Unreadable: It cannot be read.
    """
    files: list[ElfFacts] = []
    others = 0
    for member in members(path):
        if member.elf is None:
            others += 1
        else:
            files.append(elf.read(member.elf, path=member.path))
    files.sort(key=lambda facts: facts.path)
    return NativeFacts(name=path.name, files=tuple(files), other_files=others)
