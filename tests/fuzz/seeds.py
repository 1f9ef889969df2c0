"""What fuzzing starts from: a few inputs that reach all parts of a reader, and what it kept.

`tests/data/fuzz/READER.zip` has what reached new code, `tests/data/fuzz/READER/` what was a bug.
"""

import tarfile
import zipfile
from pathlib import Path

from fuzz.made import Symbol, conda, container, elf, entry, older_conda, record_row, tar, wheel

_KEPT = Path(__file__).parents[1] / "data/fuzz"
_COMMENTS = (
    b"\0GCC: (GNU) 9.3.1 20200408 (Red Hat 9.3.1-2)\0clang version 17.0.6\0rustc version 1.81.0\0"
    b"Intel(R) oneAPI DPC++/C++ Compiler 2025.0.1 (2025.0.1.20241113)\0Linker: LLD 19.0.0\0"
)
_CODE = container(entry(80, 0x11), entry(90, 0x100011), entry(100, 0x1208011, kind=1))
_SYMBOLS = (
    Symbol(name="printf", version=2),
    Symbol(name="_ZNSs6appendEPKcm", version=3),
    Symbol(name="_ZSt28__throw_bad_array_new_lengthv"),
    Symbol(name="_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev", defined=True),
    Symbol(name="__cudaRegisterFatBinary"),
    Symbol(name="_ZN3fooILi5EE3barERKSbIwSt11char_traitsIwESaIwEE", weak=True),
)
_LIBRARY = elf(
    texts={
        "NEEDED": ["libstdc++.so.6", "libc.so.6"],
        "SONAME": ["libb.so.1"],
        "RUNPATH": ["$ORIGIN/../lib:/usr/local/cuda/lib64"],
    },
    versions={"libc.so.6": ["GLIBC_2.2.5"], "libstdc++.so.6": ["GLIBCXX_3.4.29", "CXXABI_1.3"]},
    symbols=_SYMBOLS,
    sections={
        ".comment": _COMMENTS,
        ".nv_fatbin": _CODE,
        ".gnu_debuglink": b"b.debug\0\0\0\0\0",
    },
    stack_flags=7,
    textrel=True,
)
_TOOLS = b"\0ptxas\0Cuda compilation tools, release 13.0, V13.0.88\0-arch sm_90a -m 64 \0"
_LARGE = container(entry(80, 0x11, payload=bytes(5000)), entry(90, 0x11, payload=bytes(4097)))
_LIBC = {"NEEDED": ["libc.so.6"]}
_SMALL = elf(texts=_LIBC, sections={".comment": b"GCC: (Debian 12.2.0-14) 12.2.0\0"})
_FILES = {"a/b.so": _SMALL, "a/__init__.py": b"x = 1\n"}
_VARIANT = b'{"variants": {"cu130": {"nvidia": {"sm_arch": ["90_real", "100f"]}}}}'
_PATHS = (
    b'{"paths": [{"_path": "a/b.py", "path_type": "hardlink", "sha256": "00", "size_in_bytes": 3},'
    b'{"_path": "x", "path_type": "softlink"}, {"_path": "y", "path_type": "directory"}]}'
)

SEEDS: dict[str, tuple[bytes, ...]] = {
    "elf": (
        _LIBRARY,
        _SMALL,
        elf(wide=False, order=">", machine=20, texts=_LIBC, symbols=_SYMBOLS),
        elf(kind=2, interpreter="/lib64/ld-linux-x86-64.so.2", texts={"NEEDED": ["libcuda.so.1"]}),
        elf(kind=1, machine=190, sections={"__nv_relfatbin": _CODE, ".note.nv.tkinfo": _TOOLS}),
        elf(debug=True, sections={".comment": _COMMENTS}, texts={"RPATH": ["/opt/_placehold_"]}),
        elf(texts={"SONAME": ["libstdc++.so.6"]}, defines=["GLIBCXX_3.4", "GLIBCXX_3.4.30"]),
    ),
    "fatbin": (_CODE, _CODE + bytes(16) + container(entry(75, 0x2011))),
    "sparse": (
        _LIBRARY + b"\x03",
        elf(texts=_LIBC, symbols=_SYMBOLS, sections={".nv_fatbin": _LARGE}) + b"\x20",
        elf(texts=_LIBC, sections={"a": _LARGE, ".comment": _COMMENTS}) + b"\xff",
    ),
    "deflated": tuple(
        bytes((claims, 9, 1, how)) + _COMMENTS
        for claims in (0, 1, 2, 4, 8)
        for how in (0, 1, 9, 253)
    ),
    "wheel": (
        wheel(_FILES),
        wheel({**_FILES, "a-1.dist-info/variant.json": _VARIANT}),
        wheel({"../x": b"", "libcuda.so.1": _SMALL}, method=zipfile.ZIP_STORED),
    ),
    "conda": (conda({"lib/b.so": _SMALL}), older_conda({"lib/b.so": _SMALL})),
    "tar": (
        tar({"lib/b.so": b"x" * 30, "l" * 120: b""}),
        tar({"lib/b.so": b"x" * 30, "l" * 120: b""}, layout=tarfile.GNU_FORMAT),
        tar({"lib/é": b"", "m" * 90 + "/" + "l" * 90: b""}, layout=tarfile.USTAR_FORMAT),
    ),
    "lists": (
        b"\0\0".join(
            (
                (record_row("a/b.py", b"x") + 'b.py,md5=0,1\n"q,q",,\n').encode(),
                b"Wheel-Version: 1.0\nTag: cp310-abi3-linux_x86_64\nTag: py2.py3-none-any\n",
                _VARIANT,
                _PATHS,
            )
        ),
    ),
}


def inputs(reader: str) -> dict[str, bytes]:
    """Return what there is for a reader, by name."""
    found = {f"seed-{number}": data for number, data in enumerate(SEEDS[reader])}
    found |= {path.name: path.read_bytes() for path in sorted(_KEPT.joinpath(reader).glob("*"))}
    archive = _KEPT / f"{reader}.zip"
    if archive.exists():
        with zipfile.ZipFile(archive) as opened:
            found |= {name: opened.read(name) for name in opened.namelist()}
    return found
