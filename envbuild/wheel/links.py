"""Who links the libraries of a package."""

from collections.abc import Iterator, Sequence

from envbuild.native.judge import listed
from envbuild.wheel.model import Evidence, Reason
from envbuild.wheel.readings import Reading

_TORCH = ("libc10.so", "libc10_cuda.so", "libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so",
          "libtorch_python.so")  # fmt: skip


def users(
    unit: str, parts: Sequence[Reading], readings: Sequence[Reading]
) -> Iterator[tuple[str, Reason]]:
    """Yield each other unit that links a library of one, with the reason that follows.

    Args:
        unit: Whose libraries.
        parts: Its packages.
        readings: All packages.
    """
    libraries = _libraries(unit, parts)
    for other in readings:
        if other.unit is None or other.unit == unit:
            continue
        found: dict[str, list[str]] = {}
        for file in other.own:
            own = {link.name for link in file.links if link.place == "inside"}
            if needed := [one for one in file.needed if one in libraries and one not in own]:
                found.setdefault(", ".join(needed), []).append(file.path)
        if found:
            evidence = tuple(
                Evidence(where=listed(paths), what=f"NEEDED: {names}", read=other.read or "facts")
                for names, paths in found.items()
            )
            what = f"it links libraries of {unit}, which is rebuilt"
            yield other.unit, Reason(cause="links", what=what, evidence=evidence)


def _libraries(unit: str, parts: Sequence[Reading]) -> frozenset[str]:
    """Return the names under which a package's libraries are needed."""
    known = _TORCH if unit == "torch" else ()
    read = {
        file.soname or file.path.rpartition("/")[2]
        for part in parts
        for file in part.own
        if file.kind == "library"
    }
    return frozenset(name for name in (*known, *read) if name.startswith("lib"))
