"""Where programs find libraries of CUDA outside every environment (ld.so(8))."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

from envbuild.host.machine import LoaderPlace
from envbuild.host.readings import known
from envbuild.host.tree import Tree

_LIBRARY = re.compile(
    r"lib(?:cudart|cublas|cublasLt|cudnn\w*|nccl|nvrtc|nvJitLink|cufft|curand|cusolver|cusparse"
    r"|cupti|nvToolsExt|cusparseLt|nvshmem\w*)\.so\.[\d.]+"
)
_SYSTEM = ("usr/lib/{machine}-linux-gnu", "lib/{machine}-linux-gnu", "usr/lib64", "usr/lib")
_COMPAT = "libcuda.so.1"
_CONFIGURATION = "etc/ld.so.conf"
_MOST_FILES = 100


def read(tree: Tree, variables: Mapping[str, str], *, machine: str) -> tuple[LoaderPlace, ...]:
    """Return the places that hold such libraries, in the order in which the loader looks.

    Args:
        tree: The host's root.
        variables: The environment, for LD_LIBRARY_PATH and LD_PRELOAD.
        machine: The kernel's word for the processor.
    """
    found = [*_preloaded(tree, variables)]
    for part in filter(None, re.split("[:;]", variables.get("LD_LIBRARY_PATH", ""))):
        found += _place(tree, "LD_LIBRARY_PATH", part, more=(_COMPAT,))
    for origin, folder in _configured(tree, _CONFIGURATION, []):
        found += _place(tree, origin, folder)
    for folder in _SYSTEM:
        found += _place(tree, "the loader's own folders", "/" + folder.format(machine=machine))
    first: dict[str, LoaderPlace] = {}
    for place in found:
        first.setdefault(place.path, place)
    return tuple(first.values())


def _preloaded(tree: Tree, variables: Mapping[str, str]) -> Iterator[LoaderPlace]:
    file = "etc/ld.so.preload"
    texts = {
        "LD_PRELOAD": variables.get("LD_PRELOAD", ""),
        f"/{file}": known(tree.text(file)) or "",
    }
    for origin, text in texts.items():
        lines = (line.partition("#")[0] for line in text.splitlines())
        for path in filter(None, re.split(r"[\s:]+", " ".join(lines))):
            yield LoaderPlace(origin=origin, path=path, libraries=(path.rpartition("/")[2],))


def _place(
    tree: Tree, origin: str, folder: str, *, more: tuple[str, ...] = ()
) -> Iterator[LoaderPlace]:
    names = known(tree.names(folder.lstrip("/"))) or ()
    sonames = [name for name in names if _LIBRARY.fullmatch(name) or name in more]
    if sonames:
        yield LoaderPlace(
            origin=origin,
            path=tree.name(tree.at(folder.lstrip("/"))) or folder,
            libraries=tuple(_short(sonames)),
        )


def _short(names: list[str]) -> list[str]:
    """Leave out names that only add numbers to another (`libcudnn.so.9.1.0` to `libcudnn.so.9`)."""
    return [name for name in names if not any(name.startswith(f"{other}.") for other in names)]


def _configured(tree: Tree, path: str, seen: list[str]) -> Iterator[tuple[str, str]]:
    """Yield folders with the file that names each; `include` lines are followed."""
    if path in seen or len(seen) > _MOST_FILES:
        return
    seen.append(path)
    for line in (known(tree.text(path)) or "").splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("include "):
            pattern = str(Path("/etc", text.removeprefix("include ").strip())).lstrip("/")
            folder, _, name = pattern.rpartition("/")
            for each in known(tree.names(folder)) or ():
                if fnmatch(each, name):
                    yield from _configured(tree, f"{folder}/{each}", seen)
        elif text.startswith("/"):
            yield f"/{path}", text
