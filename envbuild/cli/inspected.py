"""How `envbuild inspect` shows what it read."""

from collections.abc import Iterable, Iterator, Mapping

from envbuild.cli import output
from envbuild.compat.binaries import code_drivers, codes_text
from envbuild.compat.model import Facts
from envbuild.native.code import Capability
from envbuild.native.differences import Difference
from envbuild.native.judge import listed, plain_name
from envbuild.native.model import FAMILIES, ElfFacts, NativeFacts, version_text

_WORDS = {"native": "runs", "jit": "compiled by the driver first", "none": "NO CODE"}
_FORMS = {"zstd": "zstd-compressed GPU code", "ptx": "PTX"}
_PLACES = {
    "environment": "needed of the environment",
    "driver": "needed of the driver",
    "host": "needed of the host",
    "nowhere": "needed, and found by nothing that the files say",
}
Verdicts = Mapping[Capability, Mapping[str, str]]


def text(facts: NativeFacts, verdicts: Verdicts, tables: Facts) -> str:
    """Return what a person reads.

    Args:
        facts: What was read.
        verdicts: How its GPU code runs on cards that were asked for.
        tables: What is known of drivers.
    """
    lines = [f"{facts.name}: {len(facts.files)} binaries, {facts.other_files} other files"]
    if facts.files:
        headings = ("FILE", "KIND", "GPU CODE", "COMPILER", "ABI", "GLIBC", "GLIBCXX", "NEEDS")
        lines.append(output.table(headings, map(_row, facts.files)))
    lines += [f"{file.path}: {file.problem}" for file in facts.files if file.problem]
    lines += [*_whole(facts), *_gpu_code(facts, tables), *_places(facts)]
    for (major, minor), answers in verdicts.items():
        if not answers:
            lines.append(f"{major}.{minor}: no GPU code in any of it")
        for path, answer in answers.items():
            lines.append(f"{major}.{minor}: {path}: {_WORDS[answer]}")
    return "\n".join(lines)


def _whole(facts: NativeFacts) -> Iterator[str]:
    if facts.compilers:
        unknown = [file.path for file in facts.files if not file.compilers]
        rest = f"; unknown: {listed(unknown)}" if unknown else ""
        yield f"compilers: {', '.join(facts.compilers)}{rest}"
    if facts.glibc:
        yield f"glibc: {version_text(facts.glibc)} or newer"
    if facts.glibcxx:
        yield f"libstdc++: GLIBCXX_{version_text(facts.glibcxx)} or newer"
    if facts.string_abi != "none":
        yield f"string ABI: {facts.string_abi}"
    vendored = [file.path for file in facts.files if plain_name(file.path) != file.path]
    if vendored:
        yield "vendored: " + " ".join(map(plain_name, vendored))


def _gpu_code(facts: NativeFacts, tables: Facts) -> Iterator[str]:
    held = [file.kernels for file in facts.files if file.kernels]
    if len(held) > 1:
        common = codes_text(frozenset.intersection(*held)) or "none"
        yield f"GPU code that each of the {len(held)} libraries with some has: {common}"
    for driver in code_drivers(facts.files, tables):
        yield (
            f"driver for its {_FORMS[driver.form]}: {driver.version} or newer (CUDA {driver.cuda})"
        )
    runtimes = {
        kind: [file.path for file in facts.files if file.cudart == kind]
        for kind in ("shared", "static")
    }
    spelled = "; ".join(f"{kind} in {listed(paths)}" for kind, paths in runtimes.items() if paths)
    if spelled:
        yield f"CUDA runtime: {spelled}"


def _places(facts: NativeFacts) -> Iterator[str]:
    """Yield where the libraries come from that are not inside."""
    for place, heading in _PLACES.items():
        links = (link for file in facts.files for link in file.links if link.place == place)
        if names := sorted({link.name for link in links}):
            yield f"{heading}: {' '.join(names)}"


def _row(file: ElfFacts) -> tuple[str, ...]:
    return (
        file.path,
        file.kind,
        codes_text(file.codes) or "-",
        ", ".join(file.compilers) or "unknown",
        file.string_abi if file.string_abi != "none" else "-",
        "musl" if file.libc == "musl" else version_text(file.floor("GLIBC")) or "-",
        version_text(file.floor("GLIBCXX")) or "-",
        " ".join(file.needed) or "-",
    )


def differences_text(found: Iterable[Difference]) -> str:
    """Return what differs, a line each."""
    rows = [(one.path or "(all)", one.what, one.old or "-", one.new or "-") for one in found]
    return output.table(("FILE", "WHAT", "FIRST", "SECOND"), rows) if rows else "no difference"


def differences_json(found: Iterable[Difference]) -> list[dict[str, str | None]]:
    """Return what differs, as JSON has it."""
    return [
        {"path": one.path or None, "what": one.what, "old": one.old, "new": one.new}
        for one in found
    ]


def as_json(facts: NativeFacts, verdicts: Verdicts, tables: Facts) -> dict[str, object]:
    """Return everything that was read.

    Args:
        facts: What was read.
        verdicts: How its GPU code runs on cards that were asked for.
        tables: What is known of drivers.
    """
    package = facts.package
    return {
        "name": facts.name,
        "glibc": version_text(facts.glibc),
        "glibcxx": version_text(facts.glibcxx),
        "cxxabi": version_text(facts.floor("CXXABI")),
        "compilers": list(facts.compilers),
        "string_abi": facts.string_abi,
        "gpu_code": codes_text(facts.codes).split(),
        "gpus": {f"{major}.{minor}": dict(told) for (major, minor), told in verdicts.items()},
        "other_files": facts.other_files,
        "package": None
        if package is None
        else {
            "format": package.format,
            "file_tags": sorted(package.file_tags),
            "wheel_tags": sorted(package.wheel_tags),
            "variant": package.variant,
            "properties": [
                {"namespace": namespace, "feature": feature, "values": list(values)}
                for namespace, feature, values in package.properties
            ],
        },
        "files": [_file(file, tables) for file in facts.files],
    }


def _file(file: ElfFacts, tables: Facts) -> dict[str, object]:
    return {
        "path": file.path,
        "plain_name": plain_name(file.path),
        "kind": file.kind,
        "machine": file.machine,
        "soname": file.soname,
        "needed": list(file.needed),
        "links": [
            {"name": link.name, "place": link.place, "path": link.path} for link in file.links
        ],
        "rpath": list(file.rpath),
        "runpath": list(file.runpath),
        "compilers": list(file.compilers),
        "comment": list(file.comments),
        "string_abi": file.string_abi,
        "libc": file.libc,
        "glibc": version_text(file.floor("GLIBC")),
        "glibcxx": version_text(file.floor("GLIBCXX")),
        "cxxabi": version_text(file.floor("CXXABI")),
        "closure": {family.lower(): version_text(file.outer_floor(family)) for family in FAMILIES},
        "unversioned": [
            {"symbol": symbol, "version": f"{family}_{version_text(version)}"}
            for symbol, (family, version) in file.unversioned
        ],
        "gpu_code": codes_text(file.codes).split(),
        "gpu_code_without_kernels": codes_text(file.idle_codes).split(),
        "ptx_isa": version_text(file.ptx_isa),
        "compression": sorted(file.compressions),
        "zstd_code": file.zstd_code,
        "drivers": [
            {"for": one.form, "cuda": one.cuda, "driver": one.version}
            for one in code_drivers([file], tables)
        ],
        "cudart": file.cudart,
        "executable_stack": file.exec_stack,
        "text_relocations": file.text_relocations,
        "alignment": file.alignment,
        "debug_link": file.debug_link,
        "sha256": file.sha256,
        "problem": file.problem,
    }
