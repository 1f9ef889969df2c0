#!/usr/bin/env python
"""Compare `envbuild inspect` with readelf, objdump and cuobjdump on thirty real wheels.

Usage: benchmarks/inspect_against.py [--wheels DIR] [--cuobjdump FILE] [--table FILE]

The wheels are those of `tests/data/inspect/wheels.toml`, fetched by hash into DIR where they are
missing. cuobjdump comes with a CUDA toolkit; of PyPI's packages, `triton==3.0.0` holds the one of
CUDA 12.4. Compared of each ELF file: lines of `.comment`, SONAME, NEEDED, RPATH, RUNPATH, the
newest needed GLIBC, GLIBCXX and CXXABI version, TEXTREL, the stack's flag, the least alignment of
loaded segments, the SM numbers of machine code and PTX. Exit status 1: something differs.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from envbuild.cli.context import Here
from envbuild.compat.derive import index
from envbuild.native.inspect import inspect
from envbuild.native.model import ElfFacts, version_text
from envbuild.tools.http import Session

LIST = Path(__file__).parent.parent / "tests/data/inspect/wheels.toml"
_FAMILY = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_([0-9]+(?:\.[0-9]+)+)$")
_DYNAMIC = re.compile(r"\((SONAME|NEEDED|RPATH|RUNPATH|TEXTREL|FLAGS)\)\s+(.*)")
_LISTED = re.compile(r"\.sm_(\d+[af]?)\.(cubin|ptx)")


def told(*argv: str) -> str:
    """Return what a program prints; a file that it does not like is no reason to stop."""
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout


def floors(path: Path) -> dict[str, str | None]:
    """Read `Version References` of objdump."""
    found: dict[str, tuple[int, ...]] = {}
    _, _, rest = told("objdump", "-p", f"{path}").partition("Version References:")
    for line in rest.splitlines():
        if line.split() and (match := _FAMILY.search(line.split()[-1])):
            version = tuple(map(int, match[2].split(".")))
            found[match[1]] = max(version, found.get(match[1], version))
    return {family: version_text(found.get(family)) for family in ("GLIBC", "GLIBCXX", "CXXABI")}


def by_tools(path: Path, cuobjdump: str | None) -> dict[str, Any]:
    """Return what binutils and CUDA say of a file."""
    rows: dict[str, list[str]] = {}
    for line in told("readelf", "-dW", f"{path}").splitlines():
        if match := _DYNAMIC.search(line):
            value = re.search(r"\[(.*)\]$", match[2])
            rows.setdefault(match[1], []).append(value[1] if value else match[2])
    text = told("readelf", "-W", "-p", ".comment", f"{path}")
    comments = re.findall(r"^\s+\[ *[0-9a-f]+\]\s+(\S.*)$", text, re.MULTILINE)
    headers = told("readelf", "-lW", f"{path}")
    stack = re.search(r"GNU_STACK.*?0x\w+ 0x\w+ (.{3}) ", headers)
    loads = [int(one, 16) for one in re.findall(r"^\s+LOAD\s.*(0x\w+)$", headers, re.MULTILINE)]
    found: dict[str, Any] = {
        "comment": set(map(str.strip, comments)),
        "soname": next(iter(rows.get("SONAME", [])), None),
        "needed": rows.get("NEEDED", []),
        "rpath": ":".join(rows.get("RPATH", [])),
        "runpath": ":".join(rows.get("RUNPATH", [])),
        "textrel": "TEXTREL" in rows or any("TEXTREL" in row for row in rows.get("FLAGS", [])),
        "exec_stack": bool(stack) and "E" in (stack[1] if stack else ""),
        "alignment": min(loads, default=None),
        **floors(path),
    }
    if cuobjdump:
        listed = told(cuobjdump, "-lelf", f"{path}") + told(cuobjdump, "-all", "-lptx", f"{path}")
        found["sass"] = {sm for sm, kind in _LISTED.findall(listed) if kind == "cubin"}
        found["ptx"] = {sm for sm, kind in _LISTED.findall(listed) if kind == "ptx"}
    return found


def ours(facts: ElfFacts, *, cuda: bool) -> dict[str, Any]:
    """Return the same of what inspect read."""
    found: dict[str, Any] = {
        "comment": set(facts.comments),
        "soname": facts.soname,
        "needed": list(facts.needed),
        "rpath": ":".join(facts.rpath),
        "runpath": ":".join(facts.runpath),
        "textrel": facts.text_relocations,
        "exec_stack": facts.exec_stack,
        "alignment": facts.alignment,
        "GLIBC": version_text(facts.glibc),
        "GLIBCXX": version_text(facts.glibcxx),
        "CXXABI": version_text(facts.cxxabi),
    }
    if cuda:
        for kind in ("sass", "ptx"):
            codes = (code for code in facts.codes if code.kind == kind)
            found[kind] = {f"{code.number}{code.suffix}" for code in codes}
    return found


def fetched(row: dict[str, Any], folder: Path) -> Path:
    """Return a wheel of the list, fetched where it is missing, its hash checked."""
    path = folder / row["file"]
    if not path.exists():
        access = Here().access
        name = row["file"].split("-")[0].lower().replace("_", "-").replace(".", "-")
        releases = index.default(access).versions(name)
        wheels = (wheel for release in releases.values() for wheel in release)
        file = next(wheel.file for wheel in wheels if wheel.file.filename == row["file"])
        Session(access).download(file.url, path, sha256=row["sha256"])
    with path.open("rb") as data:
        if hashlib.file_digest(data, "sha256").hexdigest() != row["sha256"]:
            sys.exit(f"{path} is another file")
    return path


def compared(wheel: Path, cuobjdump: str | None) -> tuple[list[str], str]:
    """Return the differences of a wheel, and its row of the table."""
    begun = time.monotonic()
    facts = inspect(wheel)
    took_s = time.monotonic() - begun
    differences: list[str] = []
    checked = 0
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        for file in facts.files:
            path = Path(folder) / "file.so"
            with archive.open(file.path) as source, path.open("wb") as target:
                while chunk := source.read(1 << 20):
                    target.write(chunk)
            theirs = by_tools(path, cuobjdump if file.machine == "x86_64" else None)
            mine = ours(file, cuda="sass" in theirs)
            checked += len(theirs)
            differences += [
                f"{wheel.name}: {file.path}: {key}: tools {theirs[key]!r}, inspect {mine[key]!r}"
                for key in theirs
                if theirs[key] != mine[key]
            ]
    compilers = dict.fromkeys(name for file in facts.files for name in file.compilers)
    codes = sorted(map(str, facts.codes), key=lambda code: (code[0] == "c", len(code), code))
    cells = (
        wheel.name.removesuffix(".whl").partition("-cp")[0].partition("-py")[0],
        f"{len(facts.files)}",
        ", ".join(compilers) or "unknown",
        facts.string_abi,
        "musl"
        if any(file.libc == "musl" for file in facts.files)
        else version_text(max((f.glibc for f in facts.files if f.glibc), default=None)) or "-",
        version_text(max((f.glibcxx for f in facts.files if f.glibcxx), default=None)) or "-",
        " ".join(codes) or "-",
        f"{took_s:.1f}",
        f"{checked - len(differences)} of {checked}",
    )
    return differences, f"| {' | '.join(cells)} |"


def main() -> int:
    """Compare all of the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, default=Path("wheels"))
    parser.add_argument("--cuobjdump")
    parser.add_argument("--table", type=Path)
    told_options = parser.parse_args()
    told_options.wheels.mkdir(exist_ok=True)
    every: list[str] = []
    lines = [
        "| wheel | binaries | compilers | string ABI | glibc | GLIBCXX | GPU code | s | equal |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in tomllib.loads(LIST.read_text(encoding="utf-8"))["wheel"]:
        differences, line = compared(fetched(row, told_options.wheels), told_options.cuobjdump)
        every += differences
        lines.append(line)
        print(line, *differences, sep="\n", flush=True)
    if told_options.table:
        told_options.table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(every)} differences")
    return 1 if every else 0


if __name__ == "__main__":
    sys.exit(main())
