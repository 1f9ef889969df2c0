"""What is wrong with binaries and packages whatever they are to run on."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from envbuild.findings import Finding, Findings, Severity
from envbuild.native.code import GpuCode, code_of
from envbuild.native.model import ElfFacts, NativeFacts, Version, version_text
from envbuild.native.package import PackageFacts, RecordDifference
from envbuild.native.record import NO_HASH
from envbuild.native.resolve import DRIVER

_SHOWN = 4
_MANYLINUX = re.compile(r".*-manylinux_(?P<major>\d+)_(?P<minor>\d+)_\w+")
_OLD_TAGS = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_HASHED = re.compile(r"[-.][0-9a-f]{8}(?=[-.])")
_CLAIMS_ABI = re.compile(r"cxx11abi(?P<new>TRUE|FALSE)", re.IGNORECASE)
_EXTENSION = re.compile(r"\.(?P<tag>(?:cpython-|cp)3\d{1,3})[-\w]*\.so$")
_LINUX = re.compile(r"(?:many|musl)?linux\w*")
_MACHINES = ("x86_64", "aarch64")
_CPYTHON = re.compile(r"cp3\d+")
_LARGE_PAGE_BYTES = 65536
_SM = re.compile(r"(?P<number>[1-9]\d{1,2})(?P<suffix>[af]?)(?:[-_](?P<kind>real|virtual))?")


def findings(facts: NativeFacts) -> Findings:
    """Return what is wrong with what was read, by itself.

    Args:
        facts: What was read.
    """
    found = [one for file in facts.files for one in _of_file(file, facts)]
    found += _abi(facts)
    if facts.package is not None:
        found += _of_package(facts.package, facts)
    return grouped(found)


def grouped(found: Iterable[Finding]) -> Findings:
    """Return findings that say the same of several files as one, which names them."""
    places: dict[Finding, list[str]] = {}
    for finding in found:
        places.setdefault(replace(finding, where=""), []).append(finding.where)
    return tuple(replace(finding, where=listed(where)) for finding, where in places.items())


def listed(names: Iterable[str]) -> str:
    """Return names in one line, of many the first few and how many more."""
    every = list(names)
    rest = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return f"{', '.join(every[:_SHOWN])}{rest}"


def plain_name(path: str) -> str:
    """Return a path with the hashes that repair tools put into names left out."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{_HASHED.sub('', name)}"


def tag_glibc(facts: NativeFacts) -> Version | None:
    """Return the oldest glibc for which a wheel's name says that it runs, or None."""
    tags = facts.package.file_tags if facts.package else frozenset[str]()
    promised: list[Version] = []
    for tag in tags:
        if match := _MANYLINUX.fullmatch(tag):
            promised.append((int(match["major"]), int(match["minor"])))
        promised += [version for name, version in _OLD_TAGS.items() if f"-{name}_" in tag]
    return min(promised, default=None)


def _of_file(file: ElfFacts, facts: NativeFacts) -> Iterator[Finding]:
    where = file.path
    if file.problem is not None:
        yield Finding(
            code="binary-damaged",
            severity=Severity.WARNING,
            where=where,
            what=f"it could not be read to its end: {file.problem}",
        )
    outside = [entry for entry in (*file.rpath, *file.runpath) if not entry.startswith("$")]
    if outside:
        kind = "RUNPATH" if file.runpath else "RPATH"
        yield Finding(
            code="library-path-outside",
            severity=Severity.WARNING,
            where=where,
            what=f"{kind} leads out of the environment: {listed(outside)}",
            why="libraries of the host are taken where it has some of that name",
        )
    if file.exec_stack:
        yield Finding(
            code="executable-stack",
            severity=Severity.WARNING,
            where=where,
            what="it makes the stack executable",
            why="glibc 2.41 and newer, and SELinux, refuse to load such a library",
        )
    if file.text_relocations:
        yield Finding(
            code="text-relocations",
            severity=Severity.WARNING,
            where=where,
            what="its code has to be changed when it is loaded (TEXTREL)",
            why="SELinux refuses it, and processes share none of that code",
        )
    if file.machine == "aarch64" and 0 < (file.alignment or 0) < _LARGE_PAGE_BYTES:
        yield Finding(
            code="small-pages",
            severity=Severity.WARNING,
            where=where,
            what=f"its segments are aligned to {file.alignment} bytes",
            why="kernels with pages of 64 KiB, usual on Grace, cannot load it",
        )
    if plain_name(where).rpartition("/")[2] in DRIVER or file.soname in DRIVER:
        yield Finding(
            code="driver-library-bundled",
            severity=Severity.ERROR,
            where=where,
            what="a library of the driver is part of the package",
            why="it has to be the one of the host's kernel module",
        )
    yield from _file_in_package(file, facts)


def _file_in_package(file: ElfFacts, facts: NativeFacts) -> Iterator[Finding]:
    package = facts.package
    if file.unversioned:
        newest = sorted(file.unversioned, key=lambda row: row[1], reverse=True)
        symbols = listed(name for name, _ in newest)
        others = sorted(one.name for one in file.links if one.place in ("environment", "nowhere"))
        family, version = newest[0][1]
        yield Finding(
            code="symbols-without-version",
            severity=Severity.NOTE,
            where=file.path,
            what=f"it needs {family}_{version_text(version)} by symbols that name no version: "
            f"{symbols}",
            why="its version table says less than it needs"
            + (f"; open as long as {listed(others)} may export them" if others else ""),
        )
    if package is None or not package.file_tags:
        return
    extension = _EXTENSION.search(file.path)
    if extension and all("-abi3-" in tag for tag in package.file_tags):
        yield Finding(
            code="not-abi3",
            severity=Severity.WARNING,
            where=file.path,
            what=f"an extension module for {extension['tag']} alone, in a wheel tagged abi3",
            why="other versions of Python do not find it",
        )


def _abi(facts: NativeFacts) -> Iterator[Finding]:
    claim = _CLAIMS_ABI.search(facts.name)
    wrong = "old" if claim and claim["new"].upper() == "TRUE" else "new"
    liars = [one.path for one in facts.files if claim and one.string_abi == wrong]
    if claim and liars:
        yield Finding(
            code="string-abi-claim",
            severity=Severity.ERROR,
            where=facts.name,
            what=f"its name says {claim[0]}, and {listed(liars)} has the {wrong} string ABI",
            why="linked with the other ABI it fails with undefined symbols",
        )
    if facts.package is not None and facts.string_abi == "mixed":
        told = {
            abi: [one.path for one in facts.files if one.string_abi == abi]
            for abi in ("old", "new", "mixed")
        }
        spelled = "; ".join(f"{abi}: {listed(paths)}" for abi, paths in told.items() if paths)
        yield Finding(
            code="string-abi-mixed",
            severity=Severity.NOTE,
            where=facts.name,
            what=f"it has both of libstdc++'s string ABIs: {spelled}",
        )


def _of_package(package: PackageFacts, facts: NativeFacts) -> Iterator[Finding]:
    name = package.file_name
    yield from _tag(package, facts)
    yield from _contradicted_tag(package, facts)
    if package.file_tags and package.wheel_tags and package.file_tags != package.wheel_tags:
        file_only = listed(sorted(package.file_tags - package.wheel_tags)) or "fewer"
        wheel_only = listed(sorted(package.wheel_tags - package.file_tags)) or "fewer"
        yield Finding(
            code="wheel-tags-differ",
            severity=Severity.WARNING,
            where=name,
            what=f"WHEEL says {wheel_only}, the file name {file_only}",
            why="it was renamed after it was made; nobody checked it for the tag that it has now",
        )
    if package.format == "wheel" and not package.has_record:
        yield Finding(
            code="record-contradicted",
            severity=Severity.ERROR,
            where=name,
            what="it has no RECORD",
            why="no wheel may be without",
        )
    for path, problem in package.odd_members:
        yield Finding(
            code="odd-member", severity=Severity.ERROR, where=f"{name}: {path}", what=problem
        )
    for row in package.record:
        yield _record(row, package)
    yield from _variant(package, facts)


def _tag(package: PackageFacts, facts: NativeFacts) -> Iterator[Finding]:
    promised, floor = tag_glibc(facts), facts.glibc
    if promised is None or floor is None or floor[:2] <= promised:
        return
    files = [one.path for one in facts.files if (one.floor("GLIBC") or ())[:2] > promised]
    machine = next((one.machine for one in facts.files if one.path in files), "x86_64")
    yield Finding(
        code="tag-too-old",
        severity=Severity.ERROR,
        where=package.file_name,
        what=f"its tag says glibc {version_text(promised)}, and {listed(files)} "
        f"{'needs' if len(files) == 1 else 'need'} {version_text(floor)}",
        why="installers take it for hosts on which it does not load",
        hint=f"the tag that fits is manylinux_{floor[0]}_{floor[1]}_{machine}",
    )


def _contradicted_tag(package: PackageFacts, facts: NativeFacts) -> Iterator[Finding]:
    """Compare machine, C library and Python of a wheel's tags with its binaries.

    One that fits is enough: some wheels bring along programs for other machines as data.
    """
    own = {one.path: one for one in facts.files if one.kind in ("library", "program")}
    parts = [tag.split("-") for tag in package.file_tags]
    platforms = {part[-1] for part in parts}
    machines = {path: one.machine for path, one in own.items() if one.machine != "cuda"}
    if platforms == {"any"}:
        yield from _misfits(package, {"any platform"}, machines, "is {} code", Severity.WARNING)
    elif all(_LINUX.fullmatch(name) for name in platforms):
        known = {one for one in _MACHINES for name in platforms if name.endswith(f"_{one}")}
        yield from _misfits(package, known, machines, "is {} code")
        libraries = {"musl" if "musllinux" in name else "glibc" for name in platforms}
        needed = {path: one.libc for path, one in own.items() if one.libc is not None}
        if not any(name.startswith("linux_") for name in platforms):
            yield from _misfits(package, libraries, needed, "needs {}")
    pythons = {part[0] for part in parts}
    modules = {
        path: found["tag"].replace("cpython-", "cp")
        for path in own
        if (found := _EXTENSION.search(path))
    }
    own_python = all(map(_CPYTHON.fullmatch, pythons)) and {part[1] for part in parts} != {"abi3"}
    if own_python:
        yield from _misfits(package, pythons, modules, "is for {}", Severity.WARNING)


def _misfits(
    package: PackageFacts,
    promised: set[str],
    found: Mapping[str, str],
    form: str,
    severity: Severity = Severity.ERROR,
) -> Iterator[Finding]:
    """Yield a finding for each value that files have where none has one that is promised."""
    if not promised or promised & set(found.values()):
        return
    for value in sorted(set(found.values())):
        paths = [path for path, one in found.items() if one == value]
        yield Finding(
            code="tag-contradicted",
            severity=severity,
            where=package.file_name,
            what=f"it is tagged for {' or '.join(sorted(promised))}, and {listed(paths)} "
            f"{form.format(value)}",
            why="installers take it for where it does not load",
        )


def _record(row: RecordDifference, package: PackageFacts) -> Finding:
    own = "RECORD" if package.format == "wheel" else "info/paths.json"
    where = f"{package.file_name}: {row.path}"
    if row.kind == "unlisted":
        return Finding(
            code="record-unlisted",
            severity=Severity.WARNING,
            where=where,
            what=f"the file is not listed in {own}",
        )
    told = {
        "hash": f"its hash differs: {own} has {row.listed}, the file {row.found}",
        "size": f"its size differs: {own} has {row.listed}, the file {row.found}",
        "weak": f"{own} has {row.listed} for it"
        + ("" if row.listed == NO_HASH else ", weaker than sha256"),
        "absent": f"{own} lists it, and it is not there",
        "twice": f"{own} lists it twice",
    }
    return Finding(
        code="record-contradicted",
        severity=Severity.WARNING if row.kind == "twice" else Severity.ERROR,
        where=where,
        what=told[row.kind],
        why=f"the package contradicts its own {own.removeprefix('info/')}",
        hint="take it from its index again, or tell who publishes it",
    )


def _variant(package: PackageFacts, facts: NativeFacts) -> Iterator[Finding]:
    """Compare the GPU targets that a wheel variant declares with the code that is there."""
    for namespace, feature, values in package.properties:
        if namespace != "nvidia" or feature not in ("sm_arch", "cuda_arch"):
            continue
        declared = {code for value in values for code in _declared_codes(value)}
        missing = sorted(map(str, declared - facts.codes))
        if missing:
            there = listed(sorted(map(str, facts.codes))) or "no GPU code"
            yield Finding(
                code="variant-contradicted",
                severity=Severity.ERROR,
                where=package.file_name,
                what=f"variant {package.variant} declares {listed(missing)}, and holds {there}",
                why="installers choose it for cards that it has no code for",
            )


def _declared_codes(value: str) -> Iterator[GpuCode]:
    match = _SM.fullmatch(value.removeprefix("sm_"))
    if match is not None:
        kind = "compute" if match["kind"] == "virtual" else "sm"
        yield code_of(f"{kind}_{match['number']}{match['suffix']}")
