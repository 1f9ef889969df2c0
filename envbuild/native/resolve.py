"""Where needed libraries come from, and which symbols without a version stay open."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from envbuild.native.model import FAMILIES, ElfFacts, Family, Floor, Link, Version

_GLIBC = frozenset(
    {
        "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2", "libanl.so.1", "libc.so.6", "libdl.so.2",
        "libm.so.6", "libmvec.so.1", "libnsl.so.1", "libpthread.so.0", "libresolv.so.2",
        "librt.so.1", "libthread_db.so.1", "libutil.so.1",
    }
)  # fmt: skip
# What manylinux lets a wheel take from the host beside glibc (auditwheel's policy, 2026-12).
_HOST = _GLIBC | frozenset(
    {
        "libGL.so.1", "libICE.so.6", "libSM.so.6", "libX11.so.6", "libXext.so.6", "libXrender.so.1",
        "libatomic.so.1", "libexpat.so.1", "libgcc_s.so.1", "libglib-2.0.so.0",
        "libgobject-2.0.so.0", "libgthread-2.0.so.0", "libstdc++.so.6", "libz.so.1",
    }
)  # fmt: skip
DRIVER = frozenset(
    {
        "libcuda.so.1", "libcudadebugger.so.1", "libnvcuvid.so.1", "libnvidia-encode.so.1",
        "libnvidia-ml.so.1", "libnvidia-nvvm.so.4", "libnvidia-opticalflow.so.1",
        "libnvidia-ptxjitcompiler.so.1", "libnvoptix.so.1",
    }
)  # fmt: skip
_ORIGINS = ("$ORIGIN", "${ORIGIN}")
_MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class _Tree:
    """The libraries of a tree.

    Attributes:
        by_path: Files and what links lead to, by path.
        by_name: Paths by soname and file name.
        folders: Folders that have libraries.
    """

    by_path: Mapping[str, ElfFacts]
    by_name: Mapping[str, str]
    folders: frozenset[str]


@dataclass(slots=True)
class _Linked:
    """Files with where their libraries come from, by path, and how many links may be followed."""

    files: Mapping[str, ElfFacts]
    left: int = 50_000_000

    def closure(self, file: ElfFacts) -> Iterator[ElfFacts]:
        """Yield a file and all that it needs of the tree, each once."""
        seen, todo = {file.path}, [file.path]
        while todo:
            one = self.files[todo.pop()]
            yield one
            self.left -= len(one.links)
            if self.left < 0:
                message = "its libraries need each other in more ways than can be followed"
                raise ValueError(message)
            for link in one.links:
                if link.path is not None and link.path in self.files and link.path not in seen:
                    seen.add(link.path)
                    todo.append(link.path)


def resolved(files: Sequence[ElfFacts], links: Mapping[str, str]) -> tuple[ElfFacts, ...]:
    """Return the files with where their libraries come from, and their symbols that stay open.

    Args:
        files: The ELF files of a tree.
        links: Its links with what they point to.

    Raises:
        ValueError: They need each other in more ways than anybody's do.
    """
    tree = _tree(files, links)
    linked = _Linked({one.path: replace(one, links=tuple(_links(one, tree))) for one in files})
    opened = _Linked(
        {one.path: replace(one, unversioned=_open(one, linked)) for one in linked.files.values()}
    )
    return tuple(replace(one, outside=_outside(one, opened)) for one in opened.files.values())


def _tree(files: Iterable[ElfFacts], links: Mapping[str, str]) -> _Tree:
    by_path = {one.path: one for one in files if one.kind != "debug"}
    for path in links:
        at: str = path
        for _ in range(_MOST_LINKS):
            if at not in links:
                break
            at = posixpath.normpath(posixpath.join(posixpath.dirname(at), links[at]))
        if at in by_path:
            by_path[path] = by_path[at]
    by_name: dict[str, str] = {}
    for path in sorted(by_path):
        for name in (posixpath.basename(path), by_path[path].soname):
            if name:
                by_name.setdefault(name, by_path[path].path)
    folders = frozenset(map(posixpath.dirname, by_path))
    return _Tree(by_path, by_name, folders)


def _links(file: ElfFacts, tree: _Tree) -> Iterable[Link]:
    search = file.runpath or file.rpath
    inner = [path for entry in search if (path := _inside(entry, file.path)) is not None]
    outer = [entry for entry in search if _inside(entry, file.path) not in tree.folders]
    host = [entry for entry in search if entry.startswith("/")]
    for name in file.needed:
        found = next((one for at in inner if (one := posixpath.join(at, name)) in tree.by_path), "")
        path = tree.by_path[found].path if found else tree.by_name.get(name)
        if path is not None and name not in _GLIBC:  # conda's sysroot has one to link against
            yield Link(name=name, place="inside", path=path)
        elif name in DRIVER:
            yield Link(name=name, place="driver")
        elif name in _HOST or name.startswith(("libc.musl-", "ld-musl-")):
            yield Link(name=name, place="host")
        elif relative := next((one for one in outer if one.startswith(_ORIGINS)), None):
            yield Link(name=name, place="environment", path=relative)
        elif host:
            yield Link(name=name, place="host", path=host[0])
        else:
            yield Link(name=name, place="nowhere")


def _inside(entry: str, path: str) -> str | None:
    """Return the folder of the tree that an entry of a search path means, None for outside."""
    for origin in _ORIGINS:
        if entry.startswith(origin):
            joined = f"{posixpath.dirname(path) or '.'}/{entry.removeprefix(origin)}"
            folder = posixpath.normpath(joined)
            return None if folder.startswith("..") else folder.removeprefix(".").lstrip("/")
    return None


def _open(file: ElfFacts, linked: _Linked) -> tuple[tuple[str, Floor], ...]:
    """Return the symbols without a version that nothing which the file needs exports."""
    if not file.unversioned:
        return ()
    exported = {name for one in linked.closure(file) for name in one.exports}
    return tuple(row for row in file.unversioned if row[0] not in exported)


def _outside(file: ElfFacts, linked: _Linked) -> tuple[Floor, ...]:
    """Return the oldest version of each family that nothing inside has for a file's closure."""
    closure = list(linked.closure(file))
    there: dict[Family, Version] = {}
    for one in closure:
        for family, version in one.provides:
            there[family] = max(version, there.get(family, version))
    found: dict[Family, Version] = {}
    for one in closure:
        for family in FAMILIES:
            needed = one.floor(family)
            if needed is not None and needed > there.get(family, ()):
                found[family] = max(needed, found.get(family, needed))
    return tuple(sorted(found.items()))
