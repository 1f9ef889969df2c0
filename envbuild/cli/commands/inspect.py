"""`envbuild inspect`: what the binaries of a file, a package or an environment say."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from envbuild.cli import complete, options, output
from envbuild.cli.context import Here
from envbuild.errors import InputError
from envbuild.native.code import Capability, GpuCode, capability_of, verdict
from envbuild.native.model import version_text

if TYPE_CHECKING:
    from envbuild.native.model import ElfFacts, NativeFacts

_WORDS = {"native": "runs", "jit": "compiled by the driver first", "none": "NO CODE"}


def _capability(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> list[Capability]:
    try:
        return [capability_of(value) for value in values]
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@options.command(
    "inspect",
    examples="""
    envbuild inspect torch-2.4.0-cp311-cp311-manylinux1_x86_64.whl --gpu 9.0
    envbuild inspect .venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so
    envbuild inspect h100-pt24 --json
    """,
)
@click.argument("target", metavar="FILE|FOLDER|NAME", shell_complete=complete.environments)
@click.option(
    "--gpu",
    "gpus",
    metavar="CAPABILITY",
    multiple=True,
    callback=_capability,
    help="Say whether a card of this compute capability (9.0) runs the GPU code; exit code 1 if a "
    "library has none for it.",
)
@options.json_option
@click.pass_obj
def command(here: Here, target: str, gpus: list[Capability], *, as_json: bool) -> None:
    """Show what binaries hold: compilers, GPU code, needed libraries, glibc.

    It is read from a wheel, a `.conda` or `.tar.bz2` package, a folder, an ELF file, or an
    environment; nothing of it is run.
    """
    from envbuild.native.inspect import inspect
    from envbuild.native.tree import Unreadable

    try:
        facts = inspect(_path(here, target))
    except Unreadable as error:
        raise InputError(str(error), source=target) from error
    verdicts = {gpu: _verdicts(facts, gpu) for gpu in gpus}
    if as_json:
        output.print_json(_json(facts, verdicts))
    else:
        output.result(_text(facts, verdicts))
    refused = any("none" in answers.values() for answers in verdicts.values())
    if refused or (gpus and not facts.codes):
        click.get_current_context().exit(1)


def _path(here: Here, target: str) -> Path:
    """Return the path that is meant: a file or folder, else an environment's prefix."""
    from envbuild.store import present, use

    path = Path(target)
    if path.exists() or "/" in target or path.suffix in (".whl", ".conda", ".so", ".bz2"):
        return path
    return use.chosen(present.found(here.stores, target), None).prefix


def _verdicts(facts: "NativeFacts", gpu: Capability) -> dict[str, str]:
    return {file.path: verdict(file.codes, gpu) for file in facts.files if file.codes}


def _text(facts: "NativeFacts", verdicts: Mapping[Capability, Mapping[str, str]]) -> str:
    lines = [f"{facts.name}: {len(facts.files)} binaries, {facts.other_files} other files"]
    if facts.files:
        headings = ("FILE", "KIND", "GPU CODE", "COMPILER", "GLIBC", "NEEDS")
        lines.append(output.table(headings, map(_row, facts.files)))
    lines += [f"{file.path}: {file.problem}" for file in facts.files if file.problem]
    if facts.glibc:
        lines.append(f"glibc: {version_text(facts.glibc)} or newer")
    if facts.glibcxx:
        lines.append(f"libstdc++: GLIBCXX_{version_text(facts.glibcxx)} or newer")
    for (major, minor), answers in verdicts.items():
        if not answers:
            lines.append(f"{major}.{minor}: no GPU code in any of it")
        for path, answer in answers.items():
            lines.append(f"{major}.{minor}: {path}: {_WORDS[answer]}")
    return "\n".join(lines)


def _row(file: "ElfFacts") -> tuple[str, ...]:
    return (
        file.path,
        file.kind,
        _codes(file.codes) or "-",
        ", ".join(file.compilers) or "unknown",
        "musl" if file.libc == "musl" else version_text(file.glibc) or "-",
        " ".join(file.needed) or "-",
    )


def _codes(codes: Iterable[GpuCode]) -> str:
    ordered = sorted(codes, key=lambda code: (code.kind == "ptx", code.number, code.suffix))
    return " ".join(map(str, ordered))


def _json(
    facts: "NativeFacts", verdicts: Mapping[Capability, Mapping[str, str]]
) -> dict[str, object]:
    return {
        "name": facts.name,
        "glibc": version_text(facts.glibc),
        "glibcxx": version_text(facts.glibcxx),
        "gpu_code": _codes(facts.codes).split(),
        "gpus": {f"{major}.{minor}": dict(a) for (major, minor), a in verdicts.items()},
        "other_files": facts.other_files,
        "files": [
            {
                "path": file.path,
                "kind": file.kind,
                "machine": file.machine,
                "soname": file.soname,
                "needed": list(file.needed),
                "rpath": list(file.rpath),
                "runpath": list(file.runpath),
                "compilers": list(file.compilers),
                "comment": list(file.comments),
                "libc": file.libc,
                "glibc": version_text(file.glibc),
                "glibcxx": version_text(file.glibcxx),
                "gpu_code": _codes(file.codes).split(),
                "ptx_isa": version_text(file.ptx_isa),
                "zstd_code": file.zstd_code,
                "problem": file.problem,
            }
            for file in facts.files
        ],
    }
