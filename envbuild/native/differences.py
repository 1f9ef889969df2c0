"""What differs between two wheels, packages, prefixes or files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from envbuild.native.model import ElfFacts, NativeFacts, version_text


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One thing that is not the same.

    Attributes:
        path: The file, empty for the whole.
        what: Which of its facts, or `file` where one of them lacks it.
        old: What the first has, or None.
        new: What the second has, or None.
    """

    path: str
    what: str
    old: str | None
    new: str | None


def differences(old: NativeFacts, new: NativeFacts) -> tuple[Difference, ...]:
    """Return what differs, the whole first, then file by file.

    Names that repair tools gave a hash are the same library whatever the hash.
    """
    found = list(_rows("", _whole(old), _whole(new)))
    before, after = _by_name(old), _by_name(new)
    for name in sorted(before.keys() | after.keys()):
        one, two = before.get(name), after.get(name)
        if one is None or two is None:
            there = "there"
            found.append(
                Difference(
                    path=name, what="file", old=there if one else None, new=there if two else None
                )
            )
        else:
            found.extend(_rows(name, _facts(one), _facts(two)))
    return tuple(found)


def _by_name(facts: NativeFacts) -> Mapping[str, ElfFacts]:
    from envbuild.native.judge import plain_name

    found: dict[str, ElfFacts] = {}
    for file in facts.files:
        name = plain_name(file.path)
        found[file.path if name in found else name] = file
    return found


def _rows(
    path: str, old: Mapping[str, str | None], new: Mapping[str, str | None]
) -> Iterator[Difference]:
    for what, value in old.items():
        if new[what] != value:
            yield Difference(path=path, what=what, old=value, new=new[what])


def _whole(facts: NativeFacts) -> dict[str, str | None]:
    return {
        "glibc": version_text(facts.glibc),
        "GLIBCXX": version_text(facts.glibcxx),
        "CXXABI": version_text(facts.floor("CXXABI")),
        "string ABI": facts.string_abi,
        "GPU code": " ".join(sorted(map(str, facts.codes))) or None,
    }


def _facts(file: ElfFacts) -> dict[str, str | None]:
    return {
        "kind": file.kind,
        "machine": file.machine,
        "compiler": ", ".join(sorted(file.compilers)) or "unknown",
        "string ABI": file.string_abi,
        "glibc": version_text(file.floor("GLIBC")),
        "GLIBCXX": version_text(file.floor("GLIBCXX")),
        "SONAME": file.soname,
        "NEEDED": " ".join(file.needed) or None,
        "RPATH": ":".join(file.rpath) or None,
        "RUNPATH": ":".join(file.runpath) or None,
        "GPU code": " ".join(sorted(map(str, file.codes))) or None,
        "compression": " ".join(sorted(file.compressions)) or None,
        "cudart": file.cudart,
        "alignment": f"{file.alignment}" if file.alignment else None,
        "executable stack": "yes" if file.exec_stack else None,
        "TEXTREL": "yes" if file.text_relocations else None,
    }
