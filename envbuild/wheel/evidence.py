"""What a package's binaries say against what a recipe asks of them: one answer each, sourced.

The newest line of `.comment` that names GCC is of the compiler; older ones come with startup
objects (`crt1.o`), libgcc and static parts of the system that it was built on. Where another
compiler is named too (clang, rustc, Intel's), that one made the code. Without `.comment` nothing is
known, and nothing is guessed.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from envbuild.compat.binaries import codes_text
from envbuild.native.code import GpuCode, capability_of, code_of, verdict
from envbuild.native.judge import listed
from envbuild.native.model import ElfFacts
from envbuild.recipe.compilers import CompilerWish
from envbuild.wheel.model import Evidence, Read, Reason
from envbuild.wheel.readings import Question, Reading

_VERSION = re.compile(r"(?P<name>.*\D) (?P<version>\d+(?:\.\d+)*)")
_OF_FAMILY = {"gcc": "GCC", "clang": "clang"}
_NOT_C = ("rustc", "flang")
_ARCH = re.compile(r"(?P<capability>\d+\.\d)(?P<suffix>[af]?)(?P<ptx>\+PTX)?")

Answer = Literal["meets", "fails", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """Something that looks as if it called for a rebuild.

    Attributes:
        looks: What looks so.
        why: Why it does not.
        evidence: What that follows from.
    """

    looks: str
    why: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """What a package's binaries say.

    Attributes:
        reasons: Why it needs a rebuild.
        looks: What only looks so.
        open: What cannot be known of it, a sentence each.
    """

    reasons: tuple[Reason, ...] = ()
    looks: tuple[Look, ...] = ()
    open: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Compiled:
    """One file, or a row of facts, as far as its compilers go."""

    where: str
    compilers: tuple[str, ...]


def answer(reading: Reading, question: Question) -> Answered:
    """Return what a package's binaries say against what is asked of them.

    Args:
        reading: The package.
        question: What is asked.
    """
    if reading.facts is None and reading.row is None:
        return Answered(open=("its binaries were not read",))
    parts: list[Answered] = []
    if (wish := question.build.wish) is not None:
        parts.append(_compiler(reading, wish))
    if question.build.cxx_abi is not None:
        parts.append(_abi(reading, question.build.cxx_abi))
    if question.archs:
        parts.append(_codes(reading, question.archs))
    return Answered(
        reasons=tuple(one for part in parts for one in part.reasons),
        looks=tuple(one for part in parts for one in part.looks),
        open=tuple(one for part in parts for one in part.open),
    )


def _compiler(reading: Reading, wish: CompilerWish) -> Answered:
    groups: dict[tuple[Answer, str], list[_Compiled]] = {}
    for one in _compiled(reading):
        groups.setdefault(_judged(one.compilers, wish), []).append(one)
    reasons: list[Reason] = []
    looks: list[Look] = []
    unknown: list[str] = []
    for (told, what), files in groups.items():
        evidence = _comments(files, reading.read or "facts")
        if told == "fails":
            reasons.append(Reason(cause="compiler", what=what, evidence=evidence))
        elif told == "unknown":
            where = "its row of facts names no compiler" if reading.facts is None else what
            unknown.append(f"{where} ({listed(one.where for one in files)})")
        elif what:
            named = sorted({name for one in files for name in one.compilers if _old(name, wish)})
            looks.append(Look(looks=f"it names {', '.join(named)}", why=what, evidence=evidence))
    return Answered(reasons=tuple(reasons), looks=tuple(looks), open=tuple(unknown))


def _compiled(reading: Reading) -> Iterator[_Compiled]:
    if reading.facts is not None:
        for file in reading.own:
            yield _Compiled(where=file.path, compilers=file.compilers)
    elif reading.row is not None:
        known = (reading.row.compiler,) if reading.row.compiler else ()
        yield _Compiled(where=reading.row.name, compilers=known)


def _judged(compilers: Sequence[str], wish: CompilerWish) -> tuple[Answer, str]:
    """Say whether a file's compiler will do, and why not, or why in spite of how it looks."""
    if not compilers:
        return "unknown", "it has no .comment, so its compiler cannot be known"
    own = [name for name in compilers if _family(name) == _OF_FAMILY[wish.family]]
    others = [name for name in compilers if _family(name) not in ("GCC", _OF_FAMILY[wish.family])]
    if others:
        made = ", ".join(others)
        if wish.exact and any(_family(name) not in _NOT_C for name in others):
            return "fails", f"{made} compiled it, and {wish} is asked for"
        why = f"{made} compiled it; GCC's lines are of startup objects and static parts"
        return "meets", why if any(_old(name, wish) for name in compilers) else ""
    if not own:
        return "fails", f"{', '.join(compilers)} compiled it, and {wish} is asked for"
    newest = max(own, key=_numbers)
    if not wish.takes(_numbers(newest)):
        newer = "" if wish.exact else " or newer"
        return "fails", f"{newest} compiled it, and {wish}{newer} is asked for"
    why = f"{newest} compiled it; older lines are of startup objects and static parts"
    return "meets", why if any(_old(name, wish) for name in compilers) else ""


def _old(name: str, wish: CompilerWish) -> bool:
    """Say whether a line looks as if its compiler were too old."""
    return _family(name) == "GCC" and (wish.family != "gcc" or not wish.takes(_numbers(name)))


def _family(name: str) -> str:
    match = _VERSION.match(name)
    return match["name"] if match else name


def _numbers(name: str) -> tuple[int, ...]:
    match = _VERSION.match(name)
    return tuple(map(int, match["version"].split("."))) if match else ()


def _comments(files: Iterable[_Compiled], read: Read) -> tuple[Evidence, ...]:
    """Return what `.comment` says, files that say the same as one."""
    grouped: dict[tuple[str, ...], list[str]] = {}
    for one in files:
        grouped.setdefault(one.compilers, []).append(one.where)
    start = "" if read == "facts" else ".comment: "
    return tuple(
        Evidence(where=listed(places), what=f"{start}{', '.join(compilers)}", read=read)
        for compilers, places in grouped.items()
    )


def _abi(reading: Reading, asked: Literal["new", "old"]) -> Answered:
    other = "old" if asked == "new" else "new"
    what = f"it speaks the {other} string ABI of libstdc++, and the {asked} one is asked for"
    if reading.facts is None:
        known = reading.row.cxx11_abi if reading.row else None
        if known is None:
            return Answered(open=("its row of facts names no string ABI",))
        if known is (asked == "new") or reading.row is None:
            return Answered()
        said = f"string ABI: {other}"
        evidence = Evidence(where=reading.row.name, what=said, read="facts")
        return Answered(reasons=(Reason(cause="string-abi", what=what, evidence=(evidence,)),))
    wrong = [one for one in reading.own if one.string_abi in (other, "mixed")]
    if not wrong:
        return Answered()
    told = _grouped(wrong, lambda one: one.string_abi, "string ABI: {}", reading.read or "facts")
    return Answered(reasons=(Reason(cause="string-abi", what=what, evidence=told),))


def _grouped(
    files: Iterable[ElfFacts], key: Callable[[ElfFacts], str], form: str, read: Read
) -> tuple[Evidence, ...]:
    grouped: dict[str, list[str]] = {}
    for file in files:
        grouped.setdefault(key(file), []).append(file.path)
    return tuple(
        Evidence(where=listed(places), what=form.format(text), read=read)
        for text, places in grouped.items()
    )


def _codes(reading: Reading, archs: Sequence[str]) -> Answered:
    held = _held(reading)
    if held is None:
        return Answered(open=("its row of facts names no GPU code",))
    missing: dict[tuple[str, ...], dict[str, frozenset[GpuCode]]] = {}
    for where, codes in held.items():
        lacks = tuple(arch for arch in archs if not covers(codes, arch))
        if lacks:
            missing.setdefault(lacks, {})[where] = codes
    read = "facts" if reading.facts is None else reading.read or "facts"
    reasons: list[Reason] = []
    for lacks, places in missing.items():
        grouped: dict[str, list[str]] = {}
        for where, codes in places.items():
            grouped.setdefault(codes_text(codes), []).append(where)
        evidence = tuple(
            Evidence(where=listed(names), what=f"GPU code: {text}", read=read)
            for text, names in grouped.items()
        )
        partly = f", in {len(places)} of {len(held)} libraries" if len(places) < len(held) else ""
        what = f"it lacks GPU code for {', '.join(lacks)}{partly}"
        reasons.append(Reason(cause="gpu-code", what=what, evidence=evidence))
    return Answered(reasons=tuple(reasons))


def _held(reading: Reading) -> Mapping[str, frozenset[GpuCode]] | None:
    """Return GPU code by file; empty for a package without any, None where it is unknown."""
    if reading.facts is not None:
        return {file.path: file.codes for file in reading.own if file.codes}
    if reading.row is None or not (reading.row.cuda or reading.row.cuda_major):
        return {}
    codes = reading.row.all_codes or reading.row.codes
    return {reading.row.name: frozenset(map(code_of, codes))} if codes else None


def covers(codes: frozenset[GpuCode], arch: str) -> bool:
    """Say whether code has what a capability of a recipe (`9.0`, `9.0a`, `9.0+PTX`) asks for.

    Args:
        codes: What there is.
        arch: What is asked for.
    """
    match = _ARCH.fullmatch(arch)
    if match is None:
        return False
    capability = capability_of(match["capability"])
    if match["suffix"]:
        number = f"{capability[0]}{capability[1]}"
        native = code_of(f"sm_{number}{match['suffix']}") in codes
    else:
        native = verdict(codes, capability) == "native"
    if not match["ptx"]:
        return native
    return native and any(code.kind == "ptx" and code.capability == capability for code in codes)
