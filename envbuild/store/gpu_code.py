"""GPU code of what was linked, read from the files themselves, against the recipe's cards."""

from collections.abc import Mapping
from dataclasses import replace

from envbuild.findings import Finding, Findings, Severity
from envbuild.native.code import Capability, capability_of, code_of, verdict
from envbuild.native.judge import listed, plain_name
from envbuild.store.libraries import READ, Libraries
from envbuild.target import NONE, Need, Needs

Codes = Mapping[str, Mapping[str, str]]
"""GPU code (`sm_80 sm_90`) by label of the package and path of the file."""


def of(read: Libraries) -> Codes:
    """Return the GPU code of libraries, of those that hold some.

    Args:
        read: What was read of them.
    """
    held = {
        label: {path: library.codes for path, library in files.items() if library.codes}
        for label, files in read.items()
    }
    return {label: codes for label, codes in held.items() if codes}


def completed(needs: Needs, codes: Codes) -> Needs:
    """Return needs with the GPU code that was read in the files, where it is for cards.

    Args:
        needs: What is known.
        codes: GPU code that was read.
    """
    if needs.capabilities.value in {None, NONE}:
        return needs
    by_code: dict[str, list[str]] = {}
    for label, files in sorted(codes.items()):
        found = {code_of(code) for text in _own(files).values() for code in text.split()}
        text = " ".join(map(str, sorted(found, key=lambda one: (one.kind == "ptx", one))))
        by_code.setdefault(text, []).append(label.partition(":")[2])
    if not by_code:
        return needs
    value = "; ".join(f"{', '.join(names)}: {text}" for text, names in by_code.items())
    return replace(needs, codes=Need(value=value, origin=READ))


def lacking(codes: Codes, needs: Needs) -> Findings:
    """Return which packages have no code for a card of the recipe.

    An error where none of a package's own libraries has code for it, whatever others it brought
    along under hashed names; a warning where some have: they may be meant for one card each.

    Args:
        codes: GPU code that was read.
        needs: What the environment needs of a host; it names the cards.
    """
    named = needs.capabilities.value
    if named in {None, NONE}:
        return ()
    cards = [(one, capability_of(one)) for one in (named or "").split(",")]
    return tuple(
        finding
        for label, files in sorted(codes.items())
        for spelled, capability in cards
        if (finding := _judged(label, files, spelled, capability)) is not None
    )


def _judged(
    label: str, files: Mapping[str, str], spelled: str, capability: Capability
) -> Finding | None:
    own = _own(files)
    without = {path: text for path, text in own.items() if not _runs(text, capability)}
    if not without:
        return None
    partly = len(without) < len(own)
    held = " ".join(dict.fromkeys(code for text in without.values() for code in text.split()))
    count = f"{len(without)} of its {len(own)} libraries have" if partly else "it has"
    return Finding(
        code="no-gpu-code",
        severity=Severity.WARNING if partly else Severity.ERROR,
        where=label,
        what=f"{count} no code for compute capability {spelled}: {listed(without)} "
        f"{'holds' if len(without) == 1 else 'hold'} {held}",
        why="the first kernel fails with `no kernel image is available for execution on the"
        " device`; this was read in its files",
        hint="take a release or variant that has the code, or build it: envbuild wheel plan; where"
        " that card does without, put it into the recipe's `allow`",
    )


def _own(files: Mapping[str, str]) -> Mapping[str, str]:
    """Return the files without those that a repair tool added, where there are others."""
    return {path: text for path, text in files.items() if plain_name(path) == path} or files


def _runs(text: str, capability: Capability) -> bool:
    return verdict(frozenset(map(code_of, text.split())), capability) != "none"
