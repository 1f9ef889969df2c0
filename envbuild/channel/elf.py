"""What the packer must know of ELF files: the libraries they name and where they look."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"\x7fELF"

# glibc's own libraries: every machine that the package can run on has them.
GLIBC = frozenset(
    {
        "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libm.so.6",
        "libpthread.so.0", "libresolv.so.2", "librt.so.1", "libutil.so.1",
    }
)  # fmt: skip


# Tags whose value is text, and how pyelftools names it.
_TEXT_TAGS = {"DT_NEEDED": "needed", "DT_RPATH": "rpath", "DT_RUNPATH": "runpath"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Dynamic:
    """The part of an ELF file's dynamic section that decides what is loaded with it.

    Attributes:
        needed: Names of the libraries it needs (DT_NEEDED), in their order.
        search: Folders of its DT_RPATH or DT_RUNPATH, as written.
    """

    needed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


def is_elf(path: Path) -> bool:
    """Return whether a file is an ELF file."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read(path: Path) -> Dynamic | None:
    """Return what a dynamic ELF file names, or None if it is static or damaged."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.elffile import ELFFile

    found: dict[str, list[str]] | None = None
    with path.open("rb") as file:
        try:
            for segment in ELFFile(file).iter_segments("PT_DYNAMIC"):
                if isinstance(segment, DynamicSegment):
                    found = {attribute: [] for attribute in _TEXT_TAGS.values()}
                    for tag in segment.iter_tags():
                        attribute = _TEXT_TAGS.get(tag.entry.d_tag)
                        if attribute is not None:
                            found[attribute].append(str(getattr(tag, attribute)))
        except ELFError:
            return None
    if found is None:
        return None
    search = ":".join((*found["rpath"], *found["runpath"])).split(":")
    return Dynamic(needed=tuple(found["needed"]), search=tuple(filter(None, search)))


def folders_of(path: Path, dynamic: Dynamic) -> Iterator[Path]:
    """Yield the absolute folders that a file's own search path names."""
    for entry in dynamic.search:
        folder = entry.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", str(path.parent))
        if folder.startswith("/"):
            yield Path(folder).resolve()
